// Who is asked before a call, and told of what happens to it; a request or a response as a log may show it, bounded and
// without secrets.

import Content
public import Drydock
import FoundationEssentials
public import HTTPTypes
import ServiceCore

/// Who is asked before a call, and told of what happens to it, in the order of ``CallEvent``.
///
/// All but ``shouldStart`` are called in the task of the call, one after the other, before its events have the news: they
/// should not wait for long. A hook has returned before the next one of the same call is called, whoever cancels or
/// repeats the call meanwhile; hooks of several calls run at the same time. None is set by default.
public struct ServiceHooks: Sendable {
    /// Asked before the first attempt: a reason ends the call with ``ServiceError/vetoed(_:)``, and nil lets it begin. It
    /// has a task of its own, which is cancelled with the call: a call that is cancelled does not wait for its answer.
    public var shouldStart: (@Sendable (CallInfo) async -> String?)?
    /// An attempt begins; the first one has the number 1.
    public var onStart: (@Sendable (CallInfo, _ attempt: Int) -> Void)?
    /// More of the request's content has been sent.
    public var onSent: (@Sendable (CallInfo, DownloadProgress) -> Void)?
    /// More of the response's body has come.
    public var onReceived: (@Sendable (CallInfo, DownloadProgress) -> Void)?
    /// The attempt has failed, and another one is made after this wait.
    public var onRetry: (@Sendable (CallInfo, Duration, ServiceError) -> Void)?
    /// No response came, and the call is kept. It counts as parked already: ``ServiceManager/repeatFailed()``, called in
    /// here or at the same time, repeats it, and its next ``onStart`` comes when this has returned.
    public var onPark: (@Sendable (CallInfo, ServiceError) -> Void)?
    /// The call has a model; the response that it was made of.
    public var onSuccess: (@Sendable (CallInfo, HTTPResponse) -> Void)?
    /// The call has none, and why.
    public var onFailure: (@Sendable (CallInfo, ServiceError) -> Void)?
    /// Nothing happens to the call any more.
    public var onEnd: (@Sendable (CallInfo) -> Void)?
    /// The last call has ended: there is none that is under way, waits or is parked.
    public var onIdle: (@Sendable () -> Void)?
    /// A request, a response or a failure, as a log may show it.
    public var onLog: (@Sendable (ServiceLogEntry) -> Void)?

    /// No hooks.
    public init() {}
}

// MARK: - Entries of a log

/// A request before it is sent, one for each attempt; a success; or what ended a call without a model, as a log may show
/// it. A failure has an ``error``, a success a ``status`` alone, and a request neither. What its name calls secret is
/// `***`: fields, items of the query, and members of JSON and forms.
public struct ServiceLogEntry: Sendable, Hashable, CustomStringConvertible {
    /// The call.
    public let call: CallInfo
    /// The URL of the request.
    public let url: String
    /// The status of the response; nil if none came, and for a request.
    public let status: Int?
    /// The fields of the request or the response.
    public let headerFields: HTTPFields
    /// The beginning of the content, on one line; of images and the like its length. Empty where there is none, and where
    /// the service does not want it to be logged.
    public let body: String
    /// The text of the failure; nil if there is none.
    public let error: String?

    /// The entry in one line.
    public var description: String {
        let kind = error != nil ? "failure" : status != nil ? "response" : "request"
        var text = "\(call.name) #\(call.id) \(kind): \(call.method) \(url)"
        if let status { text += " \(status)" }
        for field in headerFields { text += "; \(field.name): \(field.value)" }
        if !body.isEmpty { text += "; \(body)" }
        if let error { text += "; \(error)" }
        return text
    }
}

extension ServiceLogEntry {
    /// - Parameter limit: bytes of the content that are shown.
    init(_ call: CallInfo, request: TransportRequest, limit: Int) {
        var body = ""
        if let content = request.body {
            body =
                content.data.map {
                    Self.excerpt($0, content.contentType ?? request.head.headerFields[.contentType], limit)
                }
                ?? content.length.map { "\($0) bytes" } ?? "a stream"
        }
        self.init(
            call: call,
            url: Self.shown(request.head),
            status: nil,
            headerFields: Self.shown(request.head.headerFields),
            body: body,
            error: nil
        )
    }

    /// - Parameters:
    ///   - error: nil for a success.
    ///   - hidesBody: of a success that is not to be shown.
    init(
        _ call: CallInfo,
        _ request: HTTPRequest?,
        _ result: DownloadResult?,
        _ error: ServiceError?,
        hidesBody: Bool,
        limit: Int
    ) {
        let fields = result?.head.headerFields ?? HTTPFields()
        self.init(
            call: call,
            url: request.map(Self.shown) ?? call.location,
            status: result?.head.status.code,
            headerFields: Self.shown(fields),
            body: hidesBody ? "" : result.map { Self.excerpt($0.data, fields[.contentType], limit) } ?? "",
            error: error.map(Self.text)
        )
    }

    /// What a status says is shown by the other members.
    private static func text(_ error: ServiceError) -> String {
        if case .status = error { "the status is no success" } else { "\(error)" }
    }

    private static func shown(_ request: HTTPRequest) -> String { ShownQuery.text(request.text, SecretQuery()) }

    private static func shown(_ fields: HTTPFields) -> HTTPFields {
        var shown = HTTPFields()
        for field in fields {
            let isSecret = SecretNames.contains(field.name.rawName)
            shown.append(isSecret ? HTTPField(name: field.name, value: "***") : field)
        }
        return shown
    }

    private static func excerpt(_ data: Data, _ type: String?, _ limit: Int) -> String {
        var excerpt = BodyExcerpt(limit: limit)
        data.withUnsafeBytes { excerpt.append($0) }
        return excerpt.text(contentType: type)
    }
}
