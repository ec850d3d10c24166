// What a scripted transport answers: a response, or the failure that comes instead of one.

public import Drydock
public import FoundationEssentials
public import HTTPTypes

/// What a ``ScriptedTransport`` answers.
///
/// ```swift
/// .json(#"{"name": "Ada"}"#)
/// .text("nobody", status: .notFound)
/// .failure(.cancelled)
/// .text("late").delayed(by: .seconds(3))
/// ```
public struct ScriptedAnswer: Sendable {
    /// Status and fields; they count where ``failure`` is nil.
    public var head: HTTPResponse
    /// The pieces of the body, in which it is read.
    public var pieces: [Data]
    /// What ends the body behind its pieces instead of its end; nil, as by default, is a whole body.
    public var interruption: DownloadError?
    /// What the request fails with instead of a response; nil is a response.
    public var failure: DownloadError?
    /// Where the response says that it came from.
    public var outcome: DownloadOutcome
    /// How long the response says that it has been stored.
    public var age: Duration
    /// How much longer the response says that it stays valid; nil: it says that it is not stored.
    public var validity: Duration?
    /// How long the clock of the transport goes on before the answer comes.
    public var delay: Duration

    /// A response with these parts.
    /// - Parameters:
    ///   - head: its status and fields; a 200 without fields by default.
    ///   - pieces: of its body; none by default.
    ///   - outcome: where it says that it came from; from the origin by default.
    ///   - age: how long it says that it has been stored; zero by default.
    ///   - validity: how much longer it says that it stays valid; nil by default.
    public init(
        _ head: HTTPResponse = HTTPResponse(status: .ok),
        pieces: [Data] = [],
        outcome: DownloadOutcome = .downloaded,
        age: Duration = .zero,
        validity: Duration? = nil
    ) {
        self.head = head
        self.pieces = pieces
        self.outcome = outcome
        self.age = age
        self.validity = validity
        delay = .zero
    }

    /// A response without a body.
    public static func status(_ status: HTTPResponse.Status) -> Self { Self(HTTPResponse(status: status)) }

    /// A response whose body is these bytes.
    /// - Parameters:
    ///   - data: its body, in one piece.
    ///   - status: 200 by default.
    ///   - contentType: its media type; nil, the default, sets no Content-Type.
    public static func data(
        _ data: Data,
        status: HTTPResponse.Status = .ok,
        contentType: String? = nil
    ) -> Self {
        var head = HTTPResponse(status: status)
        if let contentType { head.headerFields[.contentType] = contentType }
        return Self(head, pieces: data.isEmpty ? [] : [data])
    }

    /// A response whose body is a text.
    public static func text(_ text: String, status: HTTPResponse.Status = .ok) -> Self {
        data(Data(text.utf8), status: status, contentType: "text/plain; charset=utf-8")
    }

    /// A response whose body is JSON, as it is written here.
    public static func json(_ text: String, status: HTTPResponse.Status = .ok) -> Self {
        data(Data(text.utf8), status: status, contentType: "application/json")
    }

    /// A response whose body is a value as JSON.
    /// - Parameters:
    ///   - value: what is encoded.
    ///   - encoder: how it is encoded.
    ///   - status: 200 by default.
    /// - Throws: why the value cannot be encoded.
    public static func json(
        encoding value: some Encodable,
        with encoder: JSONEncoder = JSONEncoder(),
        status: HTTPResponse.Status = .ok
    ) throws -> Self {
        data(try encoder.encode(value), status: status, contentType: "application/json")
    }

    /// No response: the request fails with this error.
    public static func failure(_ error: DownloadError) -> Self {
        var answer = Self()
        answer.failure = error
        return answer
    }

    /// The same answer, after so long a time on the clock of the transport.
    public func delayed(by delay: Duration) -> Self {
        var answer = self
        answer.delay = delay
        return answer
    }

    /// The same response, which says that it came in this way.
    public func from(_ outcome: DownloadOutcome) -> Self {
        var answer = self
        answer.outcome = outcome
        return answer
    }

    /// The same response, whose body breaks off behind its pieces.
    public func interrupted(by error: DownloadError) -> Self {
        var answer = self
        answer.interruption = error
        return answer
    }
}

extension ScriptedAnswer {
    /// - Parameter isHead: the request was a HEAD, so that no body comes.
    /// - Throws: the failure.
    func response(toHead isHead: Bool) throws(DownloadError) -> TransportResponse {
        if let failure { throw failure }
        let body = isHead ? ResponseBody() : ScriptedBody(pieces, interruption).body
        return TransportResponse(head, outcome: outcome, body: body, age: age, validity: validity)
    }
}
