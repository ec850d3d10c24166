// The body of a scripted response, piece by piece.

import Drydock
import FoundationEssentials
import Synchronization

/// Sendable: what is left is under a mutex.
final class ScriptedBody: Sendable {
    private let rest: Mutex<ArraySlice<Data>>
    private let interruption: DownloadError?
    /// Bytes of the whole.
    private let count: Int

    init(_ pieces: [Data], _ interruption: DownloadError?) {
        rest = Mutex(pieces[...])
        self.interruption = interruption
        count = pieces.reduce(0) { $0 + $1.count }
    }

    /// Its length is known where it comes whole.
    var body: ResponseBody {
        ResponseBody(expected: interruption == nil ? Int64(count) : nil) { () throws(DownloadError) in try self.next() }
    }

    private func next() throws(DownloadError) -> Data? {
        if Task.isCancelled { throw .cancelled }
        if let piece = rest.withLock({ $0.popFirst() }) { return piece }
        if let interruption { throw interruption }
        return nil
    }
}
