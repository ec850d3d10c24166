// The content of an answer that is being recorded: a small part in memory, the rest in a file without a name.

import CacheStore
import EventLoop
import Glibc
import HTTPWire

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
