// What a collector says of a batch of spans that it has taken.

import FoundationEssentials

/// The content of a collector's answer, an ExportTraceServiceResponse of OTLP in JSON, as far as it is read.
struct CollectorAnswer {
    /// The spans of a batch that the collector has not taken, and why, in its words.
    struct Rejection: Equatable {
        let spans: Int
        let reason: String
    }

    /// The most bytes that are kept; an answer that is longer says nothing.
    static let longest = 4096
    /// The most characters of a reason.
    private static let longestReason = 200

    private var bytes: [UInt8] = []
    private var isWhole = true

    /// Adds what has arrived.
    mutating func append(_ piece: UnsafeRawBufferPointer) {
        isWhole = isWhole && bytes.count + piece.count <= Self.longest
        if isWhole { bytes.append(contentsOf: piece) }
    }

    private struct Document: Decodable {
        struct PartialSuccess: Decodable {
            let rejectedSpans: Count?
            let errorMessage: String?
        }

        let partialSuccess: PartialSuccess?
    }

    /// A number of 64 bits, which is a text in the JSON of OTLP; some collectors write a number.
    private struct Count: Decodable {
        let value: Int

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            value = try (try? container.decode(Int.self)) ?? Int(container.decode(String.self)) ?? 0
        }
    }

    /// What the collector has not taken of a batch of `count` spans; nil if it has taken all, or does not say.
    func rejection(of count: Int) -> Rejection? {
        guard isWhole, let document = try? JSONDecoder().decode(Document.self, from: Data(bytes)),
            let partial = document.partialSuccess, let rejected = partial.rejectedSpans?.value, rejected > 0
        else { return nil }
        let reason = partial.errorMessage ?? ""
        return Rejection(spans: min(rejected, count), reason: String(reason.prefix(Self.longestReason)))
    }
}
