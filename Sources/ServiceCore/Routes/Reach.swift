// How a client reaches a service, which decides what of the origin's addresses the answers keep.

/// How a client reaches a service.
package enum Reach: Sendable {
    /// It asks the daemon itself.
    case direct
    /// It asks a proxy: the target is in absolute form.
    case proxied
    /// It asks inside of a tunnel that the daemon reads.
    case tunnelled
}

/// One value for each way to reach a service.
package struct ByReach<Value> {
    package let direct: Value
    package let proxied: Value
    package let tunnelled: Value

    package init(direct: Value, proxied: Value, tunnelled: Value) {
        self.direct = direct
        self.proxied = proxied
        self.tunnelled = tunnelled
    }

    package subscript(reach: Reach) -> Value {
        switch reach {
        case .direct: direct
        case .proxied: proxied
        case .tunnelled: tunnelled
        }
    }
}

extension ByReach: Sendable where Value: Sendable {}

extension ByReach where Value: Equatable {
    /// What is made of each value; once of those that are equal.
    func map<Made>(_ make: (Value) -> Made) -> ByReach<Made> {
        let made = make(direct)
        let proxied = self.proxied == direct ? made : make(self.proxied)
        let tunnelled = self.tunnelled == direct ? made : make(self.tunnelled)
        return ByReach<Made>(direct: made, proxied: proxied, tunnelled: tunnelled)
    }
}
