// The index of endpoints finds what a look at each of them in turn would find.

import HTTPWire
import Testing

@testable import ServiceCore

@Suite struct PathIndexTests {
    private static let segments: [PathPattern.Segment] = [
        .literal(Array("a".utf8)), .literal(Array("b".utf8)), .literal(Array("ab".utf8)), .literal([]), .parameter("x"),
        .rest,
    ]

    /// All patterns of at most three segments.
    private static var patterns: [PathPattern] {
        var all = [PathPattern(segments: [])]
        var last = all
        for _ in 0..<3 {
            last = last.filter { $0.segments.last != .rest }.flatMap { pattern in
                segments.map { PathPattern(segments: pattern.segments + [$0]) }
            }
            all += last
        }
        return all
    }

    private static var paths: [String] {
        var all = [""]
        var last = all
        for _ in 0..<4 {
            last = last.flatMap { path in ["/", "/a", "/b", "/ab", "/c"].map { path + $0 } }
            all += last
        }
        return all + ["?", "/?", "/a?/b", "/a/?", "a", "a/b", "/a?", "//", "/ab/b?a=/b", "*"]
    }

    private static func plan(_ patterns: [PathPattern]) -> ServicePlan {
        let methods: [Method] = [.get, .post, .get, .head]
        let endpoints = patterns.enumerated().map { number, pattern in
            EndpointPlan(
                name: "e\(number)",
                method: methods[number % methods.count],
                pattern: pattern,
                request: RequestPlan()
            )
        }
        return ServicePlan(name: "s", origin: nil, endpoints: endpoints)
    }

    @Test(arguments: [0, 1, 2, 3, 4])
    func `the first that answers, in whatever order the patterns stand`(round: Int) {
        var patterns = Self.patterns
        // In the order of a plan, the other way round, and mixed.
        if round == 0 { patterns.sort { $0.isMoreSpecific(than: $1) } }
        if round == 1 { patterns.sort { $1.isMoreSpecific(than: $0) } }
        var generator = SystemRandomNumberGenerator()
        if round > 2 { patterns = patterns.shuffled(using: &generator).filter { _ in Bool.random() } }
        let plan = Self.plan(patterns)
        for path in Self.paths {
            for method in [Method.get, .head, .post, .put] {
                let name = "\(method) \(path)"
                var path = path
                path.withUTF8 { bytes in
                    let bytes = UnsafeRawBufferPointer(bytes)
                    let expected = plan.endpoints.firstIndex { $0.method.answers(method) && $0.pattern.matches(bytes) }
                    #expect(plan.paths?.first(for: method, path: bytes) == expected, "\(name)")
                }
            }
        }
    }
}
