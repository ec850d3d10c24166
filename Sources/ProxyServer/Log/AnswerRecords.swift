// The record of an answer: what is noted of it while it is sent, then one access log line, one journal entry, and the
// counters.

import Content
import EventLoop
import HTTPWire
import ServiceCore
import Upstream

/// The size of an answer, and the time at which it began.
struct AnswerExtent {
    /// The number of body bytes, those that are still queued included.
    let bytes: Int
    /// The number of queued bytes that were not sent.
    let unsent: Int
    /// The beginning of the answer in monotonic nanoseconds.
    let began: UInt64

    /// The number of body bytes that went out.
    func sent(isAborted: Bool) -> Int { isAborted ? max(0, bytes - unsent) : bytes }
}

/// Counts and logs the answers of one connection. Loop-bound.
struct AnswerRecords {
    let client: ConnectedClient
    /// True if answers of this listener are logged and counted.
    let isRecorded: Bool
    let context: LoopContext

    /// The log entry of an answer of the hot path: nothing is copied, so it is valid as long as the request's bytes
    /// are.
    func borrowedEntry(_ record: HotRecord, _ request: borrowing HotRequest) -> AccessEntry {
        var entry = AccessEntry(
            client: client.name,
            method: request.method.name,
            target: client.isInTunnel
                ? .string(client.connection.shown(Latin1.string(request.target))) : .bytes(request.target),
            status: record.status
        )
        entry.protocolName = client.connection.protocolName(request.version)
        entry.session = client.session
        entry.route = record.route.name
        entry.endpoint = record.route.endpointName
        entry.cacheStatus = .bytes(record.cacheStatus)
        if context.tellsID {
            entry.id = request.takenID.map { .bytes($0) } ?? .digits(context.nextRequestID())
            entry.host = request.host.map { .bytes($0) }
        }
        if context.log?.needsAgent == true {
            entry.referer = request.value(.referer).map { LoggedReferer.text($0, context.secrets) }
            entry.userAgent = request.value(.userAgent).map { .bytes($0) }
        }
        return entry
    }

    /// Records an answer, once for each exchange: a second call does nothing.
    func record(_ exchange: Exchange, _ extent: AnswerExtent, isAborted: Bool) {
        guard !exchange.isRecorded else { return }
        exchange.isRecorded = true
        // Status 499 is nginx's status for a client that left before there was an answer.
        let status = exchange.status ?? 499
        exchange.draft?.record(exchange, status: status, isAborted: isAborted)
        let kind = AnswerKind(
            number: exchange.outcome.number,
            outcome: exchange.outcome.cache,
            tier: exchange.outcome.tier,
            status: status
        )
        let took = Monotonic.now() &- extent.began
        let answeredAt = exchange.answeredAt
        count(kind, extent, firstByte: answeredAt == 0 ? nil : answeredAt &- extent.began, took, isAborted: isAborted)
        if let span = exchange.trace?.span { end(span, exchange, kind, took, isAborted: isAborted) }
        guard context.isTelling || exchange.trace?.isLogged == true else { return }
        var entry = AccessEntry(
            client: client.name,
            method: exchange.request.method.name,
            target: .string(client.connection.shown(exchange.request.target)),
            status: status
        )
        entry.protocolName = client.connection.protocolName(exchange.request.version)
        entry.session = client.session
        entry.route = exchange.outcome.route
        entry.endpoint = exchange.outcome.endpoint
        entry.cacheStatus = .string(exchange.outcome.cacheStatus)
        entry.upstreamStatus = exchange.outcome.upstreamStatus
        entry.upstreamTime = exchange.outcome.upstreamTime
        entry.error = exchange.outcome.error
        entry.fault = exchange.outcome.fault
        if context.tellsID {
            entry.id = .string(exchange.requestID.text)
            entry.host = exchange.request.fields.first(.host).map { .string($0) }
        }
        if context.log?.needsAgent == true {
            entry.referer = exchange.request.fields.first(.referer).map {
                .string(LoggedReferer.text($0, context.secrets))
            }
            entry.userAgent = exchange.request.fields.first(.userAgent).map { .string($0) }
        }
        if let trace = exchange.trace {
            entry.bytes = extent.bytes
            entry.isAborted = isAborted
            trace.tellEnd(entry)
        }
        tell(entry, kind, extent, took, isAborted: isAborted)
    }

    /// Ends the span of a request; a traced one stands for others in the histogram of whole times.
    private func end(
        _ span: OpenSpan,
        _ exchange: Exchange,
        _ kind: AnswerKind,
        _ took: UInt64,
        isAborted: Bool
    ) {
        exchange.end(span, kind, isAborted: isAborted)
        guard span.isSampled, isRecorded else { return }
        let exemplar = Exemplar(trace: span.context.traceText, duration: took, time: EventHub.wallTime())
        context.counters.note(kind, exemplar)
    }

    /// Records an answer of the hot path that the socket did not take at once.
    func record(_ entry: AccessEntry, _ kind: AnswerKind, _ extent: AnswerExtent, isAborted: Bool) {
        let took = Monotonic.now() &- extent.began
        count(kind, extent, firstByte: took, took, isAborted: isAborted)
        tell(entry, kind, extent, took, isAborted: isAborted)
    }

    private func tell(
        _ entry: AccessEntry,
        _ kind: AnswerKind,
        _ extent: AnswerExtent,
        _ took: UInt64,
        isAborted: Bool
    ) {
        guard isRecorded, context.isTelling else { return }
        var entry = entry
        entry.bytes = extent.sent(isAborted: isAborted)
        entry.isAborted = isAborted
        entry.duration = took
        tell(entry, kind)
    }

