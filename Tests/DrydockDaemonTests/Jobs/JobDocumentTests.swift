// The documents of jobs: their words are those of batches.

import DownloadCore
import Policies
import ProxyServer
import Testing

@testable import DrydockDaemon

@Suite struct JobDocumentTests {
    @Test("a job is at its end where its batch is", arguments: BatchState.allCases)
    func ends(_ state: BatchState) {
        let job = AdminJob(id: "1", kind: .size, state: state.rawValue, totals: BatchTotals())
        #expect(job.isEnd == state.isEnd)
    }

    @Test("what a request says of failures is what a batch does", arguments: AdminJobRequest.OnError.allCases)
    func policies(_ word: AdminJobRequest.OnError) {
        #expect(BatchFailurePolicy(word).rawValue == word.rawValue)
        #expect(AdminJobRequest.OnError.allCases.count == BatchFailurePolicy.allCases.count)
    }

    @Test("totals are members of the document, and items are taken over member by member")
    func members() throws {
        var totals = BatchTotals()
        (totals.items, totals.queued, totals.running, totals.done, totals.failed) = (1, 2, 3, 4, 5)
        (totals.cancelled, totals.checked, totals.duplicates, totals.valid, totals.notStored) = (6, 7, 8, 9, 10)
        (totals.unknownSize, totals.bytes, totals.received, totals.remaining) = (11, 12, 13, 14)
        #expect(
            String(decoding: try AdminJSON.encode(totals), as: UTF8.self) == """
                {"bytes":12,"cancelled":6,"checked":7,"done":4,"duplicates":8,"failed":5,"items":1,"not_stored":10,\
                "queued":2,"received":13,"remaining":14,"running":3,"unknown_size":11,"valid":9}

                """
        )
        var entry = BatchEntry(BatchItem(url: "/a", method: "HEAD"))
        (entry.state, entry.check, entry.outcome) = (.done, .unknownSize, .notStored)
        (entry.size, entry.received, entry.status, entry.reason, entry.duplicateOf) = (5, 4, 200, "why", 3)
        let item = AdminJob.Item(entry)
        #expect(item.url == "/a" && item.method == "HEAD" && item.state == "done")
        #expect(item.check == "unknown-size" && item.outcome == "not-stored" && item.reason == "why")
        #expect(item.size == 5 && item.received == 4 && item.status == 200 && item.duplicateOf == 3)
        #expect(AdminJob.Item(BatchEntry(BatchItem(url: "/a"))).method == nil)
    }
}
