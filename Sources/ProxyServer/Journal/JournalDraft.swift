// The draft of a journal entry: made with a request, filled while it is answered, recorded at its end.

import Content
import EventLoop
import HTTPWire
import ServiceCore
import Upstream

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
            target: LoggedReferer.text(request.target, secrets),
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
