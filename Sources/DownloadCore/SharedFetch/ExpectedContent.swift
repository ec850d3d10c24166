// Looks into a body on its way to the store, where the route expects something of it.

import CacheStore
import Content
import EventLoop
import HTTPWire

/// Loop-bound. What it finds decides what is stored, never what readers get.
final class ExpectedContent {
    private let context: FetchContext
    private let ask: CacheRequest
    /// Nil where nothing is expected of the body, or nothing can be seen yet.
    private var inspection: ContentInspection?
    /// Bytes that the inspection has seen before they flow.
    private var inspected = 0
    private var isReported = false

    init(_ context: FetchContext, _ ask: CacheRequest) {
        self.context = context
        self.ask = ask
    }

    /// Something is expected of the body.
    var isInspected: Bool { inspection != nil }

    /// Why the body is known not to be what the route expects.
    var mismatch: String? { inspection?.mismatch }

    /// What came of a body that was cut short may not be stored: nobody can say what a part is.
    var isUnknownInPart: Bool { inspection.map { $0.mismatch != nil || ask.phases?.expect.needsAll == true } ?? false }

    /// Holds the head back until enough of the body has arrived to recognise its content.
    /// - Throws: `FetchError` where the fetch failed or was cancelled meanwhile.
    func inspectBeginning(
        _ head: ResponseHead,
        _ stream: FetchStream,
        on loop: isolated EventLoop
    ) async throws(FetchError) {
        // Other statuses tell something else than what the resource is.
        guard let expect = ask.phases?.expect, expect != .any, head.status == 200 || head.status == 203 else { return }
        let inspection = ContentInspection(expect, head.fields)
        self.inspection = inspection
        let isEnough = { [self] (bytes: UnsafeRawBufferPointer) in
            inspected += bytes.count
            return inspection.push(bytes)
        }
        try await stream.hold(until: isEnough, on: loop)
        if let found = mismatch ?? (inspection.isBeginningKnown ? nil : inspection.finish()) {
            report(found)
        }
    }

    /// Looks at bytes that flow; those that were seen before are left out.
    func inspect(_ bytes: UnsafeRawBufferPointer) {
        guard let inspection else { return }
        let known = min(inspected, bytes.count)
        inspected -= known
        inspection.push(UnsafeRawBufferPointer(rebasing: bytes[known...]))
    }

    /// Whether the whole body is what the route expects.
    /// - Parameter now: Unix seconds.
    func isMet(now: Int64) -> Bool {
        guard let found = inspection?.finish() else { return true }
        report(found)
        context.notes.noteUnkept(ask, .unexpectedContent, now: now)
        return false
    }

    private func report(_ found: String) {
        if !isReported { context.notes.noteUnexpected(ask, found) }
        isReported = true
    }
}

@available(*, unavailable) extension ExpectedContent: Sendable {}
