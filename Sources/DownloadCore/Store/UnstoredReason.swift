// Why a response that may be stored is not: known before its body comes, or found out when it has come.

import CacheStore
import EventLoop
import Glibc
import HTTPCaching

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
