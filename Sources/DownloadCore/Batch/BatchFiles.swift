// The files that items of a batch are written to: whole or not at all, without content coding, below one folder or
// wherever a program says.

import CacheStore
import Content
package import EventLoop
import Glibc
import HTTPWire
import Synchronization

/// The files of items. A file has either its old bytes or all of the new ones at any moment.
///
/// Sendable: the names that are being written are under a mutex.
package final class BatchFiles: Sendable {
    /// The folder or the paths that names of files lead to.
    fileprivate enum Place: Sendable {
        /// Relative paths lead below `folder`; drafts have random names in `drafts`.
        case below(folder: String, drafts: String)
        /// Absolute paths lead anywhere; a draft is beside its file.
        case anywhere
    }

    fileprivate let place: Place
    /// Makes the folders whole that files are made in.
    fileprivate let prepare: @Sendable () throws -> Void
    private let pool: IOPool
    /// Whether content codings are taken off what is written for an item.
    private let isDecoded: @Sendable (BatchItem) -> Bool
    /// The names that items write to now.
    private let busy = Mutex<Set<String>>([])

    /// Names are relative paths below a folder.
    /// - Parameters:
    ///   - folder: an absolute path; it is created with the first file.
    ///   - drafts: a folder of the same file system, whose names are random; it exists, and its owner
    ///     removes what a killed process has left in it.
    ///   - pool: for what blocks.
    ///   - prepare: called before anything is made, on the pool: makes both folders' own folder whole.
    package init(
        folder: String,
        drafts: String,
        pool: IOPool,
        prepare: @escaping @Sendable () throws -> Void = {}
    ) {
        place = .below(folder: folder, drafts: drafts)
        self.prepare = prepare
        self.pool = pool
        isDecoded = { _ in false }
    }

    /// Names are absolute paths; a file is written beside its place under a name that begins with a dot.
    /// - Parameters:
    ///   - pool: for what blocks.
    ///   - isDecoded: whether content codings are taken off what is written for an item.
    package init(anywhereWith pool: IOPool, isDecoded: @escaping @Sendable (BatchItem) -> Bool) {
        place = .anywhere
        prepare = {}
        self.pool = pool
        self.isDecoded = isDecoded
    }

    /// Why a name cannot be that of a file; nil where it can.
    func refusal(of name: String) -> String? {
        switch place {
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

    /// Begins the file of an item, in folders that are created where they are missing.
    /// - Parameters:
    ///   - name: the item's file.
    ///   - fields: of the response that is written.
    /// - Throws: ``BatchRefusal`` where the name is none, another item writes to it now, or no file can be made there.
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

/// A file that is being written; ``finish()`` or ``abandon()`` ends it, once.
struct BatchFile: Sendable {
    private let files: BatchFiles
    private let name: String
    private let place: String
    private let temporary: String
    private let descriptor: Int32
    private let decoding: FileDecoding?

    /// It blocks.
    fileprivate init(_ name: String, in files: BatchFiles, _ decoding: FileDecoding?) throws {
        try files.prepare()
        self.files = files
        self.decoding = decoding
        self.name = name
        let (parent, drafts): (String, String)
        // A program's files get what its umask allows; those of a daemon are not for others to change.
        let modes: (folder: mode_t, file: mode_t)
        switch files.place {
        case .below(let folder, let others):
            (place, drafts, modes) = ("\(folder)/\(name)", others, (0o755, 0o644))
            parent = Self.parent(place)
            var path = folder
            for part in [""] + name.split(separator: "/").dropLast().map({ "/\($0)" }) {
                path += part
                if mkdir(path, modes.folder) != 0, errno != EEXIST { throw SystemError("mkdir \(path)") }
            }
        case .anywhere:
            (place, modes) = (name, (0o777, 0o666))
            parent = Self.parent(name)
            drafts = parent
            try Folders.make(parent, mode: modes.folder)
        }
        // What stands in the way is found before anything is fetched.
        guard access("\(parent)/.", W_OK) == 0 else { throw SystemError("write to \(parent)") }
        // An item or a program may have a file of any name beside its place, so that the name is random.
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

    /// The file takes its place when all of it has reached the disk.
    /// - Parameter isStored: the bytes are somewhere else, too. Of others the file stays where it was written if it cannot
    ///   take its place; the refusal names it.
    func finish(isStored: Bool) async throws(BatchRefusal) {
        defer { files.end(name) }
        let (descriptor, temporary, place, decoding) = (descriptor, temporary, place, decoding)
        var keeps = false
        if case .anywhere = files.place { keeps = !isStored }
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
            guard rename(temporary, place) == 0 else {
                let error = SystemError("rename to \(place)")
                guard mayStay else { throw error }
                isLost = false
                throw SystemError("the bytes are in \(temporary), and could not be moved to \(place)", code: error.code)
            }
        }
    }

    /// What is in its place stays as it is.
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

/// Sendable: the decoder is under a mutex, which nobody else waits for: the pieces of a body come one after the other.
final class FileDecoding: Sendable {
    /// The bytes are not in the coding that they are said to be in, or not all of them came.
    struct Broken: Error, CustomStringConvertible {
        let description = "the body is not in the coding which its Content-Encoding names, or not whole"
    }

    private struct State {
        let decoder: ContentDecoder
        /// There was a coded byte.
        var hasBegun = false
    }

    private let state: Mutex<State>

    /// - Parameter codings: in the order of decoding.
    init(_ codings: [ContentCoding]) { state = Mutex(State(decoder: ContentDecoder(codings))) }

    /// Decodes bytes, and writes a part as soon as it is decoded: a few coded bytes may unfold to more than fits into
    /// memory.
    /// - Throws: ``Broken``, and what `write` throws.
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

    /// Every byte has come; a body without any has no coding to end.
    var isWhole: Bool { state.withLock { !$0.hasBegun || $0.decoder.isAtEnd } }
}
