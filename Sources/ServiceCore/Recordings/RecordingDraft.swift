// What becomes a recording, but for the content.

import CacheStore
import Content
import DownloadCore
import HTTPCaching
import HTTPWire
import Policies

/// One answer that has come to its end.
struct RecordingDraft: Sendable {
    let key: RecordingKey
    /// Of the answer, without the fields of the connection.
    let head: ResponseHead
    /// The fields of the request.
    let asked: Fields
    /// Unix seconds.
    let now: Int64
    let plan: RecordingPlan
    /// What is not so is not kept; nil: everything may be.
    let expectation: SeedExpectation?

    init(
        _ key: RecordingKey,
        _ head: ResponseHead,
        asked: Fields,
        now: Int64,
        _ plan: RecordingPlan,
        _ expectation: SeedExpectation?
    ) {
        self.key = key
        self.head = ResponseHead(
            status: head.status,
            reason: head.reason,
            fields: HopByHop.forwardable(head.fields, isRequest: false)
        )
        self.asked = asked
        self.now = now
        self.plan = plan
        self.expectation = expectation
    }

    /// Whether a content becomes that of the recording as it is, so that nobody has to look into all of it.
    func keeps(_ content: UnsafeRawBufferPointer) -> Bool {
        guard expectation == nil, plan.rules.redactedMembers.isEmpty else { return false }
        guard let codings = ContentCoding.codings(head.fields) else { return true }
        return codings.isEmpty && !Redaction.looks(into: content, of: head.fields, plan.rules)
    }

    /// Belongs on an I/O thread.
    /// - Parameter tell: gets the reason why there is none.
    /// - Returns: nil where no recording may be made of it.
    func recording(_ content: [UInt8], tell: (String) -> Void) -> Recording? {
        if let found = unexpected(content) {
            tell("the answer to '\(key.request)' is not recorded: it \(found), which its route does not expect")
            return nil
        }
        let kept: (fields: Fields, content: [UInt8])
        do throws(RedactionRefusal) {
            kept = try Redaction.apply(to: content, of: head.fields, plan.rules, plan.secrets)
        } catch {
            tell("the answer to '\(key.request)' is not recorded: it \(error)")
            return nil
        }
        return Recording(
            key: key,
            vary: plan.rules.matchesVary ? RecordingVary.pairs(kept.fields, asked) : [],
            recordedAt: now,
            status: head.status,
            reason: head.reason,
            fields: kept.fields,
            content: kept.content
        )
    }

    /// What the answer is that its route does not expect, such as `has the status 404`; nil where it is as expected.
    private func unexpected(_ content: [UInt8]) -> String? {
        guard let expectation else { return nil }
        let whole = OwnRepresentation(
            ResponseHead(status: head.status, fields: head.fields),
            length: Int64(content.count),
            now: now
        )
        return expectation.mismatch(whole.head, content)
    }
}
