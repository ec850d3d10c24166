// The nearest of the words that were expected.

import Testing

@testable import Matching

@Suite struct SuggestionTests {
    @Test(
        arguments: [
            ("lisen", "listen"), ("Listen", "listen"), ("litsen", "listen"), ("request.pth", "request.path"),
            ("x", nil),
            ("somethingelse", nil), ("", nil),
        ] as [(String, String?)]
    )
    func theNearestWordIsNamed(word: String, nearest: String?) {
        #expect(Suggestions.nearest(to: word, among: ["listen", "request.path", "services"]) == nearest)
    }

    @Test func oneChangeIsOneStep() {
        let words = [
            ("abc", "abc", 0), ("abc", "ab", 1), ("abc", "abcd", 1), ("abc", "abd", 1), ("abc", "acb", 1),
            ("", "ab", 2),
        ]
        for (one, other, steps) in words {
            #expect(Suggestions.distance(Array(one.utf8), Array(other.utf8)) == steps, "\(one) \(other)")
        }
    }

    @Test func aLongWordIsNearNone() {
        let long = String(repeating: "x", count: 1 << 20)
        #expect(Suggestions.nearest(to: long, among: ["x", long + "y"]) == nil)
        #expect(Suggestions.nearest(to: "x", among: []) == nil)
    }
}
