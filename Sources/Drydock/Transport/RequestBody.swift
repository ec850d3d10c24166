// The content of a request: where its bytes come from.

public import FoundationEssentials

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
    var data: Data? { if case .data(let data) = source { data } else { nil } }

    /// Whether it can be had again once some of it was read.
    var isRepeatable: Bool {
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
