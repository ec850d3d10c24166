// The reasons why a response that may be stored is not, known before its body arrives or only afterwards; the last
// reason of each key is kept for `drydock explain`.

import CacheStore
import EventLoop
import Glibc
import HTTPCaching
import Synchronization

/// The reason why no tier has a response that its policy allows to be stored.
///
/// If it is known when the head arrives, `Cache-Status` prints the raw value as `detail`. If it shows later, after
/// `stored` was sent, the log has the raw value. `explain` prints both.
package enum UnstoredReason: String, Sendable, CaseIterable {
    /// The policy allows no copy in memory, and none on the disk or there is no disk tier.
    case tiersOff = "tiers-off"
    /// The origin has not sent all of it.
    case cut
    /// The disk has just failed to write or to move a file, and memory does not take the response.
    case diskFails = "disk-fails"
    /// The body had to be held in memory, for the memory tier or on its way to the disk, and other bodies used all of
    /// the budget.
    case noMemory = "no-memory"
    /// The disk had no space or inode for the response, eviction could not free any, and the memory tier does not take
    /// it.
    case noRoom = "no-room"
    /// The response is longer than the limit of every tier.
    case tooLarge = "too-large"
    /// The response, whose length was not known before, is shorter than the policy stores.
    case tooShort = "too-short"
    /// The content is not what the route expects.
    case unexpectedContent = "unexpected-content"
    /// The body ended with its TLS connection, which may have been cut; or it is to end so, and that of the key's last
    /// response did.
    case unprovenEnd = "unproven-end"
    /// The response was invalidated, or a newer one was stored, while it arrived.
    case overtaken

    /// The meaning of the reason, or advice.
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

    /// The reason for a tier's refusal.
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

/// The reason why an answer was not stored, with its time.
package struct UnstoredAnswer: Sendable, Equatable {
    /// The reason in the words of Cache-Status, if it has one.
    package var reason: String
    /// The rule behind the reason, such as `RFC 9111 section 5.2.2.5`.
    package var section: String
    /// The time of the answer, Unix seconds.
    package var time: Int64

    package init(reason: String, section: String, time: Int64) {
        (self.reason, self.section, self.time) = (reason, section, time)
    }
}

/// The last reason for each key. They are forgotten at a restart, and limited. Sendable: the state is under its own
/// mutex.
final class LastRefusals: Sendable {
    private static let limit = 10_000

    private let answers = Mutex<[UInt64: UnstoredAnswer]>([:])
    /// The number of entries; while it is zero, a lookup takes no mutex.
    private let count = Atomic<Int>(0)

    /// Remembers the reason for a key by the key's hash: a collision costs a wrong line of an explanation.
    /// - Parameter now: Unix seconds.
    func note(_ key: CacheKey, _ reason: String, _ section: String, now: Int64) {
        answers.withLock { answers in
            if answers.count >= Self.limit, answers[key.hash] == nil {
                // The older half of the entries is removed.
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

    /// Forgets the reason for a key, because its response is being stored.
    func forget(_ key: CacheKey) {
        guard count.load(ordering: .relaxed) > 0 else { return }
        answers.withLock { answers in
            _ = answers.removeValue(forKey: key.hash)
            count.store(answers.count, ordering: .relaxed)
        }
    }

    func last(_ key: CacheKey) -> UnstoredAnswer? { answers.withLock { $0[key.hash] } }
}
