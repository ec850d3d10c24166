// Why a response that may be stored is not, known before its body comes or found out when it has come; the last reason
// of each key is kept for `drydock explain`.

import CacheStore
import EventLoop
import Glibc
import HTTPCaching
import Synchronization

/// Why no tier has a response that its policy allows to be stored.
///
/// Where that is known when the head arrives, `Cache-Status` prints the raw value as `detail`. If it shows later, after
/// `stored` was sent, the log has the raw value. `explain` prints both.
package enum UnstoredReason: String, Sendable, CaseIterable {
    /// The policy keeps nothing in memory, and nothing on the disk or there is no disk tier.
    case tiersOff = "tiers-off"
    /// The origin has not sent all of it.
    case cut
    /// The disk has just failed to write a file, or to give it its place, and memory does not take it.
    case diskFails = "disk-fails"
    /// The body had to be held in memory, for the memory tier or on its way to the disk, and other
    /// bodies took all of that memory.
    case noMemory = "no-memory"
    /// The disk had no space or inode for it, eviction could not free any, and the memory tier does not take it.
    case noRoom = "no-room"
    /// Longer than what every tier takes.
    case tooLarge = "too-large"
    /// Its length was not known before, and is less than the policy stores.
    case tooShort = "too-short"
    /// Not what the route expects.
    case unexpectedContent = "unexpected-content"
    /// It ended with its TLS connection, which may have been cut; or it is to end so, and the one before did.
    case unprovenEnd = "unproven-end"
    /// It was invalidated, or a newer one was stored, while it arrived.
    case overtaken

    /// What it means, or what to do.
    var text: String {
        switch self {
        case .tiersOff: "no tier stores anything of its route"
        case .cut: "the origin has not sent all of it"
        case .diskFails: "the disk has failed"
        case .noMemory: "too much was arriving, or still being sent, for it to be kept in memory"
        case .noRoom: "make room on the file system, or inodes; or let the store have more"
        case .tooLarge: "it is longer than what any tier takes"
        case .tooShort: "it is shorter than what is worth storing"
        case .unexpectedContent: "it is not what its route expects"
        case .unprovenEnd: "its TLS connection ended without close_notify"
        case .overtaken: "it was invalidated, or a newer one stored, meanwhile"
        }
    }

    /// The rule behind the reason, such as `RFC 9111 section 3.3`.
    package var section: String {
        switch self {
        case .tiersOff: "configuration, cache.memory and cache.disk"
        case .cut: "RFC 9111 section 3.3"
        case .diskFails: "configuration, cache.disk.path"
        case .noMemory: "configuration, cache.memory.size"
        case .noRoom: "configuration, cache.disk.size and cache.disk.min_free"
        case .tooLarge: "configuration, cache.memory.max_object and cache.disk.max_object"
        case .tooShort: StoreRefusal.tooShort.section
        case .unexpectedContent: "configuration, response.expect"
        case .unprovenEnd: "RFC 9112 section 9.8"
        case .overtaken: "RFC 9111 section 4.4"
        }
    }

    /// Why no tier behind memory has taken it.
    init(_ error: TierError) {
        switch error {
        case .invalidated, .outdated: self = .overtaken
        case .refused(.source): self = .tooLarge
        case .refused(.file(let error)) where [ENOSPC, EDQUOT].contains(error.code): self = .noRoom
        default: self = .diskFails
        }
    }
}

// MARK: - The last refusals

/// Why an answer was not stored.
package struct UnstoredAnswer: Sendable, Equatable {
    /// The reason as Cache-Status words it, if it says one.
    package var reason: String
    /// The rule behind the reason, such as `RFC 9111 section 5.2.2.5`.
    package var section: String
    /// When it came, Unix seconds.
    package var time: Int64

    package init(reason: String, section: String, time: Int64) {
        (self.reason, self.section, self.time) = (reason, section, time)
    }
}

/// Sendable: its state is under its own mutex. Forgotten at a restart; bounded.
final class LastRefusals: Sendable {
    private static let limit = 10_000

    private let answers = Mutex<[UInt64: UnstoredAnswer]>([:])
    /// The number of entries; while it is zero, a lookup takes no mutex.
    private let count = Atomic<Int>(0)

    /// Remembers a key by its hash: a collision costs a wrong line of an explanation.
    /// - Parameter now: Unix seconds.
    func note(_ key: CacheKey, _ reason: String, _ section: String, now: Int64) {
        answers.withLock { answers in
            if answers.count >= Self.limit, answers[key.hash] == nil {
                // The older half goes.
                let middle = answers.values.map(\.time).sorted()[answers.count / 2]
                answers = answers.filter { $0.value.time > middle }
            }
            answers[key.hash] = UnstoredAnswer(reason: reason, section: section, time: now)
            count.store(answers.count, ordering: .relaxed)
        }
    }

    func note(_ key: CacheKey, _ reason: UnstoredReason, now: Int64) {
        note(key, reason.rawValue, reason.section, now: now)
    }

    /// The response of a key is being stored: forgets the reason.
    func forget(_ key: CacheKey) {
        guard count.load(ordering: .relaxed) > 0 else { return }
        answers.withLock { answers in
            _ = answers.removeValue(forKey: key.hash)
            count.store(answers.count, ordering: .relaxed)
        }
    }

    func last(_ key: CacheKey) -> UnstoredAnswer? { answers.withLock { $0[key.hash] } }
}
