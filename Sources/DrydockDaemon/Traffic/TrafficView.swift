// The picture of `drydock top`: rates as lines of a given width.

/// What a person has chosen to see.
package struct TrafficView: Sendable, Equatable {
    /// The column by which services are sorted, the greatest first.
    package enum Order: String, CaseIterable, Sendable {
        case requests, hits, errors, time, saved, waiting, name
    }

    package var order = Order.requests
    package var isReversed = false
    /// Only services whose names contain it are shown.
    package var filter = ""
    package var isPaused = false

    package init() {}

    private struct Column {
        let title: String
        let width: Int
        let text: (TrafficRates.Row) -> String
    }

    /// The lines of a picture, each of at most `width` characters, and at most `height` of them.
    package func lines(_ rates: TrafficRates, _ now: AdminTraffic, version: String, width: Int, height: Int) -> [String]
    {
        var lines = head(rates, now, version: version)
        let columns = Self.columns(width)
        let names = max(8, width - columns.reduce(0) { $0 + $1.width + 1 })
        lines.append("")
        lines.append(Self.padded("SERVICE", names) + columns.map { " " + Self.right($0.title, $0.width) }.joined())
        let rows = shown(rates.services)
        let room = max(0, height - lines.count)
        for row in rows.prefix(rows.count > room ? max(0, room - 1) : room) {
            let name = row.name.isEmpty ? "(none)" : row.name
            lines.append(Self.padded(name, names) + columns.map { " " + Self.right($0.text(row), $0.width) }.joined())
        }
        if rows.count > room, room > 0 { lines.append("... \(rows.count - room + 1) more") }
        return lines.prefix(height).map { String($0.prefix(width)) }
    }

    /// Services in the chosen order; those without anything to tell come last.
    func shown(_ rows: [TrafficRates.Row]) -> [TrafficRates.Row] {
        func key(_ row: TrafficRates.Row) -> Double {
            switch order {
            case .requests: row.answers
            case .hits: row.hitRatio ?? -1
            case .errors: row.failureRatio ?? -1
            case .time: row.percentiles?[1] ?? -1
            case .saved: row.saved
            case .waiting: Double(row.waiting + row.parked)
            case .name: 0
            }
        }
        let found = rows.filter { filter.isEmpty || $0.name.contains(filter) }
        let sorted = found.sorted { first, second in
            let (one, two) = (key(first), key(second))
            return one == two ? first.name < second.name : one > two
        }
        return isReversed ? sorted.reversed() : sorted
    }

    private func head(_ rates: TrafficRates, _ now: AdminTraffic, version: String) -> [String] {
        let all = rates.all
        let connections = BatchProgress.count(now.connections, "connection")
        var first = "drydock \(version)  up \(Self.time(now.uptime))  \(connections)"
        if now.isOffline { first += "  OFFLINE" }
        first += "  by \(order.rawValue)"
        if !filter.isEmpty { first += "  only *\(filter)*" }
        if isPaused { first += "  PAUSED" }
        var second = "\(Self.number(all.answers)) requests/s"
        if let ratio = all.hitRatio { second += "  \(Self.percent(ratio)) hits" }
        if let ratio = all.failureRatio { second += "  \(Self.percent(ratio)) failures" }
        second += "  \(Self.size(all.saved))/s saved"
        if all.sent > 0 { second += " (\(Self.percent(all.saved / all.sent)))" }
        var third = "fetches \(all.fetches)  fills \(now.fills)  waiting \(all.waiting)  parked \(all.parked)"
        let open = now.services.count { $0.breaker != nil }
        third += "  breakers open \(open)"
        var fourth = "memory \(Self.size(Double(now.memory))) of \(Self.size(Double(now.memoryLimit)))"
        if let disk = now.disk, let limit = now.diskLimit {
            fourth += "  disk \(Self.size(Double(disk))) of \(Self.size(Double(limit)))"
        }
        return [first, second, third, fourth]
    }

    /// The columns that a width has room for, beside 16 characters of names.
    private static func columns(_ width: Int) -> [Column] {
        func time(_ index: Int) -> (TrafficRates.Row) -> String {
            { $0.percentiles.map { Self.time($0[index]) } ?? "-" }
        }
        let all = [
            Column(title: "REQ/S", width: 7) { number($0.answers) },
            Column(title: "HIT", width: 5) { $0.hitRatio.map { percent($0) } ?? "-" },
            Column(title: "5XX", width: 5) { $0.failureRatio.map { percent($0) } ?? "-" },
            Column(title: "P50", width: 6, text: time(0)), Column(title: "P95", width: 6, text: time(1)),
            Column(title: "P99", width: 6, text: time(2)),
            Column(title: "SAVED/S", width: 8) { size($0.saved) },
            Column(title: "FETCH", width: 5) { "\($0.fetches)" }, Column(title: "WAIT", width: 5) { "\($0.waiting)" },
            Column(title: "SENT/S", width: 8) { size($0.sent) },
            Column(title: "ORIGIN/S", width: 8) { number($0.originRequests) },
            Column(title: "ORIGERR/S", width: 9) { number($0.originErrors) },
            Column(title: "RETRIES/S", width: 9) { number($0.retries) },
            Column(title: "REFUSED/S", width: 9) { number($0.refused) },
            Column(title: "PARKED", width: 6) { "\($0.parked)" },
            Column(title: "BREAKER", width: 9) { $0.breaker ?? "-" },
        ]
        var taken = 16
        return Array(
            all.prefix { column in
                taken += column.width + 1
                return taken <= width
            }
        )
    }

    // MARK: - Texts

    private static func padded(_ text: String, _ width: Int) -> String {
        let text = text.count > width ? String(text.prefix(width - 1)) + "…" : text
        return text + String(repeating: " ", count: width - text.count)
    }

    private static func right(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }

    /// Three digits are enough to compare by.
    static func number(_ value: Double) -> String {
        switch value {
        case ..<0.05: "0"
        case ..<10: tenths(value)
        case ..<10_000: "\(Int(value.rounded()))"
        case ..<10_000_000: "\(Int((value / 1_000).rounded()))k"
        default: "\(Int((value / 1_000_000).rounded()))M"
        }
    }

    private static func tenths(_ value: Double) -> String {
        let tenths = Int((value * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }

    static func percent(_ part: Double) -> String {
        let whole = min(1, max(0, part)) * 100
        // What is not all of it does not look like all of it.
        if whole > 99.5, whole < 100 { return "99%" }
        if whole > 0, whole < 1 { return "<1%" }
        return "\(Int(whole.rounded()))%"
    }

    static func size(_ bytes: Double) -> String {
        var (value, unit) = (max(0, bytes), 0)
        let units = ["B", "K", "M", "G", "T"]
        while value >= 1_000, unit < units.count - 1 {
            value /= 1_024
            unit += 1
        }
        return (unit == 0 || value >= 10 ? "\(Int(value.rounded()))" : tenths(value)) + units[unit]
    }

    static func time(_ seconds: Double) -> String {
        switch seconds {
        case ..<0.01: tenths(seconds * 1_000) + "ms"
        case ..<1: "\(Int((seconds * 1_000).rounded()))ms"
        case ..<10: tenths(seconds) + "s"
        case ..<120: "\(Int(seconds.rounded()))s"
        case ..<7_200: "\(Int(seconds / 60))m"
        case ..<172_800: "\(Int(seconds / 3_600))h"
        default: "\(Int(seconds / 86_400))d"
        }
    }
}
