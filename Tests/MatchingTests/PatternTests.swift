// Regular expressions: what they find, what is wrong with them, and that none of them hangs.

import Glibc
import Matching
import Testing

@Suite struct PatternTests {
    @Test(
        arguments: [
            ("^a.c$", "abc", true), ("^a.c$", "xabc", false), ("b", "abc", true), ("(?i)ABC", "xabcx", true),
            ("^\\d{3}$", "123", true), ("^\\d{3}$", "1234", false), ("^ä$", "ä", true), ("", "", true),
            ("(a)\\1", "aa", true), ("^(?!no)", "yes", true), ("^(?!no)", "no", false),
        ]
    )
    func findsItsPosition(pattern: String, text: String, isFound: Bool) throws {
        let verdict = try Pattern(pattern).verdict(Array(text.utf8))
        #expect(verdict == (isFound ? .found : .notFound))
    }

    @Test func bytesThatAreNoTextDoNotMatch() throws {
        #expect(try Pattern("a.c").verdict([97, 0xff, 99]) == .notFound)
        #expect(try Pattern("c$").verdict([97, 0xff, 99]) == .found)
    }

    @Test(arguments: [("(a", 2), ("a)", 1), ("[z-a]", 3), ("*", 0), ("\\C", 2), ("(?P<a", 5)])
    func mistakesAreAtTheirPosition(pattern: String, offset: Int) throws {
        do {
            _ = try Pattern(pattern)
            Issue.record("\(pattern) is a pattern")
        } catch {
            #expect(error.offset == offset && !error.reason.isEmpty, "\(error)")
        }
    }

    @Test func longPatternsAreRefused() {
        #expect(throws: Pattern.Malformed.self) { try Pattern(String(repeating: "a", count: 4097)) }
        #expect(throws: Never.self) { try Pattern(String(repeating: "a", count: 4096)) }
    }

    /// Each of them takes exponential or quadratic time, or a step at a time over and over; the verdict comes all the
    /// same, within the thread's time that a pattern may take.
    @Test(
        arguments: [
            ("(a+)+$", "a"), ("(a|aa)+$", "a"), ("(a|a)*b", "a"), ("(.*)*x", "a"), ("^(([a-z])+.)+[A-Z]([a-z])+$", "a"),
            ("b|[^x]{65000}y", "a"), ("(?:a*)*(?:a*)*c", "a"), ("(?=(a+))a*b\\1", "a"),
        ]
    )
    func noPatternHangs(pattern: String, unit: String) throws {
        let text = Array(String(repeating: unit, count: Pattern.longestSubject - 1).utf8) + [33]
        let pattern = try Pattern(pattern)
        let before = threadMilliseconds()
        #expect(pattern.verdict(text) != .found)
        // The limit is 50 ms of the thread; what lies between two looks at the clock is bounded, too.
        #expect(threadMilliseconds() - before < 10_000)
    }

    @Test func onlyTheBeginningOfALongTextIsLookedAt() throws {
        let text = [UInt8](repeating: 97, count: Pattern.longestSubject) + [98]
        #expect(try Pattern("b").verdict(text) == .notFound)
        // What was cut has no end.
        #expect(try Pattern("a$").verdict(text) == .notFound)
        #expect(try Pattern("b").verdict(Array(text.dropFirst())) == .found)
    }

    /// What this thread has used of a processor, so that other tests do not count.
    private func threadMilliseconds() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return time.tv_sec * 1000 + time.tv_nsec / 1_000_000
    }
}
