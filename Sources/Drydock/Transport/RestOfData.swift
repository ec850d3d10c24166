// Bytes that are handed over once.

import FoundationEssentials
import Synchronization

/// Sendable: the bytes are under a mutex.
final class RestOfData: Sendable {
    private let rest: Mutex<Data?>

    init(_ data: Data) { rest = Mutex(data.isEmpty ? nil : data) }

    /// All bytes at the first call, nil afterwards.
    func take() -> Data? { rest.withLock { $0.take() } }
}
