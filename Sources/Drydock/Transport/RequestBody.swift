// The content of a request, and where its bytes come from: memory, a file, or a program that makes them while they are
// sent.

import EventLoop
public import FoundationEssentials
import Glibc
import Synchronization

/// The content of a request: bytes in memory, a file, a stream, or a form of several parts.
///
/// What is not in memory is read while it is sent, and no faster than the origin takes it: a file of 2 GiB costs no more
/// memory than a piece of it.
public struct RequestBody: Sendable {
    /// Where the bytes come from.
    enum Source: Sendable {
        case data(Data)
        case file(URL)
        case stream(StreamedContent)
        case multipart(MultipartContent)
    }

    let source: Source
    /// The media type; nil sets no Content-Type. A Content-Type that the request has itself stays.
    public var contentType: String?

    /// Bytes that are in memory.
    public static func data(_ data: Data, contentType: String? = nil) -> Self {
        Self(source: .data(data), contentType: contentType)
    }

    /// The bytes of a file, which is opened when the request is sent, and anew for each attempt. It is sent as a whole:
    /// a request whose file cannot be read, or is no longer as long as it was, fails with
    /// ``DownloadError/requestBody(_:)``.
    /// - Parameters:
    ///   - file: a file URL of a regular file.
    ///   - contentType: the media type; nil, the default, sets no Content-Type.
    public static func file(_ file: URL, contentType: String? = nil) -> Self {
        Self(source: .file(file), contentType: contentType)
    }

    /// Pieces that a program makes while they are sent, as often as the request is sent.
    /// - Parameters:
    ///   - length: bytes of the whole, which must be exactly as many; nil, the default, sends it in chunks.
    ///   - contentType: the media type; nil, the default, sets no Content-Type.
    ///   - make: makes the pieces from their beginning; called anew when a request is repeated or redirected. What it,
    ///     or the sequence, throws ends the request with ``DownloadError/requestBody(_:)``.
    public static func stream<Pieces: AsyncSequence & SendableMetatype>(
        length: Int64? = nil,
        contentType: String? = nil,
        _ make: @escaping @Sendable () async throws -> Pieces
    ) -> Self where Pieces.Element: Sequence<UInt8> {
        let content = StreamedContent(length: length, isRepeatable: true) { sink in
            try await StreamedContent.write(try await make(), to: sink)
        }
        return Self(source: .stream(content), contentType: contentType)
    }

    /// Pieces that can be had once. A request that has sent some of them is not repeated, and a redirect that wants them
    /// again ends it with ``DownloadError/requestBody(_:)``.
    /// - Parameters:
    ///   - pieces: such as a ``ResponseBody``; a second request with this body fails.
    ///   - length: bytes of the whole, which must be exactly as many; nil, the default, sends it in chunks.
    ///   - contentType: the media type; nil, the default, sets no Content-Type.
    public static func once<Pieces: AsyncSequence & Sendable>(
        _ pieces: Pieces,
        length: Int64? = nil,
        contentType: String? = nil
    ) -> Self where Pieces.Element: Sequence<UInt8> {
        let use = SingleUse()
        let content = StreamedContent(length: length, isRepeatable: false) { sink in
            try use.begin()
            try await StreamedContent.write(pieces, to: sink)
        }
        return Self(source: .stream(content), contentType: contentType)
    }

    /// A form of several parts, as `multipart/form-data` (RFC 7578). The boundary is random.
    public static func multipart(_ form: MultipartForm) -> Self {
        let content = MultipartContent(form)
        return Self(source: .multipart(content), contentType: content.type)
    }

    /// Bytes of the whole; nil where nobody knows. That of a file is looked up now, and blocks as that does.
    public var length: Int64? {
        switch source {
        case .data(let data): Int64(data.count)
        case .file(let file): try? FileContent.length(of: file)
        case .stream(let content): content.length
        case .multipart(let content): content.length
        }
    }

