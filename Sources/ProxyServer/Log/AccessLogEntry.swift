// One line of the access log, in each of its three formats.

import EventLoop
import Glibc
import HTTPWire
import ServiceCore

/// A text that is owned, or that lies in a buffer which is valid for one call.
enum LogText {
    case string(String)
    // The bytes are valid while the entry is written; `AccessEntry.own` copies them for longer use.
    case bytes(UnsafeRawBufferPointer)
    /// The sixteen hexadecimal digits of an id that the daemon has made.
    case digits(UInt64)

    func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        switch self {
        case .string(var text): text.withUTF8 { body(UnsafeRawBufferPointer($0)) }
        case .bytes(let bytes): body(bytes)
        case .digits(let number): RequestID.withText(of: number, body)
        }
    }

    var isEmpty: Bool {
        switch self {
        case .string(let text): text.isEmpty
        case .bytes(let bytes): bytes.isEmpty
        case .digits: false
        }
    }

    fileprivate var owned: LogText {
        if case .bytes(let bytes) = self { .string(Latin1.string(bytes)) } else { self }
    }
}

/// The facts about one answer for the access log. It has no secrets of the configuration: of the request's fields only
/// Host, User-Agent, and Referer without secret query items. The target is as the client sent it.
struct AccessEntry {
    /// The request id, valid by the rules of ``RequestID``; empty if the format has no id.
    var id = LogText.string("")
    var client: String
    /// The value of the Host field.
    var host: LogText?
    var method: String
    var target: LogText
    var status: Int
    /// The protocol of the request, such as `HTTP/1.1`.
    var protocolName = HTTPVersion.http11.name
    /// What was agreed on with a client that speaks TLS.
    var session: SecureSession?
    /// The number of body bytes that were sent.
    var bytes = 0
    /// Nanoseconds from the complete head of the request to the last byte of the answer.
    var duration: UInt64 = 0
    var route = ""
    /// The name of the endpoint; empty if the request is not for a named endpoint.
    var endpoint = ""
    var cacheStatus = LogText.string("")
    var upstreamStatus: Int?
    /// Nanoseconds that the origin took; nil if no origin was asked.
    var upstreamTime: UInt64?
    /// True if the answer did not reach the client as a whole.
    var isAborted = false
    /// The reason why there was no answer, or why it ended early; empty if all went well.
    var error = ""
    /// The fault that the configuration injected into the answer; empty for none.
    var fault = ""
    var referer: LogText?
    var userAgent: LogText?

    init(client: String, method: String, target: LogText, status: Int) {
        self.client = client
        self.method = method
        self.target = target
        self.status = status
    }

    /// Copies the texts that point into buffers, so that the entry can be kept.
    mutating func own() {
        id = id.owned
        host = host?.owned
        target = target.owned
        cacheStatus = cacheStatus.owned
        referer = referer?.owned
        userAgent = userAgent?.owned
    }
}

/// Writes entries as lines, and keeps the text of the current second.
struct AccessLineWriter {
    let format: AccessLogSettings.Format
    private var second: Int64 = -1
    private var secondText: [UInt8] = []

    init(_ format: AccessLogSettings.Format) { self.format = format }

    /// Appends one line with its LF.
    /// - Parameter time: nanoseconds since 1970.
    mutating func write(_ entry: AccessEntry, time: UInt64, to bytes: inout [UInt8]) {
        refresh(Int64(time / 1_000_000_000))
        let millisecond = time / 1_000_000 % 1000
        switch format {
        case .json: writeJSON(entry, millisecond, &bytes)
        case .combined: writeCombined(entry, &bytes)
        case .text: writeText(entry, millisecond, &bytes)
        }
        bytes.append(0x0A)
    }

    // MARK: - Formats

