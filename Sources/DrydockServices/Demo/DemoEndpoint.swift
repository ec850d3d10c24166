// What demo mode answers an endpoint with: which requests are meant, the file, the latency, and the failures.

import Drydock
public import FoundationEssentials
public import HTTPTypes

extension DemoTransport {
    /// What is played instead of one endpoint of an origin.
    public struct Endpoint: Sendable {
        /// How it is called: in the draws, in `Drydock-Demo`, and by ``DemoTransport/setEnabled(_:endpoint:)``.
        public var name: String
        /// The path that is meant, below the base URL of the transport: `/users/:id`, where a parameter is one segment,
        /// or `/files/*`, where the star is all that follows. Of several that match, the most specific counts.
        public var path: String
        /// The method that is meant; nil means every one. GET means HEAD, too.
        public var method: HTTPRequest.Method?
        /// The file with the body, in the folder of the transport; `NAME.json` by default, and nil is an empty body.
        public var file: String?
        /// The status of an answer that is no failure; 200 by default.
        public var status: Int
        /// Several statuses instead, each with the share of the answers that have it, such as `[200: 0.9, 404: 0.1]`.
        /// The shares add up to 1, and their order is part of the draws. The body is that of the statuses from 200 to
        /// 299; the others have none. Empty, the default, is ``status`` alone.
        public var statuses: KeyValuePairs<Int, Double>
        /// Fields of every answer, failures among them. A Content-Type here wins over that of the file.
        public var headerFields: HTTPFields
        /// How long an answer takes at least, drawn evenly from this range; no time by default.
        public var latency: ClosedRange<Duration>
        /// Another seed draws other latencies and failures; nil, the default, is the seed of the transport.
        public var seed: UInt64?
        /// The body itself, in the place of a file; nil is the file.
        var body: DemoBody?
        /// How often it fails, and how; nil is never.
        var failure: DemoBreakdown?

        /// An endpoint with these answers.
        /// - Parameters:
        ///   - name: how it is called.
        ///   - path: the path that is meant, such as `/users/:id`.
        ///   - method: the method that is meant; GET by default, which means HEAD, too. Nil means every one.
        ///   - file: the file with the body; nil, the default, is `NAME.json`.
        ///   - status: 200 by default.
        ///   - statuses: several statuses with their shares, in the place of one; none by default.
        ///   - headerFields: of every answer; none by default.
        ///   - latency: how long an answer takes; no time by default.
        ///   - seed: nil, the default, is the seed of the transport.
        public init(
            _ name: String,
            path: String,
            method: HTTPRequest.Method? = .get,
            file: String? = nil,
            status: Int = 200,
            statuses: KeyValuePairs<Int, Double> = [:],
            headerFields: HTTPFields = HTTPFields(),
            latency: ClosedRange<Duration> = .zero ... .zero,
            seed: UInt64? = nil
        ) {
            self.name = name
            self.path = path
            self.method = method
            self.file = file ?? name + ".json"
            self.status = status
            self.statuses = statuses
            self.headerFields = headerFields
            self.latency = latency
            self.seed = seed
        }

        /// The same with a text in the place of a file: `text/plain; charset=utf-8`, unless ``headerFields`` have a
        /// Content-Type.
        public func playing(text: String) -> Self { playing(.text(text)) }

        /// The same with JSON in the place of a file: `application/json`, unless ``headerFields`` have a Content-Type.
        public func playing(json: JSONValue) -> Self { playing(.json(json)) }

        /// The same with bytes in the place of a file.
        public func playing(_ data: Data, contentType: String) -> Self {
            playing(.data(data, contentType: contentType))
        }

        private func playing(_ body: DemoBody) -> Self {
            var endpoint = self
            endpoint.body = body
            return endpoint
        }

        /// The same with failures.
        /// - Parameters:
        ///   - chance: the share of the answers that are failures, from 0, which is never, to 1, which is always.
        ///   - status: of a failure; 503 by default.
        ///   - file: the file with the body of a failure; nil, the default, is an empty body.
        public func failing(_ chance: Double, status: Int = 503, file: String? = nil) -> Self {
            failing(DemoBreakdown(chance: chance, status: status, file: file))
        }

        /// The same with failures that have JSON as their body.
        public func failing(_ chance: Double, status: Int = 503, json: JSONValue) -> Self {
            failing(DemoBreakdown(chance: chance, status: status, body: .json(json)))
        }

        /// The same with failures that have a text as their body.
        public func failing(_ chance: Double, status: Int = 503, text: String) -> Self {
            failing(DemoBreakdown(chance: chance, status: status, body: .text(text)))
        }

        /// The same with failures that have these bytes as their body.
        public func failing(_ chance: Double, status: Int = 503, data: Data, contentType: String) -> Self {
            failing(DemoBreakdown(chance: chance, status: status, body: .data(data, contentType: contentType)))
        }

        private func failing(_ failure: DemoBreakdown) -> Self {
            var endpoint = self
            endpoint.failure = failure
            return endpoint
        }
    }
}

/// A body that is in no file.
enum DemoBody: Sendable {
    case text(String)
    case json(JSONValue)
    case data(Data, contentType: String)
}

/// The failures of an endpoint.
struct DemoBreakdown: Sendable {
    let chance: Double
    let status: Int
    var file: String?
    var body: DemoBody?
}

/// Why a ``DemoTransport`` could not be made.
public enum DemoError: Error, Sendable, Hashable, CustomStringConvertible {
    /// A file is not there, is no regular file, or cannot be read.
    case unreadableFile(endpoint: String, String)
    /// A file whose name ends in `.json` is no JSON text.
    case invalidFile(endpoint: String, String)
    /// A setting of an endpoint makes no sense.
    case invalidSetting(endpoint: String, String)
    /// The base of a ``DemoTransport`` is no absolute `http` or `https` URL.
    case invalidBase(String)

    /// What is wrong, where, and what to do.
    public var description: String {
        switch self {
        case .unreadableFile(let name, let text), .invalidFile(let name, let text), .invalidSetting(let name, let text):
            "the demo endpoint '\(name)': \(text)"
        case .invalidBase(let text): "the base of demo answers: \(text)"
        }
    }
}