    /// Writes the line of an answer to the access log, and for those who watch.
    func tell(_ entry: AccessEntry, _ kind: AnswerKind) {
        if let log = context.log, log.isOn { log.write(entry) }
        if context.traffic.isListening { context.traffic.put(entry, kind) }
    }

    private func count(
        _ kind: AnswerKind,
        _ extent: AnswerExtent,
        firstByte: UInt64?,
        _ took: UInt64,
        isAborted: Bool
    ) {
        guard isRecorded else { return }
        context.counters.answers.add(
            kind,
            bytes: extent.sent(isAborted: isAborted),
            firstByte: firstByte,
            took: took
        )
        if isAborted { context.counters.add(.errorAborted) }
    }
}

@available(*, unavailable) extension AnswerRecords: Sendable {}

extension HotRequest {
    /// The bytes of the client's request id, where they lie; nil if there is none, or if the first is not safe in a log
    /// line.
    fileprivate var takenID: UnsafeRawBufferPointer? {
        guard present.contains(.other) else { return nil }
        var first: UnsafeRawBufferPointer?
        fields.forEachLine { name, value, known in
            if first == nil, known == .other, name.equalsIgnoringCase(RequestID.field) { first = value }
        }
        return first.flatMap { RequestID.isSafe($0) ? $0 : nil }
    }
}

extension RequestTrace {
    /// Logs how an answer ended, as the last line about a request.
    func tellEnd(_ entry: AccessEntry) {
        say(
            "answered",
            [
                ("status", "\(entry.status)"), ("bytes", "\(entry.bytes)"), ("service", entry.route),
                ("endpoint", entry.endpoint), ("upstream_status", entry.upstreamStatus.map { "\($0)" } ?? ""),
                ("aborted", entry.isAborted ? "true" : ""), ("error", entry.error),
            ]
        )
    }
}

// MARK: - The journal entry

/// Collects what the journal records of one request. Loop-bound, made while the journal is on.
final class JournalDraft {
    private let journal: Journal
    private let settings: JournalSettings
    private var body: [UInt8] = []
    private var isBodyCut = false
    /// The number of body bytes that have been read.
    private var seen = 0
    /// The value of Drydock-Demo in a demo answer; empty otherwise.
    var demo = ""
    /// The violations of the service's OpenAPI document by the request; empty for none.
    var violations = ""

    init(_ journal: Journal) {
        self.journal = journal
        settings = journal.settings
    }

    /// Wraps the request's body, so that its bytes are recorded as they are read.
    /// - Parameter framing: the framing of the request: a reader that has read the whole length may stop without seeing
    ///   the end.
    func watching(_ source: any RequestBodySource, _ framing: BodyFraming) -> any RequestBodySource {
        // The body counts as cut until its end has been seen.
        isBodyCut = true
        return SeenBody(source) { [weak self] in
            self?.see($0)
            if case .length(let length) = framing, let self, UInt64(seen) >= length { sawEnd() }
        } ended: { [weak self] in
            self?.sawEnd()
        }
    }

    /// Reads the beginning of a body that is not read otherwise, such as that of a request with a demo answer.
    /// - Returns: the same body from its start.
    func readAhead(
        _ source: any RequestBodySource,
        bind: ((_ available: @escaping () -> Void) -> Void)?,
        on loop: isolated EventLoop
    ) async -> any RequestBodySource {
        // An incomplete body is not handled here: the exchange ends it.
        guard settings.bodies > 0,
            let content = try? await PostedContent.read(source, bind: bind, atMost: settings.bodies, on: loop)
        else { return source }
        return content.again(then: source)
    }

    private func see(_ bytes: UnsafeRawBufferPointer) {
        body.append(contentsOf: bytes.prefix(max(0, settings.bodies - body.count)))
        seen += bytes.count
    }

    private func sawEnd() { isBodyCut = seen > body.count }

    /// Records the request with its answer.
    /// - Parameter status: the status of the answer, or the one that the access log shows if there was none.
    func record(_ exchange: Exchange, status: Int, isAborted: Bool) {
        let duration = Monotonic.now() &- exchange.startedAt
        let request = exchange.request
        let secrets = exchange.context.secrets
        var entry = JournalEntry(
            time: EventHub.wallTime() &- duration,
            method: request.method.name,
            target: exchange.shownTarget,
            status: status
        )
        entry.service = exchange.outcome.route
        entry.endpoint = exchange.outcome.endpoint
        entry.fields = request.fields.lines.map { line in
            let isHidden = settings.redacted.contains(line.name.lowercased())
            let value = line.name.lowercased() == "referer" ? LoggedReferer.text(line.value, secrets) : line.value
            return JournalEntry.Field(name: line.name, value: isHidden ? JournalEntry.hidden : value)
        }
        let isCoded = request.fields.combined(.contentEncoding).map { $0.lowercased() != "identity" } ?? false
        entry.body =
            isCoded ? body : exchange.context.contents.hidden(body, type: request.fields.first(.contentType))
        entry.isBodyCut = isBodyCut
        entry.source = exchange.outcome.cache.label
        entry.cacheStatus = exchange.outcome.cacheStatus
        entry.demo = demo
        entry.violations = violations
        entry.duration = duration
        entry.isAborted = isAborted
        journal.record(entry)
    }
}

@available(*, unavailable) extension JournalDraft: Sendable {}