    private func writeJSON(_ entry: AccessEntry, _ millisecond: UInt64, _ bytes: inout [UInt8]) {
        // The buffer is moved into the JSON writer and back, so that it is never copied.
        var taken: [UInt8] = []
        swap(&taken, &bytes)
        var json = JSONText(continuing: consume taken)
        // Each name is written with its quotes and commas, because one write is faster than five.
        json.write("{\"time\":\"")
        json.write { writeTime(millisecond, &$0) }
        json.write("\"")
        if !entry.id.isEmpty {
            json.write(",\"id\":\"")
            // The id needs no escapes: it has letters, digits and a few signs.
            entry.id.withBytes { id in json.write { $0.append(contentsOf: id) } }
            json.write("\"")
        }
        json.write(",\"client\":")
        json.value(entry.client)
        json.write(",\"method\":")
        json.value(entry.method)
        json.write(optional: ",\"host\":", entry.host)
        json.write(",\"target\":")
        entry.target.withBytes { json.value(utf8: $0) }
        json.write(",\"status\":")
        json.value(entry.status)
        json.write(",\"bytes\":")
        json.value(entry.bytes)
        json.write(",\"duration_ms\":")
        json.value(milliseconds: entry.duration)
        if !entry.route.isEmpty {
            json.write(",\"service\":")
            json.value(entry.route)
        }
        if !entry.endpoint.isEmpty {
            json.write(",\"endpoint\":")
            json.value(entry.endpoint)
        }
        if !entry.cacheStatus.isEmpty { json.write(optional: ",\"cache_status\":", entry.cacheStatus) }
        if let status = entry.upstreamStatus {
            json.write(",\"upstream_status\":")
            json.value(status)
        }
        if let time = entry.upstreamTime {
            json.write(",\"upstream_ms\":")
            json.value(milliseconds: time)
        }
        json.write(entry.isAborted ? ",\"aborted\":true" : ",\"aborted\":false")
        if !entry.error.isEmpty {
            json.write(",\"error\":")
            json.value(entry.error)
        }
        if !entry.fault.isEmpty {
            json.write(",\"fault\":")
            json.value(entry.fault)
        }
        if let session = entry.session { json.write(session) }
        json.write(optional: ",\"referer\":", entry.referer)
        json.write(optional: ",\"user_agent\":", entry.userAgent)
        json.write("}")
        bytes = json.take()
    }

    /// The combined format of Apache and nginx, which the usual tools read.
    private func writeCombined(_ entry: AccessEntry, _ bytes: inout [UInt8]) {
        append(entry.client, &bytes)
        append(" - - [" as StaticString, &bytes)
        bytes.append(contentsOf: secondText)
        append("] \"" as StaticString, &bytes)
        append(entry.method, &bytes)
        bytes.append(0x20)
        appendEscaped(entry.target, &bytes)
        bytes.append(0x20)
        append(entry.protocolName, &bytes)
        append("\" " as StaticString, &bytes)
        appendDecimal(entry.status, &bytes)
        bytes.append(0x20)
        appendDecimal(entry.bytes, &bytes)
        appendQuoted(entry.referer, &bytes)
        appendQuoted(entry.userAgent, &bytes)
    }

    /// The format `text`: one line for a person to read.
    private func writeText(_ entry: AccessEntry, _ millisecond: UInt64, _ bytes: inout [UInt8]) {
        writeTime(millisecond, &bytes)
        bytes.append(0x20)
        append(entry.client, &bytes)
        bytes.append(0x20)
        append(entry.method, &bytes)
        bytes.append(0x20)
        appendEscaped(entry.target, &bytes)
        bytes.append(0x20)
        appendDecimal(entry.status, &bytes)
        bytes.append(0x20)
        appendDecimal(entry.bytes, &bytes)
        append("B " as StaticString, &bytes)
        // Milliseconds have three decimals, as in the JSON format.
        let microseconds = Int(clamping: entry.duration / 1000)
        appendDecimal(microseconds / 1000, &bytes)
        bytes.append(contentsOf: ".\(String(microseconds % 1000 + 1000).dropFirst())ms".utf8)
        if !entry.route.isEmpty {
            bytes.append(0x20)
            append(entry.route, &bytes)
        }
        if !entry.endpoint.isEmpty {
            append(" endpoint=" as StaticString, &bytes)
            append(entry.endpoint, &bytes)
        }
        if !entry.cacheStatus.isEmpty {
            append(" [" as StaticString, &bytes)
            appendEscaped(entry.cacheStatus, &bytes)
            bytes.append(0x5D)
        }
        if let status = entry.upstreamStatus {
            append(" origin=" as StaticString, &bytes)
            appendDecimal(status, &bytes)
        }
        if let session = entry.session {
            bytes.append(0x20)
            append(session.version, &bytes)
        }
        if entry.isAborted { append(" aborted" as StaticString, &bytes) }
        if !entry.fault.isEmpty {
            append(" fault=" as StaticString, &bytes)
            append(entry.fault, &bytes)
        }
        if !entry.error.isEmpty {
            append(" error=" as StaticString, &bytes)
            appendEscaped(.string(entry.error), &bytes)
        }
    }

