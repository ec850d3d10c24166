// What an operator has changed about demo answers and faults, over the configuration.

import Configuration
import ProxyServer

/// Whose demo answers are meant.
struct DemoScope: Sendable, Hashable {
    /// Nil: of all services.
    var service: String?
    /// Nil: of the whole service, with its endpoints.
    var endpoint: String?

    func has(_ service: ServiceConfiguration) -> Bool { self.service == nil || self.service == service.name }
    func has(_ endpoint: EndpointConfiguration) -> Bool { self.endpoint == nil || self.endpoint == endpoint.name }

    /// `shop/order`, `shop`, or `all services`.
    var text: String { service.map { $0 + (endpoint.map { "/\($0)" } ?? "") } ?? "all services" }
}

/// Changes in the order in which they were made: a later one counts more, and one of the same scope and key replaces the
/// earlier.
struct DemoOverlay: Sendable {
    struct Change: Sendable {
        var scope: DemoScope
        var setting: DemoSetting
        /// Monotonic nanoseconds; nil: until it is cleared.
        var end: UInt64?
    }

    /// Changes at most.
    static let most = 256

    private(set) var changes: [Change] = []

    var isEmpty: Bool { changes.isEmpty }
    /// When the next change ends, in monotonic nanoseconds.
    var nextEnd: UInt64? { changes.compactMap(\.end).min() }

    /// - Returns: false where there are as many as may be.
    mutating func set(_ setting: DemoSetting, for scope: DemoScope, until end: UInt64?) -> Bool {
        changes.removeAll { $0.scope == scope && $0.setting.key == setting.key }
        guard changes.count < Self.most else { return false }
        changes.append(Change(scope: scope, setting: setting, end: end))
        return true
    }

    /// Takes back what was changed for a scope and for what it has.
    mutating func clear(_ scope: DemoScope) {
        changes.removeAll { change in
            (scope.service == nil || scope.service == change.scope.service)
                && (scope.endpoint == nil || scope.endpoint == change.scope.endpoint)
        }
    }

    /// - Returns: the changes that have ended.
    mutating func removeEnded(at now: UInt64) -> [Change] {
        let ended = changes.filter { $0.end.map { $0 <= now } ?? false }
        changes.removeAll { $0.end.map { $0 <= now } ?? false }
        return ended
    }

    /// The configuration with the changes.
    func applied(to configuration: Configuration) -> Configuration {
        var result = configuration
        let profiles = configuration.faultProfiles
        for change in changes {
            for place in result.services.indices where change.scope.has(result.services[place]) {
                guard change.scope.endpoint != nil else {
                    change.setting.apply(to: &result.services[place], profiles)
                    continue
                }
                for index in result.services[place].endpoints.indices
                where change.scope.has(result.services[place].endpoints[index]) {
                    change.setting.apply(to: &result.services[place].endpoints[index], profiles)
                }
            }
        }
        return result
    }

    /// - Parameter now: monotonic nanoseconds.
    func document(now: UInt64) -> [AdminDemo.Override] {
        changes.map { change in
            AdminDemo.Override(
                service: change.scope.service,
                endpoint: change.scope.endpoint,
                key: change.setting.key.rawValue,
                value: change.setting.text,
                left: change.end.map { Int(($0 - min($0, now) + 999_999_999) / 1_000_000_000) }
            )
        }
    }
}
