// An entry of the journal, for one request and its answer, and its encoding as bytes.

import HTTPWire
import Trees

/// The facts about one request that the journal keeps.
package struct JournalEntry: Sendable, Equatable {
    /// The time at which the head of the request was complete, in nanoseconds since 1970.
    package var time: UInt64
    package var method: String
    /// The target as the client sent it, without secrets in its query.
    package var target: String
    /// The name of the service; `forward` for forward mode, or empty.
    package var service = ""
    /// The name of the endpoint; empty if the request is not for a named endpoint.
    package var endpoint = ""
    /// The fields of the request; a value that the configuration hides is ``hidden``.
    package var fields: [Field] = []
    /// The beginning of the request's body, as far as the daemon has read it.
    package var body: [UInt8] = []
    /// True if the body is longer than `body`, or was not read to its end.
    package var isBodyCut = false
    package var status: Int
    /// The source of the answer as in the labels of the metric `drydock_cache_total`: `demo`, `hit`, `miss` and so on.
    package var source = ""
    /// The value of Cache-Status in the answer; empty for none.
    package var cacheStatus = ""
    /// The value of Drydock-Demo in the answer; empty for none.
    package var demo = ""
    /// The violations of the service's OpenAPI document by the request; empty for none.
    package var violations = ""
    /// Nanoseconds from the request's complete head to the last byte of the answer.
    package var duration: UInt64 = 0
    /// True if the answer did not reach the client as a whole.
    package var isAborted = false

    package struct Field: Sendable, Equatable {
        package var name: String
        package var value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The text that stands for a hidden value.
    package static let hidden = "***"

    package init(time: UInt64, method: String, target: String, status: Int) {
        self.time = time
        self.method = method
        self.target = target
        self.status = status
    }

    /// The target without its query.
    package var path: Substring { target.prefix { $0 != "?" } }

    /// The items of the target's query, decoded.
    package var query: [(name: String, value: String)] { Self.items(target) }

    /// The items of the query of a target, decoded.
    package static func items(_ target: String) -> [(name: String, value: String)] {
        FormItems.list(target.drop { $0 != "?" }.dropFirst())
    }

    /// The value of a parameter of Drydock-Demo, such as `draw`; nil if there is none.
    package func demoParameter(_ name: String) -> String? {
        guard let start = demo.split(separator: "; ").first(where: { $0.hasPrefix("\(name)=") }) else { return nil }
        return String(start.dropFirst(name.utf8.count + 1))
    }
}

// MARK: - Encoding

extension JournalEntry {
    /// The entry as bytes: numbers are little-endian, and a text is its length in four bytes and its UTF-8.
    var bytes: [UInt8] {
        var writer = JournalWriter()
        writer.write(time)
        writer.write(duration)
        writer.write(UInt64(status))
        writer.write((isBodyCut ? 1 : 0) | (isAborted ? 2 : 0))
        for text in [method, target, service, endpoint, source, cacheStatus, demo, violations] { writer.write(text) }
        writer.write(body)
        for field in fields {
            writer.write(field.name)
            writer.write(field.value)
        }
        return writer.bytes
    }

    /// Decodes an entry; nil if the bytes end too early.
    /// - Parameter bytes: an entry as ``bytes`` encodes it.
    init?(bytes: ArraySlice<UInt8>) {
        var reader = JournalBytes(rest: bytes)
        guard let time = reader.number(), let duration = reader.number(), let status = reader.number(),
            let flags = reader.number(), let method = reader.text(), let target = reader.text(),
            let service = reader.text(), let endpoint = reader.text(), let source = reader.text(),
            let cacheStatus = reader.text(), let demo = reader.text(), let violations = reader.text(),
            let body = reader.bytes()
        else { return nil }
        self.init(time: time, method: method, target: target, status: Int(clamping: status))
        (self.service, self.endpoint, self.source) = (service, endpoint, source)
        (self.cacheStatus, self.demo, self.violations, self.body) = (cacheStatus, demo, violations, Array(body))
        (self.duration, isBodyCut, isAborted) = (duration, flags & 1 != 0, flags & 2 != 0)
        while let name = reader.text() {
            guard let value = reader.text() else { return nil }
            fields.append(Field(name: name, value: value))
        }
    }

    /// The time of an entry, without decoding the rest of it.
    static func time(of bytes: ArraySlice<UInt8>) -> UInt64 {
        var reader = JournalBytes(rest: bytes)
        return reader.number() ?? 0
    }
}

private struct JournalWriter {
    private(set) var bytes: [UInt8] = []

    mutating func write(_ number: UInt64) { append(number, 8) }

    mutating func write(_ content: [UInt8]) {
        append(UInt64(content.count), 4)
        bytes += content
    }

    mutating func write(_ text: String) {
        append(UInt64(text.utf8.count), 4)
        bytes += text.utf8
    }

    private mutating func append(_ number: UInt64, _ count: UInt64) {
        for index in 0..<count { bytes.append(UInt8(truncatingIfNeeded: number >> (8 * index))) }
    }
}

private struct JournalBytes {
    var rest: ArraySlice<UInt8>

    mutating func number(_ count: Int = 8) -> UInt64? {
        guard rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count).reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    mutating func bytes() -> ArraySlice<UInt8>? {
        guard let count = number(4).map({ Int($0) }), rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    mutating func text() -> String? { bytes().map { String(decoding: $0, as: UTF8.self) } }
}