    /// All its bytes, read to their end.
    /// - Parameter limit: bytes that there may be at most.
    /// - Throws: `DownloadError.tooLarge` beyond the limit, and `DownloadError.requestBody` where they cannot be had.
    public func collect(upTo limit: Int) async throws(DownloadError) -> Data {
        if case .data(let data) = source {
            guard data.count <= limit else { throw .tooLarge(limit: limit) }
            return data
        }
        let collected = CollectedContent(limit: limit)
        do {
            try await write(to: collected, files: BlockingWork(pool: nil))
        } catch let error as DownloadError {
            throw error
        } catch {
            throw .requestBody("the content of a request could not be read: \(error)")
        }
        return collected.data
    }
}

extension RequestBody {
    /// The content is in memory, as a whole.
    package var data: Data? { if case .data(let data) = source { data } else { nil } }

    /// Whether it can be had again once some of it was read.
    package var isRepeatable: Bool {
        switch source {
        case .data, .file: true
        case .stream(let content): content.isRepeatable
        case .multipart(let content): content.isRepeatable
        }
    }

    /// Writes all of it, piece by piece.
    /// - Parameter files: reads files.
    /// - Throws: why that cannot be done, and what the sink throws.
    func write(to sink: any ContentSink, files: BlockingWork) async throws {
        switch source {
        case .data(let data): try await sink.put(data)
        case .file(let file): try await FileContent.write(file, to: sink, files)
        case .stream(let content): try await content.write(to: sink)
        case .multipart(let content): try await content.write(to: sink, files)
        }
    }
}

// MARK: - Files

enum FileContent {
    /// Bytes that are read at a time.
    private static let portion = 256 << 10

    /// Bytes of a file. It blocks.
    /// - Throws: `DownloadError.requestBody` where it is no regular file that can be looked at.
    static func length(of file: URL) throws(DownloadError) -> Int64 {
        guard file.isFileURL else { throw refuse(file, "is no file: name one by a file URL") }
        var status = stat()
        guard stat(file.path(percentEncoded: false), &status) == 0 else {
            throw refuse(file, "cannot be looked at: \(SystemError("stat"))")
        }
        return try length(of: file, status)
    }

    /// Writes a file, of the length that it has when it is opened.
    /// - Throws: `DownloadError.requestBody`, and what the sink throws.
    static func write(_ file: URL, to sink: any ContentSink, _ files: BlockingWork) async throws {
        let reader = try await files.run { try Reader(file) }
        var offset: Int64 = 0
        while offset < reader.length {
            let position = offset
            let piece = try await files.run { try reader.read(at: position, atMost: portion) }
            try await sink.put(piece)
            offset += Int64(piece.count)
        }
    }

    private static func length(of file: URL, _ status: stat) throws(DownloadError) -> Int64 {
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw refuse(file, "is no regular file: send what it gives as a stream")
        }
        return Int64(status.st_size)
    }

    fileprivate static func refuse(_ file: URL, _ why: String) -> DownloadError {
        .requestBody("'\(file.isFileURL ? file.path(percentEncoded: false) : file.absoluteString)' \(why)")
    }

    /// An open file.
    ///
    /// Sendable: nothing in it changes, and a read names its position.
    private final class Reader: Sendable {
        private let file: URL
        private let descriptor: Int32
        let length: Int64

        /// - Throws: `DownloadError.requestBody`.
        init(_ file: URL) throws(DownloadError) {
            guard file.isFileURL else { throw refuse(file, "is no file: name one by a file URL") }
            // Non-blocking, so that a pipe without a writer is refused, and not waited for.
            let descriptor = open(file.path(percentEncoded: false), O_RDONLY | O_CLOEXEC | O_NONBLOCK)
            guard descriptor >= 0 else { throw refuse(file, "cannot be opened: \(SystemError("open"))") }
            var status = stat()
            do throws(DownloadError) {
                guard fstat(descriptor, &status) == 0 else {
                    throw refuse(file, "cannot be read: \(SystemError("fstat"))")
                }
                length = try FileContent.length(of: file, status)
            } catch {
                close(descriptor)
                throw error
            }
            (self.file, self.descriptor) = (file, descriptor)
        }

        deinit { close(descriptor) }

        /// - Throws: `DownloadError.requestBody`.
        func read(at offset: Int64, atMost count: Int) throws(DownloadError) -> Data {
            var data = Data(count: Int(min(Int64(count), length - offset)))
            let result = data.withUnsafeMutableBytes { room in
                while true {
                    let read = pread(descriptor, room.baseAddress, room.count, off_t(offset))
                    if read >= 0 || errno != EINTR { return read }
                }
            }
            guard result >= 0 else { throw refuse(file, "cannot be read: \(SystemError("pread"))") }
            guard result > 0 else {
                throw refuse(file, "has become shorter than its \(length) bytes while it was sent: send it again")
            }
            if result < data.count { data.removeLast(data.count - result) }
            return data
        }
    }
}

