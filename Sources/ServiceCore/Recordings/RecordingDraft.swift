// What becomes a recording: the answer as it is drafted, and its content while it arrives.

import CacheStore
import Content
import DownloadCore
import EventLoop
import Glibc
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

/// Loop-bound; it ends with its last user, and its file with it.
final class RecordingContent {
    /// Bytes in memory, as far as the budget allows them; shorter contents have no file.
    private static let window = 256 << 10

    private let body: Body
    private let writer: BodyWriter
    private let spill: SpillFile
    private let folder: RecordingFolder
    /// So many bytes have come.
    private(set) var count = 0

    /// - Parameters:
    ///   - limit: bytes that will come at most.
    ///   - hasRoom: called on the loop after ``append(_:)`` has said `.pause`: more may come.
    ///   - failed: called on the loop where the file cannot be written: nothing more is to come.
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

    /// Takes bytes whatever the verdict.
    func append(_ bytes: UnsafeRawBufferPointer) -> WriteVerdict {
        count += bytes.count
        return writer.append(bytes)
    }

    /// All has come: makes a recording of it, and writes it.
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
    /// A file without a name in the folder, made with its first bytes.
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

    /// On an I/O thread.
    private func openUnnamed() throws(SystemError) -> Int32 {
        try makeFolder()
        let name = "\(path)/\(RecordingSweep.nameless)\(String(UInt64.random(in: .min ... .max), radix: 16))"
        let descriptor = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw SystemError("create a file in \(path)") }
        unlink(name)
        return descriptor
    }
}
