// The changes that an operator has made to demo answers and faults, on top of the configuration.

import Configuration
import ProxyServer

/// The services and endpoints that a change of demo mode is for.
struct DemoScope: Sendable, Hashable {
    /// The name of the service; nil for all services.
    var service: String?
    /// The name of the endpoint; nil for the whole service with its endpoints.
    var endpoint: String?

    func has(_ service: ServiceConfiguration) -> Bool { self.service == nil || self.service == service.name }
    func has(_ endpoint: EndpointConfiguration) -> Bool { self.endpoint == nil || self.endpoint == endpoint.name }

    /// The scope in log lines: `shop/order`, `shop`, or `all services`.
    var text: String { service.map { $0 + (endpoint.map { "/\($0)" } ?? "") } ?? "all services" }
}

/// The changes of demo mode, in the order in which they were made: a later one wins, and one of the same scope and key
/// replaces the earlier.
struct DemoOverlay: Sendable {
    struct Change: Sendable {
        var scope: DemoScope
        var setting: DemoSetting
        /// The end of the change in monotonic nanoseconds; nil if it holds until it is cleared.
        var end: UInt64?
    }

    /// The largest number of changes that hold at a time.
    static let most = 256

    private(set) var changes: [Change] = []

    var isEmpty: Bool { changes.isEmpty }
    /// The time at which the next change ends, in monotonic nanoseconds; nil if none ends by itself.
    var nextEnd: UInt64? { changes.compactMap(\.end).min() }

    /// Adds a change, in place of one of the same scope and key.
    /// - Returns: false if ``most`` changes hold already.
    mutating func set(_ setting: DemoSetting, for scope: DemoScope, until end: UInt64?) -> Bool {
        changes.removeAll { $0.scope == scope && $0.setting.key == setting.key }
        guard changes.count < Self.most else { return false }
        changes.append(Change(scope: scope, setting: setting, end: end))
        return true
    }

    /// Removes the changes of a scope and of everything within it.
    mutating func clear(_ scope: DemoScope) {
        changes.removeAll { change in
            (scope.service == nil || scope.service == change.scope.service)
                && (scope.endpoint == nil || scope.endpoint == change.scope.endpoint)
        }
    }

    /// Removes the changes whose end has come.
    /// - Returns: the removed changes.
    mutating func removeEnded(at now: UInt64) -> [Change] {
        let ended = changes.filter { $0.end.map { $0 <= now } ?? false }
        changes.removeAll { $0.end.map { $0 <= now } ?? false }
        return ended
    }

    /// A copy of the configuration with the changes applied.
    func applied(to configuration: Configuration) -> Configuration {
        var result = configuration
        let profiles = configuration.faultProfiles
        for change in changes {
            for index in result.services.indices where change.scope.has(result.services[index]) {
                guard change.scope.endpoint != nil else {
                    change.setting.apply(to: &result.services[index], profiles)
                    continue
                }
                for endpoint in result.services[index].endpoints.indices
                where change.scope.has(result.services[index].endpoints[endpoint]) {
                    change.setting.apply(to: &result.services[index].endpoints[endpoint], profiles)
                }
            }
        }
        return result
    }

    /// The changes for the admin API.
    /// - Parameter now: monotonic nanoseconds, from which the remaining time is counted.
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
