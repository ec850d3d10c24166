// Origins that do not answer HEAD: they are asked by a conditional GET from then on.

internal import CacheStore
import Synchronization

/// Sendable: its state is under its own mutex. Forgotten at a restart; bounded.
final class HeadRefusers: Sendable {
    private static let limit = 4096
    private let origins = Mutex<Set<[UInt8]>>([])

    /// Notes the origin of a key that answered HEAD with 403, 405 or 501.
    func insert(_ key: CacheKey) {
        origins.withLock { origins in
            if origins.count >= Self.limit { origins.removeAll(keepingCapacity: true) }
            origins.insert(Self.origin(of: key))
        }
    }

    func contains(_ key: CacheKey) -> Bool { origins.withLock { $0.contains(Self.origin(of: key)) } }

    /// Service, scheme and authority: the key up to the third slash.
    private static func origin(of key: CacheKey) -> [UInt8] {
        var slashes = 0
        return Array(
            key.bytes.prefix { byte in
                if byte == UInt8(ascii: "/") { slashes += 1 }
                return slashes < 3
            }
        )
    }
}
