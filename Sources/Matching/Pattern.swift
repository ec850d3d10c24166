// Regular expressions of PCRE2, with limits for all patterns and texts; and paths that look like patterns.

import CPCRE2
import Glibc

/// A compiled regular expression. It matches any part of a text, unless the pattern has anchors.
///
/// Sendable: PCRE2 only reads the compiled code, and each match has its own state.
package final class Pattern: @unchecked Sendable {
    /// The pattern as it is in the file.
    package let text: String
    // Any number of threads read it at once, which PCRE2 allows; freed with this object.
    private let code: OpaquePointer

    /// The most bytes of a pattern.
    package static let longest = 4096
    /// The most bytes of a text that are examined.
    package static let longestSubject = 64 << 10
    /// The most backtracking steps per position in the text.
    private static let matchLimit: UInt32 = 100_000
    /// The most nested backtracking points.
    private static let depthLimit: UInt32 = 10_000
    /// The most nanoseconds of the thread's time.
    fileprivate static let timeLimit: UInt64 = 50_000_000

    /// The reason why a text is not a pattern.
    package struct Malformed: Error, Sendable, Equatable {
        /// The reason in the words of PCRE2.
        package let reason: String
        /// The number of bytes of the pattern before the mistake.
        package let offset: Int
    }

    /// - Throws: the mistake in the pattern.
    package init(_ text: String) throws(Malformed) {
        let bytes = Array(text.utf8)
        guard bytes.count <= Self.longest else {
            throw Malformed(reason: "it is longer than \(Self.longest) bytes", offset: Self.longest)
        }
        var (number, offset) = (Int32(0), 0)
        // The limits of a match apply at each position of a text separately; a callout before each item of the pattern
        // lets the total be limited.
        let options = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_AUTO_CALLOUT
        let compiled = bytes.withUnsafeBufferPointer { bytes in
            pcre2_compile_8(bytes.baseAddress, bytes.count, options, &number, &offset, nil)
        }
        guard let compiled else { throw Malformed(reason: Self.message(number), offset: offset) }
        self.text = text
        code = compiled
    }

    deinit { pcre2_code_free_8(code) }

    /// The result of a match.
    package enum Verdict: Sendable {
        case found, notFound
        /// The limits were reached first.
        case gaveUp
    }

    /// The verdict about the first ``longestSubject`` bytes. Any thread; takes 50 ms of it at most.
    package func verdict(_ bytes: [UInt8]) -> Verdict { verdict(bytes, Self.timeLimit).verdict }

    /// The verdict about a text, within the rest of a time that several matches share; see ``verdict(_:)``.
    package func verdict(_ bytes: [UInt8], within time: PatternTime) -> Verdict {
        guard time.left > 0 else { return .gaveUp }
        let (verdict, taken) = verdict(bytes, time.left)
        time.left -= min(taken, time.left)
        return verdict
    }

    /// - Parameter limit: nanoseconds of the thread's time.
    /// - Returns: the verdict, and the time that it took.
    private func verdict(_ bytes: [UInt8], _ limit: UInt64) -> (verdict: Verdict, taken: UInt64) {
        let context = pcre2_match_context_create_8(nil)
        let data = pcre2_match_data_create_8(1, nil)
        defer {
            pcre2_match_data_free_8(data)
            pcre2_match_context_free_8(context)
        }
        pcre2_set_match_limit_8(context, Self.matchLimit)
        pcre2_set_depth_limit_8(context, Self.depthLimit)
        let began = Self.threadTime()
        var budget = Budget(end: began + limit)
        // The budget is valid during the match, which is the only caller of the callback.
        let result = withUnsafeMutablePointer(to: &budget) { budget in
            pcre2_set_callout_8(context, { _, budget in Pattern.check(budget) }, budget)
            return bytes.withUnsafeBufferPointer { bytes in
                // A text that was cut does not end at the cut.
                let isCut = bytes.count > Self.longestSubject
                let count = isCut ? Self.longestSubject : bytes.count
                return pcre2_match_8(code, bytes.baseAddress, count, 0, isCut ? PCRE2_NOTEOL : 0, data, context)
            }
        }
        let verdict: Verdict = result >= 0 ? .found : result == PCRE2_ERROR_NOMATCH ? .notFound : .gaveUp
        return (verdict, Self.threadTime() - began)
    }

    /// The time limit of a match, for which the clock is read at intervals.
    private struct Budget {
        let end: UInt64
        var steps: UInt32 = 0
    }

    /// Checks the time.
    /// - Returns: an error of PCRE2 if the time is up.
    private static func check(_ budget: UnsafeMutableRawPointer?) -> Int32 {
        guard let budget = budget?.assumingMemoryBound(to: Budget.self) else { return 0 }
        budget.pointee.steps &+= 1
        guard budget.pointee.steps & 63 == 0, threadTime() > budget.pointee.end else { return 0 }
        return PCRE2_ERROR_MATCHLIMIT
    }

    /// The processor time of this thread in nanoseconds; a thread that waits for a processor uses none.
    package static func threadTime() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    private static func message(_ number: Int32) -> String {
        var buffer = [UInt8](repeating: 0, count: 256)
        let length = pcre2_get_error_message_8(number, &buffer, buffer.count)
        return String(decoding: buffer.prefix(max(0, Int(length))), as: UTF8.self)
    }
}

extension Pattern: Equatable {
    package static func == (a: Pattern, b: Pattern) -> Bool { a.text == b.text }
}

extension Pattern: CustomStringConvertible {
    package var description: String { text }
}

/// The processor time that all matches for one request have together: a request may have thousands of values, and each
/// of them would otherwise take a pattern's whole time. Loop-bound.
package final class PatternTime {
    /// The nanoseconds that are left.
    fileprivate(set) var left = Pattern.timeLimit

    package init() {}

    /// - Parameter left: the nanoseconds, limited to the most of one match.
    package init(_ left: UInt64) { self.left = min(left, Pattern.timeLimit) }
}

@available(*, unavailable) extension PatternTime: Sendable {}

// MARK: - Paths that look like patterns

/// Paths that look like patterns of other tools, although a path is compared exactly.
package enum PathShape {
    /// Whether a segment is `:id`, or any part is a `*` or in braces.
    package static func looksLikePattern(_ path: String) -> Bool { path.split(separator: "/").contains(where: isOpen) }

    /// A regular expression for the paths that such a path seems to mean.
    package static func expression(_ path: String) -> String {
        let segments = path.split(separator: "/", omittingEmptySubsequences: false).map { segment in
            if isParameter(segment) { return "[^/]+" }
            var result = ""
            var rest = segment
            while let character = rest.popFirst() {
                if character == "*" {
                    let isDeep = rest.first == "*"
                    if isDeep { rest.removeFirst() }
                    result += isDeep ? ".*" : "[^/]*"
                } else if character == "{", let end = rest.firstIndex(of: "}") {
                    rest = rest[rest.index(after: end)...]
                    result += "[^/]+"
                } else {
                    result += #"\.+?()[]{}^$|"#.contains(character) ? "\\\(character)" : String(character)
                }
            }
            return result
        }
        return "^" + segments.joined(separator: "/") + "$"
    }

    private static func isOpen(_ segment: Substring) -> Bool {
        if isParameter(segment) || segment.contains("*") { return true }
        guard let begin = segment.firstIndex(of: "{") else { return false }
        return segment[begin...].contains("}")
    }

    /// Whether a segment is a parameter such as `:id`.
    private static func isParameter(_ segment: Substring) -> Bool {
        guard segment.first == ":", let second = segment.dropFirst().first else { return false }
        return second.isLetter || second == "_"
    }
}