    // MARK: - Pieces

    /// Appends the time as `2026-11-21T01:44:05.123Z`.
    private func writeTime(_ millisecond: UInt64, _ bytes: inout [UInt8]) {
        bytes.append(contentsOf: secondText)
        bytes.append(0x2E)
        bytes.append(0x30 + UInt8(millisecond / 100 % 10))
        bytes.append(0x30 + UInt8(millisecond / 10 % 10))
        bytes.append(0x30 + UInt8(millisecond % 10))
        bytes.append(0x5A)
    }

    private mutating func refresh(_ now: Int64) {
        guard now != second else { return }
        second = now
        var time = time_t(now)
        var parts = tm()
        gmtime_r(&time, &parts)
        var buffer = [CChar](repeating: 0, count: 64)
        let pattern = format == .combined ? "%d/%b/%Y:%H:%M:%S +0000" : "%Y-%m-%dT%H:%M:%S"
        let length = strftime(&buffer, buffer.count, pattern, &parts)
        secondText = buffer[..<length].map { UInt8(bitPattern: $0) }
    }

    private func appendQuoted(_ text: LogText?, _ bytes: inout [UInt8]) {
        guard let text else { return append(" \"-\"" as StaticString, &bytes) }
        append(" \"" as StaticString, &bytes)
        appendEscaped(text, &bytes)
        bytes.append(0x22)
    }

    private func append(_ text: StaticString, _ bytes: inout [UInt8]) {
        text.withUTF8Buffer { bytes.append(contentsOf: $0) }
    }

    private func append(_ text: String, _ bytes: inout [UInt8]) {
        var text = text
        text.withUTF8 { bytes.append(contentsOf: $0) }
    }

    /// Writes quotes, backslashes, control characters and non-ASCII bytes as `\xHH`.
    private func appendEscaped(_ text: LogText, _ bytes: inout [UInt8]) {
        text.withBytes { raw in
            // Bytes that need no escape are copied piece by piece.
            var start = 0
            for (index, byte) in raw.enumerated() where byte < 0x20 || byte >= 0x7F || byte == 0x22 || byte == 0x5C {
                bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: raw[start..<index]))
                append("\\x" as StaticString, &bytes)
                bytes.append(Self.hex(byte >> 4))
                bytes.append(Self.hex(byte & 15))
                start = index + 1
            }
            bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: raw[start...]))
        }
    }

    private static func hex(_ digit: UInt8) -> UInt8 { digit < 10 ? 0x30 + digit : 0x37 + digit }

    private func appendDecimal(_ number: Int, _ bytes: inout [UInt8]) {
        withUnsafeTemporaryAllocation(byteCount: 20, alignment: 1) { buffer in
            let length = Serializer.appendDecimal(Int64(number), into: buffer, at: 0)
            bytes.append(contentsOf: buffer[0..<length])
        }
    }
}

extension JSONText {
    /// The member `tls`.
    fileprivate mutating func write(_ session: SecureSession) {
        write(",\"tls\":{\"version\":")
        value(session.version)
        write(",\"cipher\":")
        value(session.cipher)
        if let name = session.serverName {
            write(",\"sni\":")
            value(name)
        }
        write(session.isResumed ? ",\"resumed\":true}" : ",\"resumed\":false}")
    }

    fileprivate mutating func write(optional name: StaticString, _ text: LogText?) {
        guard let text else { return }
        write(name)
        text.withBytes { value(utf8: $0) }
    }
}

enum LoggedReferer {
    /// The Referer for the log, without secret query items.
    /// - Parameters:
    ///   - value: the value of the field; it is not copied if it has no query.
    ///   - secrets: the secret query items that services add.
    static func text(_ value: UnsafeRawBufferPointer, _ secrets: SecretQuery) -> LogText {
        guard value.contains(UInt8(ascii: "?")) else { return .bytes(value) }
        return .string(text(Latin1.string(value), secrets))
    }

    /// The Referer for the log, without secret query items.
    /// - Parameters:
    ///   - value: the value of the field.
    ///   - secrets: the secret query items that services add.
    static func text(_ value: String, _ secrets: SecretQuery) -> String { ShownQuery.text(value, secrets) }
}
