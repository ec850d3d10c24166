// An endpoint of demo mode, checked and with its files read: which requests it is for, what it draws from, and what a
// draw becomes for one request.

import Content
import DemoMode
import DownloadCore
import Drydock
import FoundationEssentials
import HTTPCaching
import HTTPTypes
import HTTPWire
import Policies
import ServiceCore
import Trees

/// One endpoint, ready to answer. Nothing in it changes.
struct DemoPlay: Sendable {
    let rule: DemoRule
    var name: String { rule.endpoint }
    let pattern: PathPattern
    private let method: HTTPWire.Method?

    /// Reads the files; blocks as that does.
    init(_ endpoint: DemoTransport.Endpoint, folder: URL?, seed: UInt64) throws(DemoError) {
        let name = endpoint.name
        func refuse(_ text: String) -> DemoError { .invalidSetting(endpoint: name, text) }
        guard !name.isEmpty else { throw refuse("it has no name: give it one") }
        guard let pattern = PathPattern(endpoint.path) else {
            throw refuse("the path '\(endpoint.path)' is none: write it as /users/:id or /files/*")
        }
        let statuses = endpoint.statuses.map(\.key)
        for status in [endpoint.status, endpoint.failure?.status ?? 503] + statuses where !(200...599).contains(status)
        {
            throw refuse("\(status) is no status of an answer: choose one from 200 to 599")
        }
        if let failure = endpoint.failure, !(0...1).contains(failure.chance) {
            throw refuse("\(failure.chance) is no chance: choose one from 0 to 1")
        }
        guard endpoint.latency.lowerBound >= .zero else {
            throw refuse("a latency cannot be less than zero: begin the range with .zero")
        }
        try Self.check(endpoint.statuses, refuse)
        var fields = Fields()
        for field in endpoint.headerFields { fields.append(field.name.rawName, field.latin1Value) }
        let latency = endpoint.latency
        let hasContent = statuses.isEmpty ? Self.mayHaveBody(endpoint.status) : statuses.contains(where: Self.isFilled)
        let content =
            try hasContent ? Self.content(endpoint.body, endpoint.file, of: name, in: folder) : .none
        rule = DemoRule(
            endpoint: name,
            seed: endpoint.seed ?? seed,
            latency: LatencyPolicy(
                .uniform(latency.lowerBound.wholeNanoseconds...latency.upperBound.wholeNanoseconds)
            ),
            answer: DemoAnswer(status: endpoint.status, content: content, fields: fields),
            choice: statuses.isEmpty
                ? .one
                : .weighted(
                    endpoint.statuses.map { status, share in
                        let own = Self.isFilled(status) ? content : .none
                        return (share, DemoAnswer(status: status, content: own, fields: fields))
                    }
                ),
            failure: try endpoint.failure.map { failure throws(DemoError) in
                let content =
                    try Self.mayHaveBody(failure.status)
                    ? Self.content(failure.body, failure.file, of: name, in: folder) : .none
                return DemoFailure(
                    chance: failure.chance,
                    answer: DemoAnswer(status: failure.status, content: content, fields: fields)
                )
            }
        )
        self.pattern = pattern
        method = endpoint.method.map { HTTPWire.Method($0.rawValue) }
    }

    /// - Parameter target: path and query, below the base URL.
    func answers(_ method: HTTPWire.Method, _ target: String) -> Bool {
        guard self.method == nil || self.method == method || self.method == .get && method == .head else {
            return false
        }
        var target = target
        return target.withUTF8 { pattern.matches(UnsafeRawBufferPointer($0)) }
    }

    /// - Parameter refuse: makes the error of a setting.
    private static func check(
        _ statuses: KeyValuePairs<Int, Double>,
        _ refuse: (String) -> DemoError
    ) throws(DemoError) {
        if statuses.isEmpty { return }
        for (status, share) in statuses {
            guard (0...1).contains(share) else {
                throw refuse("\(share) is no share of the status \(status): choose one from 0 to 1")
            }
            guard statuses.count(where: { $0.key == status }) == 1 else {
                throw refuse("the status \(status) has two shares: remove one")
            }
        }
        // As fractions add up.
        let sum = statuses.reduce(0) { $0 + $1.value }
        guard abs(sum - 1) < 1e-8 else { throw refuse("the shares of the statuses add up to \(sum), not to 1") }
    }

    private static func mayHaveBody(_ status: Int) -> Bool { status != 204 && status != 205 && status != 304 }

    /// Whether a status among several has the endpoint's body.
    private static func isFilled(_ status: Int) -> Bool { 200..<300 ~= status && mayHaveBody(status) }

