// How far a batch is, as a line of text: a bar for terminals, a sentence for everything else.

/// What the lines are made of; sizes are bytes.
package struct BatchProgress: Sendable, Equatable, Decodable {
    package var items: Int
    package var queued: Int
    package var running: Int
    package var done: Int
    package var failed: Int
    package var cancelled: Int
    package var checked: Int
    package var duplicates: Int
    package var valid: Int
    package var notStored: Int
    package var unknownSize: Int
    package var bytes: Int64
    package var received: Int64
    package var remaining: Int64

    /// Items that have come to an end of their own: what is cancelled has not.
    package var ended: Int { done + failed }

    /// Nothing more comes.
    private var isOver: Bool { queued + running == 0 }

    /// From 0 to 1: how many items have been looked at.
    private var checkedShare: Double { items == 0 ? 1 : Double(checked) / Double(items) }

    /// From 0 to 1: of the bytes where all sizes are known, else of the items; an empty batch is done.
    package var share: Double {
        if unknownSize == 0, bytes > 0, remaining > 0 { return Double(bytes - remaining) / Double(bytes) }
        return items == 0 ? 1 : Double(ended) / Double(items)
    }

    /// `[########------------]  40%  1.2 of 3.0 MiB  12/30 items  1 failed  512.0 KiB/s`, cut to the width.
    /// - Parameters:
    ///   - columns: of the terminal.
    ///   - seconds: since the first line.
    ///   - before: bytes that had come by the first line.
    package func bar(columns: Int, seconds: Double, since before: Int64) -> String {
        var parts = [Self.percent(share)]
        if bytes > 0 || received > 0 { parts.append(amount) }
        parts.append("\(ended)/\(items) items")
        parts += losses
        if seconds >= 1, received > before {
            let rate = Double(received - before) / seconds
            parts.append("\(Self.size(Int64(rate)))/s")
            if unknownSize == 0, remaining > 0, rate > 0 { parts.append("\(Self.time(Double(remaining) / rate)) left") }
        }
        let text = parts.joined(separator: "  ")
        return Self.bar(share, text, columns)
    }

    /// The same while sizes are looked for: `[########]  100%  30/30 items  1.2 MiB to download  1 failed`.
    package func checkBar(columns: Int) -> String {
        var parts = [Self.percent(checkedShare), "\(checked)/\(items) items"]
        if remaining > 0 { parts.append("\(Self.size(remaining)) to download") }
        if failed > 0 { parts.append("\(failed) failed") }
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

    /// `12 of 30 items, 1.2 of 3.0 MiB, 1 failed`.
    package var sentence: String {
        var parts = ["\(ended) of \(items) items"]
        if bytes > 0 || received > 0 { parts.append(amount) }
        if unknownSize > 0 { parts.append("\(unknownSize) of unknown size") }
        return (parts + losses).joined(separator: ", ")
    }

    /// `12 of 30 items looked at, 1.2 MiB to download, 1 failed`.
    package var checkSentence: String {
        var parts = ["\(checked) of \(items) items looked at"]
        if remaining > 0 { parts.append("\(Self.size(remaining)) to download") }
        if failed > 0 { parts.append("\(failed) failed") }
        return parts.joined(separator: ", ")
    }

    /// What `drydock size` ends with.
    package var sizes: String {
        let wanted = queued + running
        var parts = [
            "\(wanted) to download, \(Self.size(remaining))"
                + (unknownSize > 0 ? " and \(unknownSize) of unknown size" : "")
        ]
        if valid > 0 { parts.append("\(valid) valid") }
        parts += rest
        return "\(Self.count(items, "item")): " + parts.joined(separator: ", ")
    }

    /// What `drydock prefetch` ends with.
    package var summary: String {
        let came = done - valid - duplicates
        var parts = ["\(came) downloaded, \(Self.size(received))" + (notStored > 0 ? " (\(notStored) not stored)" : "")]
        if valid > 0 { parts.append("\(valid) valid") }
        if queued > 0 { parts.append("\(queued) not begun") }
        return "\(Self.count(items, "item")): " + (parts + rest).joined(separator: ", ")
    }

    private var rest: [String] {
        var parts: [String] = []
        if duplicates > 0 { parts.append(Self.count(duplicates, "duplicate")) }
        return parts + losses
    }

    private var losses: [String] {
        (cancelled > 0 ? ["\(cancelled) cancelled"] : []) + (failed > 0 ? ["\(failed) failed"] : [])
    }

    private var amount: String {
        if isOver { return Self.size(received) }
        return bytes > 0 ? "\(Self.size(max(0, bytes - remaining))) of \(Self.size(bytes))" : Self.size(received)
    }

    private static func count(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }

    /// Bytes as people read them.
    package static func size(_ bytes: Int64) -> String {
        let units = ["B", "KiB", "MiB", "GiB", "TiB"]
        var (unit, one): (Int, Int64) = (0, 1)
        while bytes / one >= 1024, unit < units.count - 1 { (unit, one) = (unit + 1, one * 1024) }
        guard unit > 0 else { return "\(bytes) B" }
        let (tenths, rest) = (bytes % one * 10).quotientAndRemainder(dividingBy: one)
        // To the nearest tenth; of two that are as near, to the even one.
        let isMore = rest * 2 > one || rest * 2 == one && tenths % 2 == 1
        let rounded = bytes / one * 10 + tenths + (isMore ? 1 : 0)
        return "\(rounded / 10).\(rounded % 10) \(units[unit])"
    }

    /// `3:07`, or `1:02:03` from an hour on.
    static func time(_ seconds: Double) -> String {
        let seconds = Int(min(seconds.rounded(.up), 359_999))
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60)
        let rest = padded(seconds % 60, 2, "0")
        return hours == 0 ? "\(minutes):\(rest)" : "\(hours):\(padded(minutes, 2, "0")):\(rest)"
    }

    /// ` 40%`: the bars of all shares begin in one column.
    private static func percent(_ share: Double) -> String { padded(Int(share * 100), 3, " ") + "%" }

    private static func padded(_ number: Int, _ width: Int, _ filler: String) -> String {
        let digits = String(number)
        return String(repeating: filler, count: max(0, width - digits.utf8.count)) + digits
    }
}
