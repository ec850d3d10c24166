// The endpoints of a service that are most similar to a request that no endpoint names.

import HTTPWire
import Matching

extension ServiceRoute {
    /// The most similar endpoints, three at most, each with its difference from the request: `user takes GET, not
    /// POST`; `user is at /users/:id`. Empty if no endpoint is similar.
    /// - Parameter rest: the target without the prefix.
    func nearestEndpoints(to method: Method, _ rest: String) -> [String] {
        let path = Array(rest.utf8.prefix { $0 != UInt8(ascii: "?") })
        let same = plan.endpoints.filter { $0.pattern.matches(path: path) }
        if !same.isEmpty {
            return same.prefix(Self.mostNear).map { "\($0.name) takes \($0.method.name), not \(method.name)" }
        }
        let segments = PathPattern.segments(of: path)
        let near = plan.endpoints.enumerated().compactMap { index, endpoint -> (Int, Int)? in
            let distance = endpoint.pattern.distance(segments)
            return distance <= Self.farthest ? (distance, index) : nil
        }
        return near.sorted(by: <).prefix(Self.mostNear).map { _, index in
            let endpoint = plan.endpoints[index]
            return "\(endpoint.name) is \(endpoint.method.name) \(endpoint.pattern.text)"
        }
    }

    private static let mostNear = 3
    /// The largest distance of a similar path, in hundredths.
    private static let farthest = 50
}

extension RouteRefusal {
    /// The refusal of a request that no endpoint names, by a service that answers only its endpoints.
    static func noEndpoint(_ method: Method, _ rest: String, _ route: ServiceRoute) -> RouteRefusal {
        let path = rest.prefix { $0 != "?" }
        return .noEndpoint(
            request: "\(method.name) \(path.isEmpty ? "/" : path)",
            service: route.plan.name,
            nearest: route.nearestEndpoints(to: method, rest)
        )
    }
}

extension PathPattern {
    /// The endpoint in the form of a configuration file.
    var text: String {
        let parts = segments.map { segment in
            switch segment {
            case .literal(let bytes): "/" + String(decoding: bytes, as: UTF8.self)
            case .parameter(let name): "/:" + name
            case .rest: "/*"
            }
        }
        return parts.isEmpty ? "/" : parts.joined()
    }

    fileprivate static func segments(of path: [UInt8]) -> [ArraySlice<UInt8>] {
        path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: true)
    }

    /// The distance of a path from the pattern, in hundredths: the mean of its segments.
    fileprivate func distance(_ path: [ArraySlice<UInt8>]) -> Int {
        let hasRest = segments.last == .rest
        let own = hasRest ? segments.count - 1 : segments.count
        let pairs = zip(segments.prefix(own), path).map { segment, text in
            if case .literal(let bytes) = segment { TextDistance.between(bytes, text) } else { 0 }
        }
        let unmatched = max(own - path.count, hasRest ? 0 : path.count - own)
        let count = max(1, pairs.count + unmatched)
        return (pairs.reduce(0, +) + max(0, unmatched) * 100) / count
    }
}
