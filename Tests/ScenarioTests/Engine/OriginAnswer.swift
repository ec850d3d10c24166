// One answer of the scripted origin: conditions, ranges and framing of a block for one request.

import Foundation
import TestSupport

struct OriginAnswer {
    let block: OriginSide.Block
    let request: OriginRequest
    /// The daemon's time, for Date.
    let now: Int64

    private var script: OriginScript { block.script }
    private var isHead: Bool { request.method == "HEAD" }

    var reply: OriginReply {
        if script.drops { return .cut }
        var steps = script.interims.map { interim in
            OriginReply.text("HTTP/1.1 \(interim.status) Interim\r\n" + lines(interim.fields) + "\r\n")
        }
        if script.holds { steps.append(.wait(block.gate)) }
        if let raw = script.raw {
            steps.append(.bytes(raw))
            if script.closes { steps.append(.cut) }
        } else if isNotModified {
            steps.append(notModified)
        } else if let part = part {
            steps += part
        } else {
            steps += whole(script.status, script.fields, block.body)
        }
        return OriginReply(steps)
    }

    // MARK: - Conditions

    private var isNotModified: Bool {
        guard !script.isUnconditional, script.status == 200, request.method == "GET" || isHead else { return false }
        let conditions = request.all("If-None-Match")
        if !conditions.isEmpty {
            let tags = conditions.joined(separator: ",").split(separator: ",").map { weak($0) }
            guard let tag = value("ETag") else { return false }
            return tags.contains("*") || tags.contains(weak(tag[...]))
        }
        guard let since = request.field("If-Modified-Since").flatMap(DateForm.seconds),
            let modified = value("Last-Modified").flatMap(DateForm.seconds)
        else { return false }
        return modified <= since
    }

    /// With what RFC 9110 section 15.4.5 lists, and the targeted field that stands in for Cache-Control.
    private var notModified: OriginReply.Step {
        let kept = ["cache-control", "content-location", "etag", "expires", "vary", "cdn-cache-control", "date"]
        return head(304, script.fields.filter { kept.contains($0.name.lowercased()) })
    }

    private func weak(_ tag: Substring) -> String {
        let trimmed = tag.trimmingCharacters(in: .whitespaces)
        return trimmed.hasPrefix("W/") ? String(trimmed.dropFirst(2)) : trimmed
    }

    // MARK: - Ranges

    /// The answer to a Range with one range (RFC 9110 section 14.2), nil where the whole is right.
    private var part: [OriginReply.Step]? {
        guard script.honoursRanges, script.status == 200, request.method == "GET", let range = request.field("Range"),
            range.hasPrefix("bytes="), !range.contains(","), ifRangeHolds
        else { return nil }
        let ends = range.dropFirst(6).split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard ends.count == 2 else { return nil }
        let count = block.body.count
        let bounds: Range<Int>
        switch (Int(ends[0]), Int(ends[1])) {
        case (let first?, let last?) where first <= last: bounds = first..<max(first, min(last + 1, count))
        case (let first?, nil) where ends[1].isEmpty: bounds = first..<max(first, count)
        case (nil, let suffix?) where ends[0].isEmpty: bounds = max(0, count - suffix)..<count
        default: return nil
        }
        guard !bounds.isEmpty, bounds.upperBound <= count else {
            return whole(416, script.fields + [ScriptField(name: "Content-Range", value: "bytes */\(count)")], [])
        }
        let value = "bytes \(bounds.lowerBound)-\(bounds.upperBound - 1)/\(count)"
        let fields = script.fields + [ScriptField(name: "Content-Range", value: value)]
        return whole(206, fields, Array(block.body[bounds]))
    }

    private var ifRangeHolds: Bool {
        guard let condition = request.field("If-Range") else { return true }
        if condition.hasPrefix("\"") { return condition == value("ETag") }
        return !condition.hasPrefix("W/") && condition == value("Last-Modified")
    }

    // MARK: - Heads and bodies

    private func value(_ name: String) -> String? {
        script.fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }

    private func lines(_ fields: [ScriptField]) -> String {
        fields.map { "\($0.name): \($0.value)\r\n" }.joined()
    }

    private func head(_ status: Int, _ fields: [ScriptField]) -> OriginReply.Step {
        var text = "HTTP/1.1 \(status) \(status == script.status ? script.reason : "Scripted")\r\n"
        if !script.omitted.contains("date"), !fields.contains(where: { $0.name.lowercased() == "date" }) {
            text += "Date: \(DateForm.preferred.text(now))\r\n"
        }
        return OriginReply.text(text + lines(fields) + "\r\n")
    }

    private func whole(_ status: Int, _ fields: [ScriptField], _ body: [UInt8]) -> [OriginReply.Step] {
        let isBodiless = status == 204 || status == 304 || (100..<200).contains(status)
        let isChunked = script.isChunked || !script.trailers.isEmpty
        let names = Set(fields.map { $0.name.lowercased() })
        var fields = fields
        if isBodiless || names.contains("content-length") || names.contains("transfer-encoding") {
        } else if isChunked {
            fields.append(ScriptField(name: "Transfer-Encoding", value: "chunked"))
        } else if !script.closes, !script.hasNoLength, !script.omitted.contains("content-length") {
            fields.append(ScriptField(name: "Content-Length", value: "\(body.count)"))
        }
        var steps = [head(status, fields)]
        guard !isBodiless, !isHead else { return steps }
        steps += pieces(of: body).map { piece in
            guard case .bytes(let bytes) = piece, isChunked else { return piece }
            return .bytes(Array("\(String(bytes.count, radix: 16))\r\n".utf8) + bytes + Array("\r\n".utf8))
        }
        if script.cut != nil { return steps + [.cut] }
        if isChunked { steps.append(OriginReply.text("0\r\n" + lines(script.trailers) + "\r\n")) }
        if script.closes || script.hasNoLength, !isChunked { steps.append(.cut) }
        return steps
    }

    /// The body up to where it is cut, with a wait where it is held.
    private func pieces(of body: [UInt8]) -> [OriginReply.Step] {
        let end = min(script.cut ?? body.count, body.count)
        let hold = script.holdsBody.map { min($0, end) }
        var steps = [OriginReply.Step]()
        if let hold {
            if hold > 0 { steps.append(.bytes(Array(body[..<hold]))) }
            steps.append(.wait(block.gate))
        }
        let rest = body[(hold ?? 0)..<end]
        if !rest.isEmpty { steps.append(.bytes(Array(rest))) }
        return steps
    }
}
