// Why the last response of a key was not stored, for `drydock explain`.

import CacheStore
import HTTPCaching
import Synchronization

/// Why an answer was not stored.
package struct UnstoredAnswer: Sendable, Equatable {
    /// As Cache-Status has it, where it says so.
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
