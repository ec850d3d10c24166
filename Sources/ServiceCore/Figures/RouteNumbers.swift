// The numbers of routes: by them each loop counts answers in a table of its own, without looking at a name.

import Synchronization

/// The number of a service's endpoint, or of the service itself.
package struct RouteNumber: Sendable, Hashable {
    /// The place of the route's row; below ``RouteNumbers/most``.
    package let row: Int
    /// The place of its service's row; that of the route itself where no endpoint names the request.
    package let service: Int

    init(row: Int, service: Int) { (self.row, self.service) = (row, service) }

    /// The number of what no service answers.
    package static let none = RouteNumber(row: 0, service: 0)
    /// The number of routes that have found no room.
    package static let other = RouteNumber(row: 1, service: 1)
    /// The number of tunnels of CONNECT.
    package static let connect = RouteNumber(row: 2, service: 2)
}

/// The numbers of all routes since the start of the process: a route that a reload brings back gets its old one.
///
/// Sendable: the table is behind a mutex. It is asked while a plan is made, and when figures are read.
package final class RouteNumbers: Sendable {
    /// The names that answers are counted by.
    package struct Name: Sendable, Hashable {
        package let service: String
        /// Empty where no endpoint names the request.
        package let endpoint: String

        package init(service: String, endpoint: String = "") {
            (self.service, self.endpoint) = (service, endpoint)
        }

        /// The name under which answers are counted that have no name of their own, for want of room.
        package static let other = Name(service: "other")
    }

    /// The most rows of a loop's table; endpoints have half of them, so that they leave room for services. Later services
    /// share ``RouteNumber/other``: a row takes 2 KiB in each loop.
    package static let most = 1_024

    private struct State {
        var names = [Name(service: ""), .other, Name(service: "connect")]
        var rows: [Name: Int] = [:]

        mutating func row(of name: Name) -> Int? {
            if let row = rows[name] { return row }
            let most = name.endpoint.isEmpty ? RouteNumbers.most : RouteNumbers.most / 2
            guard names.count < most else { return nil }
            rows[name] = names.count
            names.append(name)
            return names.count - 1
        }
    }

    private let state = Mutex(State())

    package init() {}

    /// The number of a route, given at first sight.
    package func number(service: String, endpoint: String) -> RouteNumber {
        state.withLock { state in
            guard let whole = state.row(of: Name(service: service)) else { return .other }
            guard !endpoint.isEmpty else { return RouteNumber(row: whole, service: whole) }
            // An endpoint without a row of its own is counted by the service alone.
            return RouteNumber(row: state.row(of: Name(service: service, endpoint: endpoint)) ?? whole, service: whole)
        }
    }

    /// The names of all rows, by their place.
    package var names: [Name] { state.withLock { $0.names } }
}
