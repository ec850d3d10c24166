// The recordings of one service in a folder: two files each, which only their owner can read.

import CacheStore
package import EventLoop
import Files
import Glibc
import HTTPCaching
package import HTTPWire
package import Policies
import Synchronization

/// Reads and writes recordings on an I/O thread.
///
/// Sendable: the files of one recording are written under a mutex, which only I/O threads take.
package final class RecordingFolder: Sendable {
    /// The absolute path of the folder.
    package let path: String
    let pool: IOPool
    private let onTrouble: @Sendable (String) -> Void
    private let writing = Mutex(())
    private let sweep: RecordingSweep
    private let prepare: @Sendable () -> Void

    static let headSuffix = ".head.json"
    /// The largest number of bytes of a content that is read together with its head.
    private static let shortContent = 64 << 10

    /// - Parameters:
    ///   - path: the absolute path of the folder, which is made with the first recording.
    ///   - prepare: called on an I/O thread before the folder is made; makes the folder that it may lie in.
    ///   - onTrouble: called on any thread with the reason why a recording is not used or not written.
    package init(
        path: String,
        pool: IOPool,
        prepare: @escaping @Sendable () -> Void = {},
        onTrouble: @escaping @Sendable (String) -> Void
    ) {
        self.path = path
        self.pool = pool
        self.onTrouble = onTrouble
        self.prepare = prepare
        sweep = RecordingSweep(path)
    }

    /// The recording for a request, ready to be sent; nil if there is none that can be used.
    /// - Parameter request: the fields of the request, which have to match those that the answer names in Vary.
    package func find(_ key: RecordingKey, _ request: Fields) async -> OpenRecording? {
        (try? await pool.run { [self] in load(key, request) }) ?? nil
    }

    /// The recordings nearest to a request, and their differences, as a text; nil if none is near.
    package func nearest(to key: RecordingKey, _ request: Fields) async -> String? {
        (try? await pool.run { [self] in
            var nearest = NearestRecordings(key, request)
            for name in nearest.candidates(fileNames()) { document(name).map { nearest.add($0) } }
            return nearest.told
        }) ?? nil
    }

    /// All recordings, in the order of their names.
    package func all() async -> [Recording] {
        (try? await pool.run { [self] in
            var found: [Recording] = []
            for name in fileNames() {
                if let recording = read(name, \.key) { found.append(recording) }
            }
            return found
        }) ?? []
    }

    /// The names of all recordings in their order, for ``recording(named:)``.
    package func names() async -> [String] { (try? await pool.run { [self] in fileNames() }) ?? [] }

    /// The recording with a name, whatever its request is; nil if it cannot be used, which is reported.
    package func recording(named name: String) async -> Recording? {
        (try? await pool.run { [self] in read(name, \.key) }) ?? nil
    }

    /// Writes a recording in place of an earlier one with its key.
    /// - Returns: false if it could not be written, which is reported.
    package func save(_ recording: Recording) async -> Bool {
        (try? await pool.run { [self] in recording.content.withUnsafeBytes { store(recording, $0) } }) ?? false
    }

    /// Writes a recording whose content is in a file; a content that is recorded unchanged is never in memory as a
    /// whole.
    func save(_ draft: RecordingDraft, from file: SpillFile) async {
        let failure = try? await pool.run { [self] () -> (any Error)? in
            do {
                try file.withBytes { bytes in
                    guard !draft.keeps(bytes) else { return _ = store(draft.recording([], tell: tell), bytes) }
                    let recording = draft.recording(Array(bytes), tell: tell)
                    _ = recording?.content.withUnsafeBytes { store(recording, $0) }
                }
                return nil
            } catch {
                return error
            }
        }
        if let failure { tell("the answer to '\(draft.key.request)' is not recorded: \(failure); ask again") }
    }

    /// Makes a recording on an I/O thread, and writes it in place of an earlier one with its key.
    /// - Parameter make: returns nil if there is no recording after all.
    func save(_ make: @escaping @Sendable () -> Recording?) async {
        try? await pool.run { [self] in
            if let recording = make() { _ = recording.content.withUnsafeBytes { store(recording, $0) } }
        }
    }

    /// Runs work on an I/O thread that would hold a loop for too long; nil if the pool has ended.
    func away<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result? {
        try? await pool.run { work() }
    }

    /// Reports why an answer is not recorded.
    func tell(_ reason: String) { onTrouble(reason) }

    // MARK: - On an I/O thread

    private func load(_ key: RecordingKey, _ request: Fields) -> OpenRecording? {
        if let found = load(key.name, of: key, request) { return found }
        // Recordings with other values of the fields in Vary have longer names, and exist only if there is one with the
        // name of the key.
        if access(head(key.name), F_OK) == 0 {
            for name in fileNames() where name.hasPrefix(key.name + ".") {
                if let found = load(name, of: key, request) { return found }
            }
        }
        // Recordings of earlier versions, and those that a person has written, do not tell whether the request had
        // credentials.
        guard let plain = key.withoutCredentials else { return nil }
        return opened(plain.name) { $0.vary == nil && $0.key == plain ? plain : nil }
    }

    private func load(_ name: String, of key: RecordingKey, _ request: Fields) -> OpenRecording? {
        opened(name) { document in
            if document.key == key { return RecordingVary.matches(document.vary, request) ? key : nil }
            onTrouble(
                "the recording \(head(name)) is of another request than '\(key.request)', which its name is of; "
                    + "set 'request', 'match' and 'body' back, or remove it"
            )
            return nil
        }
    }

    /// Reads a recording as `read` does, but leaves a long content in its file.
    private func opened(_ name: String, _ key: (RecordingDocument) -> RecordingKey?) -> OpenRecording? {
        var content = Body.complete([])
        let found = read(
            name,
            content: { file throws(SystemError) in
                let full = "\(path)/\(file)"
                let (descriptor, length) = try WholeFile.openEdited(full)
                if length > Self.shortContent {
                    content = .file(SharedFile(descriptor: descriptor, pool: pool), offset: 0, length: length)
                    return ([], sweep.difference(ofOpen: descriptor, from: file))
                }
                defer { close(descriptor) }
                let bytes = try WholeFile.rest(of: descriptor, full)
                content = .complete(Chunk(bytes))
                return ([], sweep.difference(of: bytes, from: file))
            },
            key
        )
        return found.map { OpenRecording(recording: $0, content: content) }
    }

    /// The name of a recording's files: the name of its key, or a longer one if there is already a recording with other
    /// values of the fields in Vary.
    private func name(_ recording: Recording) -> String {
        let name = recording.key.name
        guard let vary = recording.vary, !vary.isEmpty, let known = document(name)?.vary, !known.isEmpty, known != vary
        else { return name }
        let text = vary.map { $0.joined(separator: ": ") }.joined(separator: "\n")
        return "\(name).\((ContentDigest.sha256.hex(text.utf8) ?? "").prefix(8))"
    }

    private func head(_ name: String) -> String { "\(path)/\(name)\(Self.headSuffix)" }

    private func whole(_ file: String) throws(SystemError) -> (content: [UInt8], difference: String?) {
        let bytes = try WholeFile.readEdited("\(path)/\(file)")
        return (bytes, sweep.difference(of: bytes, from: file))
    }

    private func read(_ name: String, _ key: (RecordingDocument) -> RecordingKey?) -> Recording? {
        read(name, content: whole, key)
    }

    /// Reads a recording; nil if it cannot be used, which is reported.
    /// - Parameters:
    ///   - name: the name without the suffix.
    ///   - content: reads a file of the folder, and returns the beginning of its content's digest if the file's name
    ///     has another one.
    ///   - key: the key of a document; nil if the recording is not wanted.
    private func read(
        _ name: String,
        content read: (_ file: String) throws(SystemError) -> (content: [UInt8], difference: String?),
        _ key: (RecordingDocument) -> RecordingKey?
    ) -> Recording? {
        // A recording may be replaced after its head was read, which removes the previous content: both are read again
        // then.
        for _ in 0..<Self.mostAttempts {
            guard let document = document(name), let key = key(document) else { return nil }
            var (content, difference): ([UInt8], String?) = ([], nil)
            do throws(SystemError) {
                if let file = document.content {
                    guard !file.isEmpty, !file.contains("/") else {
                        throw SystemError("open \(path)/\(file)", code: ENOENT)
                    }
                    (content, difference) = try read(file)
                }
            } catch {
                if self.document(name) != document { continue }
                onTrouble(
                    "the content of the recording \(head(name)) cannot be read at '\(document.content ?? "")' beside it "
                        + "(\(error)); put it there, or remove the recording"
                )
                return nil
            }
            if let file = document.content, let difference {
                onTrouble(
                    "the content of the recording \(head(name)) at '\(file)' beside it is not what was recorded: its "
                        + "digest begins with \(difference); it answers as it is; if nobody has changed it on purpose, "
                        + "record it again, else give it another name, in 'content', too"
                )
            }
            if let recording = document.recording(key, content: content) { return recording }
            onTrouble(
                "the recording \(head(name)) has a status, a field or a time that cannot be sent; "
                    + "correct it, or remove it"
            )
            return nil
        }
        return nil
    }

    private static let mostAttempts = 100

    /// Reads the document of a recording; nil if it cannot be used, which is reported.
    /// - Parameter name: the name without the suffix.
    private func document(_ name: String) -> RecordingDocument? {
        do throws(SystemError) {
            let bytes = try WholeFile.readEdited(head(name))
            do throws(RecordingDocument.Malformed) {
                return try RecordingDocument.decode(bytes)
            } catch {
                onTrouble("the recording \(head(name)) cannot be read: \(error.reason); correct it, or remove it")
            }
        } catch {
            if error.code != ENOENT {
                onTrouble("the recording \(head(name)) cannot be read: \(error); correct it, or remove it")
            }
        }
        return nil
    }

    func makeFolder() throws(SystemError) {
        guard access(path, F_OK) != 0 else { return }
        prepare()
        try Folders.make(path, mode: 0o700)
    }

    /// Writes the two files of a recording.
    /// - Parameters:
    ///   - recording: nil if there is none, which has been reported.
    ///   - content: the content, in place of the recording's own.
    private func store(_ recording: Recording?, _ content: UnsafeRawBufferPointer) -> Bool {
        guard let recording else { return false }
        do throws(SystemError) {
            try makeFolder()
            let name = name(recording)
            // Each content has a name of its own, so that no head ever stands beside the content of another answer, at
            // whatever moment the files are read or the daemon is killed.
            let digest = RecordingSweep.digest(of: content)
            let file = content.isEmpty ? nil : "\(name).\(digest)\(Self.suffix(recording.fields))"
            let document = RecordingDocument(recording, content: file)
            guard let head = try? document.encode() else { return false }
            try writing.withLock { _ throws(SystemError) in
                let lock = sweep.lock()
                defer { sweep.unlock(lock) }
                if lock != nil { sweep.removeOrphans() }
                let before = (try? WholeFile.readEdited(self.head(name))).flatMap { try? RecordingDocument.decode($0) }
                // The content is written first, so that a document never names a missing file.
                if let file { try WholeFile.replace("\(path)/\(file)", with: content) }
                try WholeFile.replace(self.head(name), with: head)
                // A content with another name was put there by a person, and is not removed.
                if let old = before?.content, old != file, old.hasPrefix(name + "."), !old.contains("/") {
                    unlink("\(path)/\(old)")
                }
            }
            return true
        } catch {
            onTrouble("an answer was not recorded: \(error); make room, or the folder writable, and ask again")
            return false
        }
    }

    private func fileNames() -> [String] {
        FolderNames.of(path).filter { $0.hasSuffix(Self.headSuffix) }
            .map { String($0.dropLast(Self.headSuffix.count)) }.sorted()
    }

    /// The suffix of a content's file, by its media type.
    private static func suffix(_ fields: Fields) -> String {
        let type = (fields.first(.contentType) ?? "").prefix { $0 != ";" }.lowercased().filter { $0 != " " }
        guard fields.first(.contentEncoding) == nil else { return ".bin" }
        switch type {
        case "application/json": return ".json"
        case "text/html": return ".html"
        case "text/plain": return ".txt"
        case "text/css": return ".css"
        case "text/javascript", "application/javascript": return ".js"
        case "application/xml", "text/xml": return ".xml"
        case "image/png": return ".png"
        case "image/jpeg": return ".jpg"
        case "image/svg+xml": return ".svg"
        default: return type.hasSuffix("+json") ? ".json" : type.hasSuffix("+xml") ? ".xml" : ".bin"
        }
    }
}

/// The plan of a route for the recordings of its service. With the source `live`, nothing is recorded or replayed by
/// itself.
package struct RecordingPlan: Sendable, Equatable {
    package let source: AnswerSource
    package let rules: RecordingRules
    package let folder: RecordingFolder
    /// The query items that the service adds, which are left out of recordings.
    package let secrets: SecretQuery

    package init(
        source: AnswerSource,
        rules: RecordingRules,
        folder: RecordingFolder,
        secrets: SecretQuery
    ) {
        self.source = source
        self.secrets = secrets
        self.rules = rules
        self.folder = folder
    }

    package static func == (left: RecordingPlan, right: RecordingPlan) -> Bool {
        left.source == right.source && left.rules == right.rules && left.folder.path == right.folder.path
            && left.secrets == right.secrets
    }
}
