// The paths of the admin API, and the request targets that lead to them.

/// The path of a route; a segment with a colon stands for any segment that is not empty.
package enum AdminPath: String, CaseIterable, Sendable {
    case status = "/v1/status"
    case config = "/v1/config"
    case entries = "/v1/entries"
    case explain = "/v1/explain"
    case reload = "/v1/reload"
    case takeOver = "/v1/take-over"
    case offline = "/v1/offline"
    case clock = "/v1/clock"
    case log = "/v1/log"
    case metrics = "/metrics"
    case health = "/healthz"
    case readiness = "/readyz"
    case cancel = "/v1/cancel"
    case events = "/v1/events"
    case traffic = "/v1/traffic"
    case parked = "/v1/parked"
    case replayParked = "/v1/parked/replay"
    case cancelParked = "/v1/parked/cancel"
    case seed = "/v1/seed"
    case size = "/v1/size"
    case prefetch = "/v1/prefetch"
    case jobs = "/v1/jobs"
    case job = "/v1/jobs/:id"
    case cancelJob = "/v1/jobs/:id/cancel"
    case retryJob = "/v1/jobs/:id/retry"
    case group = "/v1/groups/:name"
    case pins = "/v1/pins"
    case recordings = "/v1/recordings"
    case drift = "/v1/drift"
    case journal = "/v1/journal"
    case verify = "/v1/verify"
    case demo = "/v1/demo"
    case resetDemo = "/v1/demo/reset"
    case draw = "/v1/demo/draw"

    /// The target of a request for the path.
    /// - Parameters:
    ///   - id: the value of the segment with a colon, if the path has one.
    ///   - query: the items of the query in their order.
    package func target(id: String = "", _ query: [AdminQuery.Item] = []) -> String {
        let segments = segments(of: rawValue).map { $0.hasPrefix(":") ? AdminQuery.encode(id) : String($0) }
        return segments.joined(separator: "/") + AdminQuery.text(query)
    }

    /// The values of the segments with a colon, in order, percent-decoded; nil if `path` does not match.
    package func parameters(in path: String) -> [String]? {
        let wanted = segments(of: rawValue)
        let given = segments(of: path)
        guard wanted.count == given.count else { return nil }
        var parameters: [String] = []
        for (pattern, segment) in zip(wanted, given) {
            if pattern.hasPrefix(":"), !segment.isEmpty {
                parameters.append(AdminQuery.decode(segment))
            } else if pattern != segment {
                return nil
            }
        }
        return parameters
    }

    private func segments(of path: String) -> [Substring] {
        path.split(separator: "/", omittingEmptySubsequences: false)
    }
}

/// Queries of the form `name=value&name`, percent-encoded.
package enum AdminQuery {
    /// The items of a query that was read; an item without a value has an empty one.
    package typealias Members = [(name: String, value: String)]
    /// An item of a query to be written; nil writes the name alone.
    package typealias Item = (name: String, value: String?)

    /// The query with its question mark; empty if there are no items. Names are not encoded.
    static func text(_ items: [Item]) -> String {
        let members = items.map { name, value in value.map { "\(name)=\(encode($0))" } ?? name }
        return members.isEmpty ? "" : "?" + members.joined(separator: "&")
    }

    /// Percent-encodes the text: all bytes but ASCII letters and digits become `%` and two digits.
    static func encode(_ text: String) -> String {
        var result = ""
        for byte in text.utf8 {
            let scalar = Unicode.Scalar(byte)
            switch scalar {
            case "a"..."z", "A"..."Z", "0"..."9": result.unicodeScalars.append(scalar)
            default: result += (byte < 16 ? "%0" : "%") + String(byte, radix: 16, uppercase: true)
            }
        }
        return result
    }

    /// Splits a request target into its path and the items of its query, which are percent-decoded.
    package static func split(_ target: String) -> (path: String, members: Members) {
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let members = (parts.count > 1 ? parts[1].split(separator: "&") : []).map { member in
            let pair = member.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return (name: decode(pair[0]), value: pair.count > 1 ? decode(pair[1]) : "")
        }
        return (String(parts[0]), members)
    }

    /// Percent-decodes the text; a text with a malformed escape, or whose escapes are not UTF-8, is returned unchanged.
    package static func decode(_ text: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = text.utf8
        while let byte = rest.popFirst() {
            if byte != UInt8(ascii: "%") {
                bytes.append(byte)
            } else if let high = digit(rest.popFirst()), let low = digit(rest.popFirst()) {
                bytes.append(high << 4 | low)
            } else {
                return String(text)
            }
        }
        return String(validating: bytes, as: UTF8.self) ?? String(text)
    }

    /// The value of a hexadecimal digit.
    private static func digit(_ byte: UInt8?) -> UInt8? {
        byte.flatMap { Character(Unicode.Scalar($0)).hexDigitValue }.map { UInt8($0) }
    }
}
