// Encrypted bytes that wait for their way to the peer.

import Glibc

/// A growing buffer of bytes that a session has encrypted. Sessions of one loop may share one as long as it is emptied
/// between them; loop-bound.
package final class TLSOutput {
    /// Owned; `capacity` bytes of which those from `start` to `end` wait.
    private var base: UnsafeMutableRawPointer?
    private var capacity = 0
    private var start = 0
    private var end = 0

    package init() {}

    deinit { free(base) }

    package var count: Int { end - start }
    package var isEmpty: Bool { start == end }

    /// What waits; valid until the next call of a session that writes here, or of a method of this buffer.
    package var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base.map { $0 + start }, count: count) }

    /// Takes the first bytes away, which were sent.
    package func consume(_ sent: Int) {
        start += min(sent, count)
        if start == end { (start, end) = (0, 0) }
    }

    /// Takes all bytes away, as an array.
    package func takeAll() -> [UInt8] {
        defer { (start, end) = (0, 0) }
        return Array(bytes)
    }

    /// Gives the memory back if nothing waits.
    package func trim() {
        guard isEmpty else { return }
        free(base)
        (base, capacity) = (nil, 0)
    }

    /// - Returns: whether there was memory for it.
    func append(_ added: UnsafeRawBufferPointer) -> Bool {
        guard let source = added.baseAddress, !added.isEmpty else { return true }
        if end + added.count > capacity {
            if start > 0, let base {
                memmove(base, base + start, count)
                (start, end) = (0, count)
            }
            if end + added.count > capacity {
                let wanted = max(4_096, capacity * 2, end + added.count)
                guard let grown = realloc(base, wanted) else { return false }
                (base, capacity) = (grown, wanted)
            }
        }
        guard let base else { return false }
        memcpy(base + end, source, added.count)
        end += added.count
        return true
    }
}

@available(*, unavailable) extension TLSOutput: Sendable {}
