// The draft of a recording, and its content while it arrives.

import CacheStore
import Content
import DownloadCore
import EventLoop
import Glibc
import HTTPCaching
import HTTPWire
import Policies

/// An answer that has ended, from which a recording is made.
struct RecordingDraft: Sendable {
    let key: RecordingKey
    /// The head of the answer, without the fields of the connection.
    let head: ResponseHead
    /// The fields of the request, whose values for the names in Vary are recorded.
    let asked: Fields
    /// The time of the recording, in seconds since 1970.
    let now: Int64
    let plan: RecordingPlan
    /// The expectation on the answer, which is not recorded if it does not meet it; nil records any.
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

    /// True if the content is recorded unchanged, so that it does not have to be looked through.
    func keeps(_ content: UnsafeRawBufferPointer) -> Bool {
        guard expectation == nil, plan.rules.redactedMembers.isEmpty else { return false }
        guard let codings = ContentCoding.codings(head.fields) else { return true }
        return codings.isEmpty && !Redaction.looks(into: content, of: head.fields, plan.rules)
    }

    /// Makes the recording. On an I/O thread.
    /// - Parameter tell: called with the reason if there is none.
    /// - Returns: nil if the answer may not be recorded.
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

    /// The mismatch with the expectation, such as `has the status 404`; nil if there is none.
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

/// The content of an answer while it arrives: in memory, or in a file if it is long. Loop-bound; the file ends with
/// this object.
final class RecordingContent {
    /// The number of bytes in memory, as far as the budget allows; a shorter content has no file.
    private static let window = 256 << 10

    private let body: Body
    private let writer: BodyWriter
    private let spill: SpillFile
    private let folder: RecordingFolder
    /// The number of bytes that have come.
    private(set) var count = 0

    /// - Parameters:
    ///   - limit: the most bytes that will come.
    ///   - hasRoom: called on the loop after ``append(_:)`` has returned `.pause`, when more may come.
    ///   - failed: called on the loop if the file cannot be written; no more bytes may come then.
    init(
        in folder: RecordingFolder,
        atMost limit: Int,
        budget: BodyBudget,
        hasRoom: @escaping () -> Void,
        failed: @escaping () -> Void,
        on loop: isolated EventLoop
    ) {
        self.folder = folder
        spill = folder.spill(atMost: Int64(limit))
        let options = GrowingBodyOptions(window: Self.window, spill: spill, budget: budget)
        (body, writer) = Body.growing(options, on: loop)
        writer.onDrain = hasRoom
        writer.onAbandoned = failed
    }

    /// Adds bytes, which are taken also if the verdict is `.pause`.
    func append(_ bytes: UnsafeRawBufferPointer) -> WriteVerdict {
        count += bytes.count
        return writer.append(bytes)
    }

    /// Ends the content, and writes the recording that is made of it.
    func save(_ draft: RecordingDraft) async {
        writer.finish()
        let folder = folder
        if let chunk = body.inMemory()?.wholeChunk {
            await folder.save { draft.recording(Array(chunk.bytes), tell: folder.tell) }
            return
        }
        do {
            let isFiled: Bool = try await body.flush()
            guard isFiled else { return }
            await folder.save(draft, from: spill)
        } catch {
            folder.tell("the answer to '\(draft.key.request)' is not recorded: \(error); make room, and ask again")
        }
    }
}

@available(*, unavailable) extension RecordingContent: Sendable {}

extension RecordingFolder {
    /// A file without a name in the folder, which is made when its first bytes come.
    fileprivate func spill(atMost limit: Int64) -> SpillFile {
        let room = SpillFile.Room(reserve: { _ in true }, release: { _ in }, maxObject: limit)
        return SpillFile(partAt: 0, of: path, pool: pool, room: room, expected: 0) { [self] () throws(BodyError) in
            do throws(SystemError) {
                return SharedFile(descriptor: try openUnnamed(), pool: pool)
            } catch {
                throw .file(error)
            }
        }
    }

    /// Opens a file in the folder and removes its name. On an I/O thread.
    private func openUnnamed() throws(SystemError) -> Int32 {
        try makeFolder()
        let name = "\(path)/\(RecordingSweep.nameless)\(String(UInt64.random(in: .min ... .max), radix: 16))"
        let descriptor = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw SystemError("create a file in \(path)") }
        unlink(name)
        return descriptor
    }
}
