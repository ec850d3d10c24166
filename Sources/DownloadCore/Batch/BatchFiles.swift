// The files that items of a batch are written to: whole or not at all, without content coding, below one folder or
// anywhere.

import CacheStore
import Content
package import EventLoop
import Glibc
import HTTPWire
import Synchronization

/// The files of items. At any moment a file has either its old bytes or all of the new ones.
///
/// Sendable: the names that are being written are under a mutex.
package final class BatchFiles: Sendable {
    /// Where names of files may lead.
    fileprivate enum Scope: Sendable {
        /// Relative paths lead below `folder`; unfinished files have random names in `drafts`.
        case below(folder: String, drafts: String)
        /// Absolute paths lead anywhere; an unfinished file is beside its final path.
        case anywhere
    }

    fileprivate let scope: Scope
    /// Makes missing folders before files are made in them.
    fileprivate let prepare: @Sendable () throws -> Void
    private let pool: IOPool
    /// Whether the content codings of an item's body are removed before it is written.
    private let isDecoded: @Sendable (BatchItem) -> Bool
    /// The names of the files that items are writing now.
    private let busy = Mutex<Set<String>>([])

    /// Makes the files of relative paths below a folder.
    /// - Parameters:
    ///   - folder: an absolute path; it is created with the first file.
    ///   - drafts: an existing folder on the same file system, for random names; its owner removes what a killed
    ///     process has
    ///     left in it.
    ///   - pool: the threads of blocking calls.
    ///   - prepare: called on the pool before anything is created; it makes the folder that contains both folders.
    package init(
        folder: String,
        drafts: String,
        pool: IOPool,
        prepare: @escaping @Sendable () throws -> Void = {}
    ) {
        scope = .below(folder: folder, drafts: drafts)
        self.prepare = prepare
        self.pool = pool
        isDecoded = { _ in false }
    }

    /// Makes the files of absolute paths; an unfinished file is beside its final path under a name that begins with a
    /// dot.
    /// - Parameters:
    ///   - pool: the threads of blocking calls.
    ///   - isDecoded: whether the content codings of an item's body are removed before it is written.
    package init(anywhereWith pool: IOPool, isDecoded: @escaping @Sendable (BatchItem) -> Bool) {
        scope = .anywhere
        prepare = {}
        self.pool = pool
        self.isDecoded = isDecoded
    }

    /// The reason why a name is not valid for a file; nil if it is valid.
    func refusal(of name: String) -> String? {
        switch scope {
        case .below: Self.refusal(below: name)
        case .anywhere:
            name.hasPrefix("/") && !name.hasSuffix("/") && !name.utf8.contains(0)
                ? nil : "'\(name)' is not a file; name one by an absolute path"
        }
    }

    private static func refusal(below name: String) -> String? {
        let segments = name.split(separator: "/", omittingEmptySubsequences: false)
        let isPath =
            name.utf8.count <= 1024
            && segments.allSatisfy { segment in
                !segment.isEmpty && segment != "." && segment != ".." && segment.utf8.count <= 240
                    && segment.utf8.allSatisfy { $0 >= 32 && $0 != 127 }
            }
        return isPath
            ? nil
            : "'\(name)' is not a relative path; write one such as maps/world.json, without empty segments or dot segments"
    }

    /// Begins the file of an item, and creates missing folders.
    /// - Parameters:
    ///   - name: the name of the item's file.
    ///   - fields: the fields of the response that is written.
    /// - Throws: ``BatchRefusal`` if the name is invalid, another item is writing the file, or no file can be created
    ///   there.
    func begin(_ name: String, for item: BatchItem, _ fields: Fields) async throws(BatchRefusal) -> BatchFile {
        let codings = isDecoded(item) ? ContentCoding.codings(fields) ?? [] : []
        if let refusal = refusal(of: name) { throw BatchRefusal(refusal) }
        guard busy.withLock({ $0.insert(name).inserted }) else {
            throw BatchRefusal("another item is being written to '\(name)'; give each its own file")
        }
        do {
            return try await pool.run { try BatchFile(name, in: self, codings.isEmpty ? nil : FileDecoding(codings)) }
        } catch {
            end(name)
            throw BatchRefusal("'\(name)' is not written: \(error)")
        }
    }

    fileprivate func end(_ name: String) { _ = busy.withLock { $0.remove(name) } }

    fileprivate func blocking(_ name: String, _ work: @escaping @Sendable () throws -> Void) async throws(BatchRefusal)
    {
        do { try await pool.run(work) } catch { throw BatchRefusal("'\(name)' is not written: \(error)") }
    }
}

/// A file that is being written; ``finish()`` or ``abandon()`` ends it, exactly once.
struct BatchFile: Sendable {
    private let files: BatchFiles
    private let name: String
    private let target: String
    private let temporary: String
    private let descriptor: Int32
    private let decoding: FileDecoding?

