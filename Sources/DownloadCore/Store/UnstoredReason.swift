// What was to be stored, as its head said, and was not: it is counted, told, and remembered for whoever asks why.

import CacheStore
internal import EventLoop
internal import Glibc
internal import HTTPCaching
import Synchronization

/// Why a response whose head said `stored` has not been; the raw value stands in the log and in `explain`.
package enum UnstoredReason: String, Sendable, CaseIterable {
    /// The origin has not sent all of it.
    case cut
    /// A file could not be written, or not be given its place.
    case diskFails = "disk-fails"
    /// It was to be kept in memory, for that tier or on its way to the disk, and too much was arriving or still being sent.
    case noMemory = "no-memory"
    /// There was no room for it, or no inode, and none could be made.
    case noRoom = "no-room"
    /// Its length was not known before, and is more than every tier takes.
    case tooLarge = "too-large"
    /// Its length was not known before, and is less than `min_length`.
    case tooShort = "too-short"
    /// The body is not what the route expects.
    case unexpectedContent = "unexpected-content"
    /// It ended with its TLS connection, which may have been cut.
    case unprovenEnd = "unproven-end"
    /// It was invalidated, or a newer one was stored, while it arrived.
    case overtaken

    /// What it means, or what to do.
    var text: String {
        switch self {
        case .cut: "the origin has not sent all of it"
        case .diskFails: "the disk has failed"
        case .noMemory: "too much was arriving, or still being sent, for it to be kept in memory"
        case .noRoom: "make room on the file system, or inodes; or raise cache.disk.size"
        case .tooLarge: "it is longer than max_object"
        case .tooShort: "it is shorter than min_length"
        case .unexpectedContent: "it is not what its route expects"
        case .unprovenEnd: "its TLS connection ended without close_notify"
        case .overtaken: "it was invalidated, or a newer one stored, meanwhile"
        }
    }

    init(_ error: any Error) {
        switch error as? DiskTierError {
        case .invalidated, .outdated: self = .overtaken
        case .refused(.source): self = .tooLarge
        case .refused(.file(let error)) where [ENOSPC, EDQUOT].contains(error.code): self = .noRoom
        case .folder(let error) where [ENOSPC, EDQUOT].contains(error.code): self = .noRoom
        default: self = .diskFails
        }
    }
}

extension UnstoredReason {
    /// What says so.
    var section: String {
        switch self {
        case .cut: "RFC 9111 section 3.3"
        case .diskFails: KeepRefusal.diskFails.section
        case .noMemory: KeepRefusal.noMemory.section
        case .noRoom: KeepRefusal.noRoom.section
        case .tooLarge: KeepRefusal.tooLarge.section
        case .tooShort: StoreRefusal.tooShort.section
        case .unexpectedContent: KeepRefusal.unexpectedContent.section
        case .unprovenEnd: KeepRefusal.unprovenEnd.section
        case .overtaken: "RFC 9111 section 4.4"
        }
    }
}

/// What was told last of a key, and when, so that the log has one line in two minutes. Sendable: its state is under its own mutex.
final class ToldUnstored: Sendable {
    private static let limit = 10_000
    /// Seconds between two lines about the same.
    private static let pause: Int64 = 120
    private let last = Mutex<[UInt64: (reason: UnstoredReason, time: Int64)]>([:])

    /// Whether this is to be told.
    /// - Parameter now: Unix seconds.
    func isNews(_ key: CacheKey, _ reason: UnstoredReason, now: Int64) -> Bool {
        last.withLock { last in
            if let told = last[key.hash], told.reason == reason, (0..<Self.pause).contains(now &- told.time) {
                return false
            }
            if last.count >= Self.limit, let oldest = last.values.map(\.time).min() {
                last = last.filter { $0.value.time > oldest }
            }
            last[key.hash] = (reason, now)
            return true
        }
    }
}

extension DownloadCore {
    /// Something became of a response whose head said `stored`.
    /// - Parameter reason: nil where a tier has it.
    func noteStoring(_ ask: CacheAsk, _ reason: UnstoredReason?) {
        guard let reason else { return refusals.forget(ask.key) }
        let now = clock.now()
        refusals.note(ask.key, reason.rawValue, reason.section, now: now)
        counters.withLock { $0.unstored += 1 }
        // What the disk and the body were found to be is told already; what overtakes is no trouble.
        guard ![.diskFails, .unexpectedContent, .unprovenEnd, .overtaken].contains(reason),
            toldUnstored.isNews(ask.key, reason, now: now)
        else { return }
        report(.unstored(ask.key, reason))
    }
}
