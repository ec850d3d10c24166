// The content of a POST whose answer is stored, and how it goes to the origin.

import HTTPWire
package import Upstream

/// The whole content of a request; it is part of the key, so that the same content gets the same answer.
package struct RequestContent: Sendable {
    package let bytes: [UInt8]

    package init(_ bytes: [UInt8]) { self.bytes = bytes }
}

/// Gives bytes that are in memory, and then those of another source. Loop-bound.
package final class ContentSource: RequestBodySource {
    private let whole: [UInt8]
    private var bytes: ArraySlice<UInt8>
    private let rest: (any RequestBodySource)?

    /// - Parameter rest: what follows the bytes; nil for nothing.
    package init(_ bytes: [UInt8], then rest: (any RequestBodySource)? = nil) {
        whole = bytes
        self.bytes = bytes[...]
        self.rest = rest
    }

    /// The same from its start; nil where something follows that cannot be read twice.
    package var again: (any RequestBodySource)? { rest == nil ? ContentSource(whole) : nil }

    /// Its bytes in all; nil where something follows that is not in memory.
    package var length: Int? { rest == nil ? whole.count : nil }

    package func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        guard !bytes.isEmpty else { return rest?.read(into: buffer) ?? .end }
        let count = min(bytes.count, buffer.count)
        bytes.prefix(count).withUnsafeBytes { buffer.copyMemory(from: $0) }
        bytes = bytes.dropFirst(count)
        return .bytes(count)
    }
}

@available(*, unavailable) extension ContentSource: Sendable {}
