// A content that a program makes while it is sent.

import FoundationEssentials
import Synchronization

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
