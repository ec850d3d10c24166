// A Host value with its services: parsed once on the waiting path, and then found by its bytes.

package import HTTPWire

/// A Host value in parsed form. It never changes, and is valid only for the plan that it was made from.
package final class KnownHost {
    private struct Mount {
        // The plan, which is held beside this object, holds the route.
        let route: Unmanaged<ServiceRoute>
        /// Whether the service answers for the host.
        let isServed: Bool
    }

    package let bytes: [UInt8]
    package let authority: Authority
    /// The host in lower case, without its port and with it.
    package let bare: [UInt8]
    package let full: [UInt8]
    package let port: UInt16?
    private let plan: RoutePlan
    /// In the order in which they are tried.
    private let mounts: [Mount]

    /// Parses a Host value.
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
        mounts = plan.routes(host: name).map { route in
            Mount(route: .passUnretained(route), isServed: isOwn || route.answers(for: name))
        }
    }

    /// Whether any service answers for the host.
    package var isServed: Bool { mounts.contains(where: \.isServed) }

    /// The service with the longest prefix among those of this very host, or else among the others; nil if none
    /// matches, or if the match answers for other hosts only. It does not allocate.
    package func service(target: UnsafeRawBufferPointer) -> ServiceRoute? {
        borrowedService(target: target)?.takeUnretainedValue()
    }

    /// The service as ``service(target:)`` finds it, valid as long as this object is held.
    package func borrowedService(target: UnsafeRawBufferPointer) -> Unmanaged<ServiceRoute>? {
        for index in mounts.indices where mounts[index].route._withUnsafeGuaranteedRef({ $0.leads(target) }) {
            return mounts[index].isServed ? mounts[index].route : nil
        }
        return nil
    }

    /// The service that the path leads to, but that does not answer for the host.
    package func refusing(target: UnsafeRawBufferPointer) -> ServiceRoute? {
        let mount = mounts.first { $0.route._withUnsafeGuaranteedRef { $0.leads(target) } }
        return mount.flatMap { $0.isServed ? nil : $0.route.takeUnretainedValue() }
    }
}

@available(*, unavailable) extension KnownHost: Sendable {}
