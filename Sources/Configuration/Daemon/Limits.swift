// The bounds on what one client, or the head of one response, may cost: their keys, model and checks.

extension KeyTable {
    static let limits = SectionDescriptor(
        name: "limits",
        keys: [
            KeyDescriptor("head", .size, default: "64KiB", "The largest request head."),
            KeyDescriptor(
                "fields",
                .integer(1...10_000),
                default: "100",
                "The highest number of field lines in a request head."
            ),
            KeyDescriptor("field", .size, default: "8KiB", "The longest field line of a request."),
            KeyDescriptor("target", .size, default: "8KiB", "The longest request target."),
            KeyDescriptor("response_head", .size, default: "256KiB", "The largest response head."),
            KeyDescriptor(
                "response_fields",
                .integer(1...10_000),
                default: "1000",
                "The highest number of field lines in a response head."
            ),
            KeyDescriptor("response_line", .size, default: "64KiB", "The longest field line of a response."),
            KeyDescriptor(
                "head_timeout",
                .duration,
                default: "10s",
                "How long a whole request head may take to arrive."
            ),
            KeyDescriptor("idle", .duration, default: "60s", "How long a connection may be idle between requests."),
            KeyDescriptor(
                "body_rate",
                .size,
                default: "1KiB",
                "The lowest transfer rate of a request body, per second; it applies after the first 10 s."
            ),
            KeyDescriptor(
                "connections",
                .integer(1...10_000_000),
                default: "10000",
                "The highest number of client connections in total."
            ),
            KeyDescriptor(
                "per_client",
                .integer(1...10_000_000),
                default: "1000",
                "The highest number of connections from one client address."
            ),
        ]
    )
}

/// Bounds on what one client, or the head of one response, may cost.
package struct LimitsConfiguration: Sendable, Equatable {
    /// The most bytes of a request head. Default: 64 KiB.
    package var head: Int
    /// The most field lines of a request head. Default: 100.
    package var fields: Int
    /// The most bytes of one field line of a request. Default: 8 KiB.
    package var field: Int
    /// The most bytes of a request target. Default: 8 KiB.
    package var target: Int
    /// The most bytes of a response head. Default: 256 KiB.
    package var responseHead: Int
    /// The most field lines of a response head. Default: 1000.
    package var responseFields: Int
    /// The most bytes of one field line of a response. Default: 64 KiB.
    package var responseLine: Int
    /// The longest time for a whole request head, in nanoseconds. Default: 10 s.
    package var headTimeout: UInt64
    /// The longest time between two requests of a connection, in nanoseconds. Default: 60 s.
    package var idle: UInt64
    /// The lowest rate of a request body in bytes per second, after the first 10 s. Default: 1 KiB.
    package var bodyRate: Int
    /// The most client connections in total. Default: 10,000.
    package var connections: Int
    /// The most connections of one client address. Default: 1000.
    package var perClient: Int
}

extension LimitsConfiguration {
    package init() { self.init(SectionReader(nothingOf: KeyTable.limits)) }

    init(_ reader: SectionReader) {
        head = reader.bytes(always: "head")
        fields = reader.int(always: "fields")
        field = reader.bytes(always: "field")
        target = reader.bytes(always: "target")
        responseHead = reader.bytes(always: "response_head")
        responseFields = reader.int(always: "response_fields")
        responseLine = reader.bytes(always: "response_line")
        headTimeout = reader.nanoseconds(always: "head_timeout")
        idle = reader.nanoseconds(always: "idle")
        bodyRate = reader.bytes(always: "body_rate")
        connections = reader.int(always: "connections")
        perClient = reader.int(always: "per_client")
    }
}

extension Resolver {
    mutating func limits(_ reader: SectionReader) -> LimitsConfiguration {
        var result = LimitsConfiguration(reader)
        result.field = bounded(reader, "field", by: result.head, "head", of: "limits")
        result.target = bounded(reader, "target", by: result.head, "head", of: "limits")
        result.responseLine = bounded(reader, "response_line", by: result.responseHead, "response_head", of: "limits")
        for key in ["head", "field", "target", "response_head", "response_line"] {
            if let position = reader.position(key), let size = reader.bytes(key), size < 256 {
                let what = key.hasPrefix("response") ? "response" : "request"
                fail(position, "'limits.\(key)' is too small for any \(what); write 1KiB or more")
            }
        }
        for key in ["head_timeout", "idle"] {
            if let position = reader.position(key), reader.nanoseconds(key) == 0 {
                fail(position, "'limits.\(key)' is too short; write 1s or more")
            }
        }
        result.perClient = bounded(reader, "per_client", by: result.connections, "connections", of: "limits")
        return result
    }
}