    private static func content(
        _ body: DemoBody?,
        _ file: String?,
        of name: String,
        in folder: URL?
    ) throws(DemoError) -> DemoContent {
        switch body {
        case .text(let text)?: return inline(text.utf8, "text/plain; charset=utf-8", of: name)
        case .json(let value)?: return inline(JSONWriter.bytes(value.tree), "application/json", of: name)
        case .data(let data, let type)?: return inline(data, type, of: name)
        case nil: break
        }
        guard let file else { return .none }
        guard let folder else {
            throw .invalidSetting(
                endpoint: name,
                "its file \(file) is in no folder: name the folder of the files, or give it a body"
            )
        }
        let path = folder.appending(path: file).path(percentEncoded: false)
        let loaded: DemoFile
        do {
            loaded = try DemoFile.load(path: path)
        } catch {
            throw .unreadableFile(endpoint: name, "\(error)")
        }
        guard loaded.contentType == "application/json" else { return .file(loaded) }
        let inspection = ContentInspection(.json, Fields(), limit: .max)
        loaded.bytes.withUnsafeBytes { _ = inspection.push($0) }
        if let mismatch = inspection.finish() {
            throw .invalidFile(
                endpoint: name,
                "\(path) is no JSON text, since it \(mismatch): correct it, or rename it"
            )
        }
        return .file(loaded)
    }

    private static func inline(_ bytes: some Sequence<UInt8>, _ type: String, of name: String) -> DemoContent {
        .file(DemoFile(path: "the body of '\(name)'", bytes: Array(bytes), contentType: type))
    }
}

extension PathPattern {
    /// Reads a path pattern; nil if the text is none.
    fileprivate init?(_ text: String) {
        guard text.hasPrefix("/") else { return nil }
        var segments: [Segment] = []
        let parts = text.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() where !(parts.count == 1 && part.isEmpty) {
            switch part.first {
            case "*" where part.count == 1 && index == parts.count - 1: segments.append(.rest)
            case ":" where part.count > 1: segments.append(.parameter(String(part.dropFirst())))
            case "*", ":": return nil
            default:
                guard part.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != 0x3F && $0 != 0x23 }) else {
                    return nil
                }
                segments.append(.literal(Array(part.utf8)))
            }
        }
        self.init(segments: segments)
    }
}

// MARK: - The reply to one request

/// The head and the body of a demo answer. A 200 to GET and HEAD obeys conditions and ranges as a web server does for a
/// file (RFC 9110 section 13.2.2).
struct DemoReply {
    private(set) var head: ResponseHead
    private(set) var body = Data()

    /// - Parameter now: Unix seconds, for conditions that are dates.
    init(_ draw: DemoDraw, to request: RequestHead, now: Int64) {
        let isRepresentation =
            draw.status == 200 && draw.content.file != nil && (request.method == .get || request.method == .head)
        if isRepresentation {
            head = ResponseHead(status: 200, fields: draw.representationFields)
            select(draw.body, for: request, now: now)
        } else {
            head = ResponseHead(status: draw.status, fields: draw.fields)
            if draw.status != 204, draw.status != 304 { fill(draw.body, for: request) }
        }
        head.reason = ReasonPhrase.reason(head.status)
        head.fields.remove("Drydock-Demo")
        head.fields.append("Drydock-Demo", draw.fieldValue)
    }

    private mutating func select(_ bytes: [UInt8], for request: RequestHead, now: Int64) {
        let own = OwnRepresentation(head, length: Int64(bytes.count), now: now)
        guard let request = own.judged(request) else {
            head = ResponseHead(status: 412)
            return fill([], for: request)
        }
        if case .notModified(let fields) = Caching.answerConditional(request: request, stored: own.head) {
            head = ResponseHead(status: 304, fields: fields)
            return
        }
        switch Caching.rangeAnswer(request: request, stored: own.head, length: Int64(bytes.count)) {
        case .whole: fill(bytes, for: request)
        case .unsatisfiable:
            head = Caching.unsatisfiableHead(length: Int64(bytes.count))
            fill([], for: request)
        case .parts(let ranges): fill(ranges, of: bytes, own.head)
        }
    }

    private mutating func fill(_ bytes: [UInt8], for request: RequestHead) {
        head.fields.set(.contentLength, String(bytes.count))
        if request.method != .head { body = Data(bytes) }
    }

    private mutating func fill(_ ranges: [Range<Int64>], of bytes: [UInt8], _ stored: StoredHead) {
        let parts = ranges.map { bytes[Int($0.lowerBound)..<Int($0.upperBound)] }
        guard ranges.count > 1 else {
            head = Caching.partHead(stored: stored, range: ranges[0], length: Int64(bytes.count))
            body = Data(parts[0])
            return
        }
        let boundary = (0..<2).map { _ in String(UInt64.random(in: 0 ... .max), radix: 36) }.joined()
        let multipart = Multipart(
            ranges: ranges,
            complete: Int64(bytes.count),
            stored: stored.fields,
            boundary: boundary
        )
        head = Caching.multipartHead(stored: stored, multipart)
        for (part, head) in zip(parts, multipart.heads) { body += head + part }
        body += multipart.tail
    }
}

extension HTTPResponse {
    init(_ head: ResponseHead) {
        self.init(
            status: Status(code: head.status, reasonPhrase: head.reason),
            headerFields: HTTPFields(head.fields)
        )
    }
}
