// The content of a request: where its bytes come from.

public import FoundationEssentials

/// The content of a request.
public struct RequestBody: Sendable {
    /// Where the bytes come from.
    enum Source: Sendable {
        case data(Data)
    }

    let source: Source
    /// The media type; nil sets no Content-Type. A Content-Type that the request has itself stays.
    public var contentType: String?

    /// Bytes that are in memory.
    public static func data(_ data: Data, contentType: String? = nil) -> Self {
        Self(source: .data(data), contentType: contentType)
    }

    /// Bytes of the whole; nil where nobody knows.
    public var length: Int64? {
        switch source {
        case .data(let data): Int64(data.count)
        }
    }

    /// All its bytes.
    /// - Parameter limit: bytes that there may be at most.
    /// - Throws: `DownloadError.tooLarge` beyond the limit.
    public func collect(upTo limit: Int) async throws(DownloadError) -> Data {
        switch source {
        case .data(let data):
            guard data.count <= limit else { throw .tooLarge(limit: limit) }
            return data
        }
    }
}