// MARK: - Contents made while they are sent

/// Sendable: nothing in it changes.
struct StreamedContent: Sendable {
    /// Bytes; nil where nobody knows.
    let length: Int64?
    /// The pieces can be made more than once.
    let isRepeatable: Bool
    private let make: @Sendable (any ContentSink) async throws -> Void

    /// - Parameter make: puts all pieces into a sink.
    init(length: Int64?, isRepeatable: Bool, _ make: @escaping @Sendable (any ContentSink) async throws -> Void) {
        self.length = length.map { max(0, $0) }
        self.isRepeatable = isRepeatable
        self.make = make
    }

    /// - Throws: what the program throws, or that the length is another one.
    func write(to sink: any ContentSink) async throws {
        guard let length else { return try await make(sink) }
        let measured = MeasuredContent(sink, length: length, name: "the stream that is a request's content")
        try await make(measured)
        try await measured.finish()
    }

    static func write<Pieces: AsyncSequence>(
        _ pieces: Pieces,
        to sink: any ContentSink
    ) async throws where Pieces.Element: Sequence<UInt8> {
        for try await piece in pieces { try await sink.put(piece as? Data ?? Data(piece)) }
    }
}

/// Lets something begin once.
final class SingleUse: Sendable {
    private let isUsed = Atomic<Bool>(false)

    /// - Throws: `DownloadError.requestBody` from the second time on.
    func begin() throws(DownloadError) {
        guard isUsed.exchange(true, ordering: .relaxed) else { return }
        throw .requestBody("the stream that is a request's content was sent already: make it anew for each request")
    }
}

// MARK: - Pieces on their way

/// Sendable: its state is under its own mutex; whoever waits is resumed outside it.
final class PieceQueue: ContentSink {
    enum Next {
        case piece(Data)
        /// ``onChange`` is called when there is more.
        case nothingYet
        case end
        case failed(any Error)
    }

    private struct State {
        var pieces: [Data] = []
        var count = 0
        var end: Result<Void, any Error>?
        var isClosed = false
        /// The maker, which waits for room.
        var maker: UnsafeContinuation<Void, any Error>?
        /// The reader has found nothing.
        var isAwaited = false
    }

    /// Bytes that wait here, but for one piece.
    private static let room = 256 << 10

    private let state = Mutex(State())
    private let onChange: @Sendable () -> Void

    /// - Parameter onChange: called on any thread when there is something for a reader that found nothing.
    init(onChange: @escaping @Sendable () -> Void) { self.onChange = onChange }

    deinit { close() }

    // MARK: - The maker

    /// - Throws: `CancellationError`: nobody wants any more.
    func put(_ piece: Data) async throws {
        if piece.isEmpty { return }
        try await withUnsafeThrowingContinuation { (maker: UnsafeContinuation<Void, any Error>) in
            let (isRoom, isClosed, isAwaited) = state.withLock { state in
                if state.isClosed { return (false, true, false) }
                state.pieces.append(piece)
                state.count += piece.count
                let isRoom = state.count <= Self.room
                if !isRoom { state.maker = maker }
                defer { state.isAwaited = false }
                return (isRoom, false, state.isAwaited)
            }
            if isAwaited { onChange() }
            if isClosed { maker.resume(throwing: CancellationError()) } else if isRoom { maker.resume() }
        }
    }

