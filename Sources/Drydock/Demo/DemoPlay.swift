// An endpoint of demo mode, checked and with its files read: which requests it is for, and what it draws from.

import Content
import DemoMode
import FoundationEssentials
import HTTPTypes
import HTTPWire
import ServiceCore

/// One endpoint, ready to answer. Nothing in it changes.
struct DemoPlay: Sendable {
    let rule: DemoRule
    var name: String { rule.endpoint }
    let pattern: PathPattern
    private let method: HTTPWire.Method?

    /// Reads the files; blocks as that does.
    init(_ endpoint: DemoTransport.Endpoint, folder: URL, seed: UInt64) throws(DemoError) {
        let name = endpoint.name
        func refuse(_ text: String) -> DemoError { .invalidSetting(endpoint: name, text) }
        guard !name.isEmpty else { throw refuse("it has no name: give it one") }
        guard let pattern = PathPattern(endpoint.path) else {
            throw refuse("the path '\(endpoint.path)' is none: write it as /users/:id or /files/*")
        }
        for status in [endpoint.status, endpoint.failure?.status ?? 503] where !(200...599).contains(status) {
            throw refuse("\(status) is no status of an answer: choose one from 200 to 599")
        }
        if let failure = endpoint.failure, !(0...1).contains(failure.chance) {
            throw refuse("\(failure.chance) is no chance: choose one from 0 to 1")
        }
        guard endpoint.latency.lowerBound >= .zero else {
            throw refuse("a latency cannot be less than zero: begin the range with .zero")
        }
        var fields = Fields()
        for field in endpoint.headerFields { fields.append(field.name.rawName, field.latin1Value) }
        let latency = endpoint.latency
        let content = try Self.content(endpoint.file, of: name, status: endpoint.status, in: folder)
        rule = DemoRule(
            endpoint: name,
            seed: endpoint.seed ?? seed,
            latency: latency.lowerBound.wholeNanoseconds...latency.upperBound.wholeNanoseconds,
            answer: DemoAnswer(status: endpoint.status, content: content, fields: fields),
            failure: try endpoint.failure.map { failure throws(DemoError) in
                let content = try Self.content(failure.file, of: name, status: failure.status, in: folder)
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

    private static func content(
        _ file: String?,
        of name: String,
        status: Int,
        in folder: URL
    ) throws(DemoError) -> DemoContent {
        guard let file, status != 204, status != 205, status != 304 else { return .none }
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
}

extension PathPattern {
    /// Nil for a text that is no path pattern.
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
