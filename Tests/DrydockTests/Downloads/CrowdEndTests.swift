// A crowd of calls: what each of them carries through the frames of its tasks is small, and at the end of the crowd the
// memory goes back.

import Foundation
import TestSupport
import Testing

@testable import Drydock

@Suite struct CrowdEndTests {
    /// A download that is there, and does nothing.
    private final class Idle: DownloadUnderWay {
        var asked: DownloadRequest? { nil }
        var isCancelled: Bool { false }
        func cancel(silently: Bool) {}
    }

    @Test func theLastOfACrowdGivesMemoryBackOnce() throws {
        let count = Monitor(0)
        let sessions = DownloadSessions { count.update { $0 += 1 } }
        for (size, expected) in [(DownloadSessions.crowd - 1, 0), (DownloadSessions.crowd, 1), (1, 1), (1000, 2)] {
            let all = (0..<size).map { _ in Idle() }
            for one in all { try sessions.add(one) }
            for one in all.dropLast() { sessions.remove(one) }
            #expect(count.read { $0 } == (size == 1000 ? 1 : size == DownloadSessions.crowd ? 0 : expected))
            if let last = all.last { sessions.remove(last) }
            #expect(count.read { $0 } == expected, "\(size)")
        }
    }

    /// Each frame of a call that waits has room for an error, and several have room for a request.
    @Test func whatACallCarriesIsSmall() {
        #expect(MemoryLayout<DownloadError>.size <= 4 * 8)
        #expect(MemoryLayout<DownloadRequest>.size <= 2 * 8)
        #expect(MemoryLayout<TransportRequest>.size <= 16 * 8)
    }
}
