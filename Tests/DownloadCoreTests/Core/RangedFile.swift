// A file on an origin that honours Range, If-Range and If-None-Match, as most static servers do.

import HTTPCaching
import HTTPWire
import TestSupport

struct RangedFile: Sendable {
    var bytes: [UInt8]
    var tag = "\"a\""
    var fields: [(String, String)] = [("Cache-Control", "max-age=6000")]
    /// The end of the body comes after this has been opened.
    var end: Valve?

    init(_ size: Int) { bytes = Pattern.bytes(0..<size) }

    func reply(_ asked: Asked) -> Reply {
        var all = fields + [("ETag", tag), ("Accept-Ranges", "bytes")]
        if asked.fields.first(.ifNoneMatch) == tag { return .whole(304, all) }
        guard let value = asked.fields.first(.range), asked.fields.first(.ifRange).map({ $0 == tag }) ?? true,
            let range = range(value)
        else { return answer(200, all, bytes) }
        guard range.lowerBound < bytes.count else {
            return .whole(416, [("Content-Range", "bytes */\(bytes.count)")], Array("no such range".utf8))
        }
        all.append(("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(bytes.count)"))
        return answer(206, all, Array(bytes[range]))
    }

    private func answer(_ status: Int, _ fields: [(String, String)], _ body: [UInt8]) -> Reply {
        var steps: [Reply.Step] = [
            .head(
                ResponseHead(
                    status: status,
                    reason: "R",
                    fields: Fields(fields + [("Content-Length", "\(body.count)")])
                ),
                .length(UInt64(body.count))
            )
        ]
        let last = end == nil ? body.count : body.count - 1
        for start in stride(from: 0, to: last, by: 65536) {
            steps.append(.bytes(Array(body[start..<min(last, start + 65536)])))
        }
        if let end { steps += [.valve(end), .bytes(Array(body[last...]))] }
        return Reply(steps: steps + [.end(Fields())])
    }

    /// Only what the daemon may send: one range.
    private func range(_ value: String) -> Range<Int>? {
        let ends = value.dropFirst("bytes=".count).split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2 else { return nil }
        if ends[0].isEmpty { return Int(ends[1]).map { max(0, bytes.count - $0)..<bytes.count } }
        guard let first = Int(ends[0]) else { return nil }
        guard first < bytes.count else { return first..<first + 1 }
        return first..<min(bytes.count, Int(ends[1]).map { $0 + 1 } ?? bytes.count)
    }
}

extension Rig {
    /// What the origin was asked for, such as `0-9 all head 5-9 if "a"`.
    var ranges: [String] {
        origin.log.map { asked in
            var text = asked.fields.first(.range).map { String($0.dropFirst("bytes=".count)) } ?? "all"
            if asked.method == .head { text = "head" }
            if let tag = asked.fields.first(.ifRange) { text += " if \(tag)" }
            if let tag = asked.fields.first(.ifNoneMatch) { text += " unless \(tag)" }
            return text
        }
    }

    func range(_ range: String, _ more: [(String, String)] = [], policy: CachePolicy = CachePolicy()) async -> Got {
        await get("/a", [("Range", "bytes=" + range)] + more, policy: policy)
    }
}