    /// Nothing follows.
    func finish(_ end: Result<Void, any Error>) {
        let isAwaited = state.withLock { state in
            state.end = end
            defer { state.isAwaited = false }
            return state.isAwaited
        }
        if isAwaited { onChange() }
    }

    // MARK: - The reader

    func next() -> Next {
        let (next, maker) = state.withLock { state -> (Next, UnsafeContinuation<Void, any Error>?) in
            if !state.pieces.isEmpty {
                let piece = state.pieces.removeFirst()
                state.count -= piece.count
                guard state.count <= Self.room else { return (.piece(piece), nil) }
                defer { state.maker = nil }
                return (.piece(piece), state.maker)
            }
            switch state.end {
            case .success: return (.end, nil)
            case .failure(let error): return (.failed(error), nil)
            case nil:
                state.isAwaited = true
                return (.nothingYet, nil)
            }
        }
        maker?.resume()
        return next
    }

    /// Nobody reads any more.
    func close() {
        let maker = state.withLock { state in
            state.isClosed = true
            state.pieces = []
            defer { state.maker = nil }
            return state.maker
        }
        maker?.resume(throwing: CancellationError())
    }
}

// MARK: - Where the pieces go

/// Takes the pieces of a content, in their order.
protocol ContentSink: Sendable {
    /// Returns when there is room for more.
    /// - Throws: nothing more is wanted, and why.
    func put(_ piece: Data) async throws
}

/// Runs what blocks: on a pool where there is one, else on threads of its own.
struct BlockingWork: Sendable {
    let pool: IOPool?

    /// - Throws: what `work` throws.
    func run<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
        if let pool { return try await pool.run(work) }
        return try await DetachedThread.result(of: work)
    }
}

/// All pieces in one.
///
/// Sendable: under a mutex.
final class CollectedContent: ContentSink {
    private let bytes = Mutex(Data())
    private let limit: Int

    init(limit: Int) { self.limit = limit }

    var data: Data { bytes.withLock { $0 } }

    func put(_ piece: Data) async throws {
        let fits = bytes.withLock { bytes in
            guard piece.count <= limit - bytes.count else { return false }
            bytes.append(piece)
            return true
        }
        guard fits else { throw DownloadError.tooLarge(limit: limit) }
    }
}

/// Sees to it that a content is as long as it was said to be, before its last bytes are out: what an origin gets is the
/// whole, or no whole request.
///
/// Sendable: under a mutex.
final class MeasuredContent: ContentSink {
    private struct State {
        var count: Int64 = 0
        /// The piece that makes it whole, held back until nothing follows.
        var last: Data?
    }

    private let sink: any ContentSink
    private let length: Int64
    private let name: String
    private let state = Mutex(State())

    /// - Parameter name: as errors call it.
    init(_ sink: any ContentSink, length: Int64, name: String) {
        self.sink = sink
        self.length = length
        self.name = name
    }

    func put(_ piece: Data) async throws {
        if piece.isEmpty { return }
        let isLast = state.withLock { state -> Bool? in
            state.count += Int64(piece.count)
            guard state.count <= length else { return nil }
            if state.count == length { state.last = piece }
            return state.count == length
        }
        guard let isLast else {
            throw DownloadError.requestBody(
                "\(name) has more than the \(length) bytes that were announced: correct that"
            )
        }
        if !isLast { try await sink.put(piece) }
    }

    /// Nothing follows.
    /// - Throws: `DownloadError.requestBody` where it was too short.
    func finish() async throws {
        let (count, last) = state.withLock { ($0.count, $0.last) }
        guard count == length else {
            throw DownloadError.requestBody("\(name) ended after \(count) of the \(length) bytes that were announced")
        }
        if let last { try await sink.put(last) }
    }
}
