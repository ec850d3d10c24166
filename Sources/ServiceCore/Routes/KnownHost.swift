// A Host value with the services that it leads to: made once on the waiting path, and found by its bytes from then on.

package import HTTPWire

/// A Host value as the waiting path has parsed it. It never changes, and is valid only for the plan that it was made
/// from.
package final class KnownHost {
    private struct Place {
        // Held by the plan, which is held beside it.
        let route: Unmanaged<ServiceRoute>
        /// The service answers for the host.
        let isServed: Bool
    }

    package let bytes: [UInt8]
    package let authority: Authority
    /// The host in lower case, without and with its port.
    package let bare: [UInt8]
    package let full: [UInt8]
    package let port: UInt16?
    private let plan: RoutePlan
    /// In the order in which they are tried.
    private let places: [Place]

    /// - Parameters:
    ///   - text: the value of Host.
    ///   - isOwn: whether every service answers for the host.
    package init(_ text: String, _ authority: Authority, _ plan: RoutePlan, isOwn: Bool) {
        bytes = Array(text.utf8)
        self.authority = authority
        bare = Array(authority.host.utf8)
        full = Array(authority.description.utf8)
        port = authority.port
        self.plan = plan
        let name = authority.name
        places = plan.routes(host: name).map { route in
            Place(route: .passUnretained(route), isServed: isOwn || route.answers(for: name))
        }
    }

    /// Whether any service answers for the host.
    package var isServed: Bool { places.contains(where: \.isServed) }

    /// The service with the longest prefix among those of this very host, else among the others; nil where none
    /// matches, or where the one that does answers for other hosts. No allocation.
    package func service(target: UnsafeRawBufferPointer) -> ServiceRoute? {
        borrowedService(target: target)?.takeUnretainedValue()
    }

    /// The same for as long as this object is held.
    package func borrowedService(target: UnsafeRawBufferPointer) -> Unmanaged<ServiceRoute>? {
        for place in places.indices where places[place].route._withUnsafeGuaranteedRef({ $0.leads(target) }) {
            return places[place].isServed ? places[place].route : nil
        }
        return nil
    }

    /// The service that the path leads to, and that does not answer for the host.
    package func refusing(target: UnsafeRawBufferPointer) -> ServiceRoute? {
        let place = places.first { $0.route._withUnsafeGuaranteedRef { $0.leads(target) } }
        return place.flatMap { $0.isServed ? nil : $0.route.takeUnretainedValue() }
    }
}

@available(*, unavailable) extension KnownHost: Sendable {}