    /// Creates the file; blocks.
    fileprivate init(_ name: String, in files: BatchFiles, _ decoding: FileDecoding?) throws {
        try files.prepare()
        self.files = files
        self.decoding = decoding
        self.name = name
        let (parent, drafts): (String, String)
        // The umask decides about the files of a program; the files of a daemon are not writable for others.
        let modes: (folder: mode_t, file: mode_t)
        switch files.scope {
        case .below(let folder, let others):
            (target, drafts, modes) = ("\(folder)/\(name)", others, (0o755, 0o644))
            parent = Self.parent(target)
            var path = folder
            for part in [""] + name.split(separator: "/").dropLast().map({ "/\($0)" }) {
                path += part
                if mkdir(path, modes.folder) != 0, errno != EEXIST { throw SystemError("mkdir \(path)") }
            }
        case .anywhere:
            (target, modes) = (name, (0o777, 0o666))
            parent = Self.parent(name)
            drafts = parent
            try Folders.make(parent, mode: modes.folder)
        }
        // An obstacle is found before anything is fetched.
        guard access("\(parent)/.", W_OK) == 0 else { throw SystemError("write to \(parent)") }
        // The name of an unfinished file is random, because any fixed name might belong to another item or program.
        let draft = String(UInt64.random(in: 0 ... .max), radix: 36)
        temporary = drafts == parent ? "\(drafts)/.\(draft).download" : "\(drafts)/\(draft)"
        descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, modes.file)
        guard descriptor >= 0 else { throw SystemError("open \(temporary)") }
    }

    /// The folder of a file; empty for one at the root.
    private static func parent(_ path: String) -> String { path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "" }

    func append(_ piece: BodyPiece) async throws(BatchRefusal) {
        let (descriptor, temporary, decoding) = (descriptor, temporary, decoding)
        try await files.blocking(name) {
            let read =
                switch piece {
                case .bytes(let chunk, let range): chunk.array(range)
                case .file(let file, let offset, let count):
                    try file.read(offset: offset, count: count).array(0..<count)
                }
            if let decoding {
                try decoding.decode(read) { try Self.write($0, to: descriptor, temporary) }
            } else {
                try read.withUnsafeBytes { try Self.write($0, to: descriptor, temporary) }
            }
        }
    }

    private static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32, _ name: String) throws(SystemError)
    {
        var done = 0
        while done < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
            let count = Glibc.write(descriptor, rest.baseAddress, rest.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw SystemError("write \(name)") }
            done += count
        }
    }

    /// Moves the file to its path as soon as all of it has reached the disk.
    /// - Parameter isStored: whether the store has the bytes, too. If not, a file that cannot be moved to its path
    ///   stays where
    ///   it was written, and the refusal names it.
    func finish(isStored: Bool) async throws(BatchRefusal) {
        defer { files.end(name) }
        let (descriptor, temporary, target, decoding) = (descriptor, temporary, target, decoding)
        var keeps = false
        if case .anywhere = files.scope { keeps = !isStored }
        let mayStay = keeps
        try await files.blocking(name) {
            var isLost = true
            defer { if isLost { unlink(temporary) } }
            guard decoding?.isWhole ?? true else {
                close(descriptor)
                throw FileDecoding.Broken()
            }
            let isSynced = fdatasync(descriptor) == 0
            let code = errno
            close(descriptor)
            guard isSynced else { throw SystemError("sync \(temporary)", code: code) }
            guard rename(temporary, target) == 0 else {
                let error = SystemError("rename to \(target)")
                guard mayStay else { throw error }
                isLost = false
                throw SystemError(
                    "the bytes are in \(temporary), and could not be moved to \(target)",
                    code: error.code
                )
            }
        }
    }

    /// Removes the unfinished file; a file at its final path stays as it is.
    func abandon() async {
        defer { files.end(name) }
        let (descriptor, temporary) = (descriptor, temporary)
        try? await files.blocking(name) {
            close(descriptor)
            unlink(temporary)
        }
    }
}

// MARK: - A file without content codings

/// The decoder of a file's content. Sendable: it is under a mutex without contention, because the pieces of a body
/// arrive one after the other.
final class FileDecoding: Sendable {
    /// The bytes do not have the content coding that their response names, or end too early.
    struct Broken: Error, CustomStringConvertible {
        let description = "the body is not in the coding which its Content-Encoding names, or not whole"
    }

    private struct State {
        let decoder: ContentDecoder
        /// Whether a coded byte has arrived.
        var hasBegun = false
    }

    private let state: Mutex<State>

    /// Makes a decoder.
    /// - Parameter codings: the content codings, in the order of decoding.
    init(_ codings: [ContentCoding]) { state = Mutex(State(decoder: ContentDecoder(codings))) }

    /// Decodes bytes, and writes each part as soon as it is decoded, because a few coded bytes may unfold to more than
    /// fits into memory.
    /// - Throws: ``Broken``, or what `write` throws.
    func decode(_ coded: [UInt8], _ write: @Sendable (UnsafeRawBufferPointer) throws -> Void) throws {
        try state.withLock { state in
            if !coded.isEmpty { state.hasBegun = true }
            let decoder = state.decoder
            var failure: (any Error)?
            coded.withUnsafeBytes { coded in
                do throws(ContentDecoder.Malformed) {
                    try decoder.push(coded) { piece in
                        do { try write(piece) } catch { failure = error }
                        return failure == nil
                    }
                } catch {
                    failure = Broken()
                }
            }
            if let failure { throw failure }
        }
    }

    /// Whether the coded content is complete; a body without bytes has no coding to end.
    var isWhole: Bool { state.withLock { !$0.hasBegun || $0.decoder.isAtEnd } }
}
