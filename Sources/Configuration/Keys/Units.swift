// Durations, sizes, shares and ranges: the unit is always written.

import Policies

/// The mistake in a scalar, with the correct form.
struct ScalarProblem: Error, Equatable {
    let message: String
    /// Whether the mistake comes from this process's environment, such as a missing variable.
    let isOfProcess: Bool

    init(_ message: String, isOfProcess: Bool = false) {
        self.message = message
        self.isOfProcess = isOfProcess
    }
}

enum Units {
    private static let durations: [(unit: String, nanoseconds: UInt64)] = [
        ("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000), ("h", 3_600_000_000_000),
        ("d", 86_400_000_000_000),
    ]
    /// Other spellings of the units of durations, for messages.
    private static let durationWords: [(unit: String, words: [String])] = [
        ("ms", ["ms", "msec", "msecs", "millis", "millisecond", "milliseconds"]),
        ("s", ["s", "sec", "secs", "second", "seconds"]), ("m", ["m", "min", "mins", "minute", "minutes"]),
        ("h", ["h", "hr", "hrs", "hour", "hours"]), ("d", ["d", "day", "days"]),
    ]
    /// The longest duration in nanoseconds: a hundred years, so that sums of times never overflow.
    private static let longest: UInt64 = 36_500 * 86_400_000_000_000
    private static let sizes: [(unit: String, shift: Int)] = [
        ("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0),
    ]
    private static let durationHelp = "write a number and a unit, such as 250ms, 5s, 2m, 2h or 7d"
    private static let sizeHelp = "write a whole number and a unit, such as 64KiB, 256MiB or 10GiB"

    /// Parses a duration such as `250ms`, `5s`, `2m`, `2h` or `7d`, in nanoseconds.
    static func duration(_ text: String) throws(ScalarProblem) -> UInt64 {
        let (number, unit) = split(text)
        guard !number.isEmpty else { throw ScalarProblem("'\(text)' is not a duration; \(durationHelp)") }
        guard let count = Digits.parse(number) else {
            throw ScalarProblem("'\(text)' is not a whole number with a unit; write 1500ms instead of 1.5s")
        }
        if unit.isEmpty { throw ScalarProblem("a duration needs a unit; write \(number)s or \(number)ms") }
        guard let known = durations.first(where: { $0.unit == unit }) else {
            let lower = unit.trimmedSpaces.lowercased()
            if let right = durationWords.first(where: { $0.words.contains(lower) })?.unit {
                throw ScalarProblem("unknown unit '\(unit.trimmedSpaces)'; write \(number)\(right)")
            }
            throw ScalarProblem("unknown unit '\(unit.trimmedSpaces)' for a duration; \(durationHelp)")
        }
        let (product, overflow) = UInt64(count).multipliedReportingOverflow(by: known.nanoseconds)
        guard !overflow, product <= longest else {
            throw ScalarProblem("'\(text)' is longer than 36500d, the longest duration; write a shorter one")
        }
        return product
    }

    /// Parses a duration of whole seconds, in nanoseconds.
    static func lifetime(_ text: String) throws(ScalarProblem) -> UInt64 {
        let nanoseconds = try duration(text)
        guard nanoseconds % 1_000_000_000 == 0 else {
            throw ScalarProblem(
                "'\(text)' is not a whole number of seconds, and lifetimes are counted in seconds; write 1s or more"
            )
        }
        return nanoseconds
    }

    /// Parses a duration with or without a sign, such as `-1h`, in seconds.
    static func shift(_ text: String) throws(ScalarProblem) -> Int64 {
        let hasSign = text.hasPrefix("-") || text.hasPrefix("+")
        let seconds = Int64(try lifetime(hasSign ? String(text.dropFirst()) : text) / 1_000_000_000)
        return text.hasPrefix("-") ? -seconds : seconds
    }

    /// Parses a size such as `64KiB`, `256MiB`, `10GiB` or `100B`, in bytes.
    static func size(_ text: String) throws(ScalarProblem) -> Int {
        let (number, unit) = split(text)
        guard !number.isEmpty else { throw ScalarProblem("'\(text)' is not a size; \(sizeHelp)") }
        guard let count = Digits.parse(number) else { throw ScalarProblem("'\(text)' is not a size; \(sizeHelp)") }
        if unit.isEmpty { throw ScalarProblem("a size needs a unit; write \(sizeText(count))") }
        guard let known = sizes.first(where: { $0.unit == unit }) else {
            let lower = unit.trimmedSpaces.lowercased()
            let right = sizes.first { size in
                let letter = size.unit.prefix(1).lowercased()
                return [letter, letter + "b", letter + "ib", letter + "ytes", letter + "yte"].contains(lower)
            }
            if let right {
                throw ScalarProblem("unknown unit '\(unit.trimmedSpaces)'; write \(number)\(right.unit)")
            }
            throw ScalarProblem("unknown unit '\(unit.trimmedSpaces)' for a size; \(sizeHelp)")
        }
        let (product, overflow) = count.multipliedReportingOverflow(by: 1 << known.shift)
        guard !overflow, product <= 1 << 53 else {
            throw ScalarProblem("'\(text)' is larger than 8192TiB, the largest size; write a smaller one")
        }
        return product
    }

    /// Parses a percentage such as `5%` or `0.5%`, as 0...1.
    static func share(_ text: String) throws(ScalarProblem) -> Double {
        let body = text.hasSuffix("%") ? String(text.dropLast()) : text
        guard let value = Double(body), value.isFinite, body.utf8.allSatisfy({ $0 == 46 || ($0 >= 48 && $0 <= 57) })
        else {
            throw ScalarProblem("'\(text)' is not a percentage; write it like 20%")
        }
        guard text.hasSuffix("%") else {
            let right = value <= 1 && body.contains(".") ? percentText(value) : "\(body)%"
            throw ScalarProblem("a percentage needs a percent sign; write \(right)")
        }
        guard value <= 100 else { throw ScalarProblem("'\(text)' is more than 100%") }
        return value / 100
    }

    /// Parses a range of durations such as `200ms..900ms`, or one duration, in nanoseconds.
    static func latency(_ text: String) throws(ScalarProblem) -> ClosedRange<UInt64> {
        guard let dots = text.firstRange(of: "..") else {
            let one = try duration(text)
            return one...one
        }
        let low = try duration(String(text[..<dots.lowerBound]).trimmedSpaces)
        let high = try duration(String(text[dots.upperBound...]).trimmedSpaces)
        guard low <= high else {
            throw ScalarProblem("the range '\(text)' ends before it begins; write the smaller duration first")
        }
        return low...high
    }

    /// Parses a distribution: the forms of ``latency(_:)``, `normal(250ms, 50ms)`, `lognormal(80ms, p99=900ms)`,
    /// `learned` or `learned(api, x1.5)`.
    static func distribution(_ text: String) throws(ScalarProblem) -> LatencyPolicy {
        if text == "learned" { return LatencyPolicy(.learned(LearnedLatencyPolicy())) }
        guard let open = text.firstIndex(of: "("), text.hasSuffix(")") else {
            if text.contains("("), !text.contains(")") {
                throw ScalarProblem(
                    "'\(text)' ends at a comma, as it stands in braces or brackets; write it in quotes: \"\(text), …)\""
                )
            }
            return LatencyPolicy(.uniform(try latency(text)))
        }
        let name = String(text[..<open]).trimmedSpaces
        let numbers = text[text.index(after: open)...].dropLast().split(
            separator: ",",
            omittingEmptySubsequences: false
        )
        .map { String($0).trimmedSpaces }
        if name == "learned" { return LatencyPolicy(.learned(try learned(numbers))) }
        guard ["normal", "lognormal"].contains(name), numbers.count == 2 else {
            throw ScalarProblem(
                "does not know '\(text)'; write normal(MEAN, DEVIATION) or lognormal(MEDIAN, p99=P99), each with a unit, or learned(SERVICE/ENDPOINT, x1.5)"
            )
        }
        let first = try duration(numbers[0])
        if name == "normal" { return LatencyPolicy(.normal(mean: first, deviation: try duration(numbers[1]))) }
        let p99 = numbers[1].hasPrefix("p99=") ? String(numbers[1].dropFirst(4)) : numbers[1]
        let shape = LatencyPolicy.Shape.lognormal(median: first, p99: try duration(p99))
        if let problem = problem(of: shape) { throw ScalarProblem(problem) }
        return LatencyPolicy(shape)
    }

    /// Parses the arguments of `learned`: a label, a factor, or both in this order.
    private static func learned(_ words: [String]) throws(ScalarProblem) -> LearnedLatencyPolicy {
        var result = LearnedLatencyPolicy()
        var rest = words[...]
        if let times = rest.last.flatMap(factor) {
            result.times = times
            rest = rest.dropLast()
        }
        if let source = rest.popFirst() { result.source = try TextRule.learnedLabel.check(source) }
        guard rest.isEmpty else {
            throw ScalarProblem("does not know '\(rest[rest.startIndex])'; write learned(SERVICE/ENDPOINT, x1.5)")
        }
        return result
    }

    /// Parses a factor such as `x1.5`, from a thousandth to a thousand; nil if the text is none.
    static func factor(_ text: String) -> Double? {
        let number = text.dropFirst()
        guard text.hasPrefix("x"), number.utf8.allSatisfy({ $0 == 46 || (48...57).contains($0) }),
            let value = Double(number), 0.001...1000 ~= value
        else { return nil }
        return value
    }

    /// The mistake in the numbers of a distribution; nil if there is none.
    static func problem(of shape: LatencyPolicy.Shape) -> String? {
        switch shape {
        case .uniform, .normal, .learned: nil
        case .lognormal(let median, let p99):
            median > 0 && p99 >= median
                ? nil
                : "has a median of nothing, or one that is above its 99th percentile; write the smaller duration first"
        case .percentiles(let points):
            if points.isEmpty {
                "has no percentile; write one, such as { 50: 80ms }"
            } else if zip(points, points.dropFirst()).allSatisfy({ $0.latency <= $1.latency }) {
                nil
            } else {
                "has a percentile that is shorter than a lower one; write rising durations"
            }
        }
    }

    /// Parses a rate such as `64KiB/s`, in bytes per second.
    static func rate(_ text: String) throws(ScalarProblem) -> Int {
        guard text.hasSuffix("/s") else {
            throw ScalarProblem("'\(text)' is no size in each second; write it like 64KiB/s")
        }
        let rate = try size(String(text.dropLast(2)))
        guard rate > 0 else { throw ScalarProblem("'\(text)' would send nothing; write 1B/s or more") }
        return rate
    }

    /// The shortest text of a size that is exact.
    static func sizeText(_ bytes: Int) -> String {
        for (unit, shift) in sizes where bytes != 0 && bytes % (1 << shift) == 0 { return "\(bytes >> shift)\(unit)" }
        return "\(bytes)B"
    }

    private static func percentText(_ share: Double) -> String {
        let percent = (share * 1000).rounded() / 10
        return percent == percent.rounded() ? "\(Int(percent))%" : "\(percent)%"
    }

    /// Splits a text into its leading digits and dots, and the rest.
    private static func split(_ text: String) -> (number: String, unit: String) {
        let number = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
        return (String(number), String(text.dropFirst(number.count)))
    }
}

extension String {
    /// The text without spaces and tabs at both ends.
    var trimmedSpaces: String {
        guard let first = firstIndex(where: { $0 != " " && $0 != "\t" }),
            let last = lastIndex(where: { $0 != " " && $0 != "\t" })
        else { return "" }
        return String(self[first...last])
    }
}

/// Durations of whole seconds as text, such as `59s`, `2m`, `2h` or `7d`, for uses outside of a configuration file.
package enum Lifetimes {
    /// The mistake in a text, with the correct form.
    package struct Malformed: Error, Equatable, CustomStringConvertible {
        package let description: String
    }

    /// Parses a duration in seconds: a number and one of the units `s`, `m`, `h` and `d`, at most 36500d.
    /// - Throws: ``Malformed`` if the unit is missing or unknown, or for a part of a second.
    package static func seconds(_ text: String) throws(Malformed) -> Int64 {
        do throws(ScalarProblem) {
            return Int64(try Units.lifetime(text) / 1_000_000_000)
        } catch {
            throw Malformed(description: error.message)
        }
    }

    /// The shortest text of a duration that is exact, in one unit.
    package static func text(_ seconds: Int64) -> String {
        for (unit, length) in [("d", Int64(86_400)), ("h", 3600), ("m", 60)] where seconds != 0 && seconds % length == 0
        {
            return "\(seconds / length)\(unit)"
        }
        return "\(seconds)s"
    }
}

/// Sizes as text, such as `64KiB`, `256MiB` or `10GiB`.
package enum Sizes {
    /// Parses a size in bytes.
    /// - Throws: ``Lifetimes/Malformed`` if the unit is missing or unknown.
    package static func bytes(_ text: String) throws(Lifetimes.Malformed) -> Int {
        do throws(ScalarProblem) {
            return Int(clamping: try Units.size(text))
        } catch {
            throw Lifetimes.Malformed(description: error.message)
        }
    }
}
