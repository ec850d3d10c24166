// Purges: in force before the call returns, for responses that are stored, that are arriving, or that
// are found on the disk later.

import CacheStore
package import EventLoop
import Synchronization

/// Why a purge is not all that it should be.
package enum PurgeError: Error, Sendable, Equatable, CustomStringConvertible {
    /// It is in force, but a restart may undo it.
    case notWritten(SystemError)
    /// The daemon is ending.
    case ended

    package var description: String {
        switch self {
        case .notWritten(let error):
            "the purge is in force until the daemon ends, but it could not be written: \(error); make room on the disk, or its folder writable, and purge again"
        case .ended: "the daemon is ending, and purges nothing any more"
        }
    }
}

extension Housekeeping {
    /// Hard purges that may wait for their files to go.
    private static let maximumUnswept = 512

    /// Stored responses that purges have removed or made stale.
    var purgeCounts: (hard: Int, soft: Int) {
        (hardPurged.load(ordering: .relaxed), softPurged.load(ordering: .relaxed))
    }

    /// ``DownloadCore/purge(_:on:)``
    func purge(_ rules: [PurgeRule], on pool: IOPool) async throws(PurgeError) -> Int {
        guard !rules.isEmpty else { return 0 }
        if context.invalidations.unsweptCount > Self.maximumUnswept { await context.store.settleSweep() }
        let now = context.clock.now()
        let number = context.invalidations.purge(rules, now: now)
        let work = { @Sendable [self] () -> (SystemError?, Int) in
            var failure: SystemError?
            do throws(SystemError) {
                try context.invalidations.persist(rules, number: number, now: now)
            } catch {
                failure = error
            }
            let alone = context.store.purgeMemory(rules, number: number, now: now)
            return (failure, alone + context.partials.removeInvalid(context.invalidations))
        }
        guard let (failure, inMemory) = try? await pool.run(work) else { throw .ended }
        let behind = await context.store.purgeBehind(rules, number: number)
        if let failure { throw .notWritten(failure) }
        // Rules of one call are all of one kind.
        let count = inMemory + behind
        if rules[0].isSoft {
            softPurged.wrappingAdd(count, ordering: .relaxed)
        } else {
            hardPurged.wrappingAdd(count, ordering: .relaxed)
        }
        return count
    }
}

extension PartialTable {
    /// - Returns: how many have gone.
    fileprivate func removeInvalid(_ invalidations: Invalidations) -> Int {
        let gone = all.filter { !invalidations.isUnchanged($0.token) }
        for partial in gone { remove(partial) }
        return gone.count
    }
}
