// The progress of a batch as a line of text: a bar for terminals, a sentence for everything else.

package import DownloadCore
import ProxyServer

/// The lines about a job's totals; sizes are bytes.
package struct BatchProgress: Sendable, Equatable {
    let totals: BatchTotals

    package init(_ totals: BatchTotals) { self.totals = totals }

    /// The number of items that are done or have failed; cancelled ones are not counted.
    package var ended: Int { totals.done + totals.failed }

    /// True if no item is queued or running any more.
    private var isOver: Bool { totals.queued + totals.running == 0 }

    /// The share of items whose sizes have been looked up, from 0 to 1.
    private var checkedShare: Double { totals.items == 0 ? 1 : Double(totals.checked) / Double(totals.items) }

    /// The share that is done, from 0 to 1: of the bytes if all sizes are known, else of the items; 1 for an empty
    /// batch.
    package var share: Double {
        if totals.unknownSize == 0, totals.bytes > 0, totals.remaining > 0 {
            return Double(totals.bytes - totals.remaining) / Double(totals.bytes)
        }
        return totals.items == 0 ? 1 : Double(ended) / Double(totals.items)
    }

    /// The line `[########------------]  40%  1.2 of 3.0 MiB  12/30 items  1 failed  512.0 KiB/s`, cut to the width.
    /// - Parameters:
    ///   - columns: the width of the terminal.
    ///   - seconds: seconds since the first line.
    ///   - before: bytes that had been received by the first line.
    package func bar(columns: Int, seconds: Double, since before: Int64) -> String {
        var parts = [Self.percent(share)]
        if totals.bytes > 0 || totals.received > 0 { parts.append(amount) }
        parts.append("\(ended)/\(Self.count(totals.items, "item"))")
        parts += losses
        if seconds >= 1, totals.received > before {
            let rate = Double(totals.received - before) / seconds
            parts.append("\(Self.size(Int64(rate)))/s")
            if totals.unknownSize == 0, totals.remaining > 0, rate > 0 {
                parts.append("\(Self.time(Double(totals.remaining) / rate)) left")
            }
        }
        let text = parts.joined(separator: "  ")
        return Self.bar(share, text, columns)
    }

    /// The line while sizes are looked up: `[########]  100%  30/30 items  1.2 MiB to download  1 failed`.
    package func checkBar(columns: Int) -> String {
        var parts = [Self.percent(checkedShare), "\(totals.checked)/\(Self.count(totals.items, "item"))"]
        if totals.remaining > 0 { parts.append("\(Self.size(totals.remaining)) to download") }
        if totals.failed > 0 { parts.append("\(totals.failed) failed") }
        return Self.bar(checkedShare, parts.joined(separator: "  "), columns)
    }

    private static func bar(_ share: Double, _ text: String, _ columns: Int) -> String {
        let room = columns - 1 - text.count - 4
        guard room >= 8 else { return String(text.prefix(max(0, columns - 1))) }
        let length = min(room, 40)
        let filled = min(length, Int(share * Double(length)))
        return "[" + String(repeating: "#", count: filled) + String(repeating: "-", count: length - filled) + "]  "
            + text
    }

    /// The progress as a sentence: `12 of 30 items, 1.2 of 3.0 MiB, 1 failed`.
    package var sentence: String {
        var parts = ["\(ended) of \(Self.count(totals.items, "item"))"]
        if totals.bytes > 0 || totals.received > 0 { parts.append(amount) }
        if totals.unknownSize > 0 { parts.append("\(totals.unknownSize) of unknown size") }
        return (parts + losses).joined(separator: ", ")
    }

    /// The progress of looking up sizes as a sentence: `12 of 30 items looked at, 1.2 MiB to download, 1 failed`.
    package var checkSentence: String {
        var parts = ["\(totals.checked) of \(Self.count(totals.items, "item")) looked at"]
        if totals.remaining > 0 { parts.append("\(Self.size(totals.remaining)) to download") }
        if totals.failed > 0 { parts.append("\(totals.failed) failed") }
        return parts.joined(separator: ", ")
    }

    /// The last line of `drydock size`.
    package var sizes: String {
        let wanted = totals.queued + totals.running
        var parts = [
            "\(wanted) to download, \(Self.size(totals.remaining))"
                + (totals.unknownSize > 0 ? " and \(totals.unknownSize) of unknown size" : "")
        ]
        if totals.valid > 0 { parts.append("\(totals.valid) valid") }
        parts += rest
        return "\(Self.count(totals.items, "item")): " + parts.joined(separator: ", ")
    }

    /// The last line of `drydock prefetch`.
    package var summary: String {
        let came = totals.done - totals.valid - totals.duplicates
        var parts = [
            "\(came) downloaded, \(Self.size(totals.received))"
                + (totals.notStored > 0 ? " (\(totals.notStored) not stored)" : "")
        ]
        if totals.valid > 0 { parts.append("\(totals.valid) valid") }
        if totals.queued > 0 { parts.append("\(totals.queued) not begun") }
        return "\(Self.count(totals.items, "item")): " + (parts + rest).joined(separator: ", ")
    }

    /// The last line of `drydock run`.
    package var calls: String {
        let parts = ["\(totals.done) done"] + (totals.queued > 0 ? ["\(totals.queued) not begun"] : []) + losses
        return "\(Self.count(totals.items, "call")): " + parts.joined(separator: ", ")
    }

    private var rest: [String] {
        var parts: [String] = []
        if totals.duplicates > 0 { parts.append(Self.count(totals.duplicates, "duplicate")) }
        return parts + losses
    }

    private var losses: [String] {
        (totals.cancelled > 0 ? ["\(totals.cancelled) cancelled"] : [])
            + (totals.failed > 0 ? ["\(totals.failed) failed"] : [])
    }

    private var amount: String {
        if isOver { return Self.size(totals.received) }
        return totals.bytes > 0
            ? "\(Self.size(max(0, totals.bytes - totals.remaining))) of \(Self.size(totals.bytes))"
            : Self.size(totals.received)
    }

    /// A number with its noun, such as `1 rule` or `2 rules`.
    /// - Parameter many: the noun's plural; nil if it ends with an s.
    package static func count(_ number: Int, _ noun: String, _ many: String? = nil) -> String {
        "\(number) \(number == 1 ? noun : many ?? noun + "s")"
    }

    /// A number of bytes for people, in the largest binary unit that fits: `12 B`, `1.2 MiB`.
    package static func size(_ bytes: Int64) -> String {
        let units = ["B", "KiB", "MiB", "GiB", "TiB"]
        var (unit, one): (Int, Int64) = (0, 1)
        while bytes / one >= 1024, unit < units.count - 1 { (unit, one) = (unit + 1, one * 1024) }
        guard unit > 0 else { return "\(bytes) B" }
        let (tenths, rest) = (bytes % one * 10).quotientAndRemainder(dividingBy: one)
        // The number is rounded to the nearest tenth, and to the even one if two are equally near.
        let isMore = rest * 2 > one || rest * 2 == one && tenths % 2 == 1
        let rounded = bytes / one * 10 + tenths + (isMore ? 1 : 0)
        return "\(rounded / 10).\(rounded % 10) \(units[unit])"
    }

    /// A duration as `3:07`, or as `1:02:03` from an hour on.
    static func time(_ seconds: Double) -> String {
        let seconds = Int(min(seconds.rounded(.up), 359_999))
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60)
        let rest = padded(seconds % 60, 2, "0")
        return hours == 0 ? "\(minutes):\(rest)" : "\(hours):\(padded(minutes, 2, "0")):\(rest)"
    }

    /// A percentage of three digits, ` 40%`, so that the bars of all lines begin in one column.
    private static func percent(_ share: Double) -> String { padded(Int(share * 100), 3, " ") + "%" }

    private static func padded(_ number: Int, _ width: Int, _ filler: String) -> String {
        let digits = String(number)
        return String(repeating: filler, count: max(0, width - digits.utf8.count)) + digits
    }
}
