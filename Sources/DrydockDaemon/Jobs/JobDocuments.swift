// How the documents of a job are made from a batch, and a batch from what a document asks for.

import AdminAPI
import DownloadCore
import Policies

extension AdminJobItem {
    /// With the defaults of a list.
    var item: BatchItem {
        BatchItem(
            url: url,
            method: method ?? "GET",
            fields: (headers ?? [:]).sorted { $0.key < $1.key }.map { BatchItem.Field($0.key, $0.value) },
            body: body.map { Array($0.utf8) },
            force: force ?? false,
            seed: seed ?? true,
            store: store ?? true,
            file: file
        )
    }
}

extension BatchFailurePolicy {
    init(_ wanted: AdminJobRequest.OnError) {
        switch wanted {
        case .continue: self = .continue
        case .stop: self = .stop
        case .cancelRest: self = .cancelRest
        }
    }
}

extension AdminJob.Item {
    init(_ entry: BatchEntry) {
        self.init(
            url: entry.item.url,
            method: entry.item.method == "GET" ? nil : entry.item.method,
            state: entry.state.rawValue,
            received: entry.received
        )
        check = entry.check?.rawValue
        outcome = entry.outcome?.rawValue
        size = entry.size
        status = entry.status
        reason = entry.reason
        duplicateOf = entry.duplicateOf
        file = entry.item.file
    }
}

extension AdminJob.Totals {
    init(_ totals: BatchTotals) {
        self.init()
        items = totals.items
        queued = totals.queued
        running = totals.running
        done = totals.done
        failed = totals.failed
        cancelled = totals.cancelled
        checked = totals.checked
        duplicates = totals.duplicates
        valid = totals.valid
        notStored = totals.notStored
        unknownSize = totals.unknownSize
        bytes = totals.bytes
        received = totals.received
        remaining = totals.remaining
    }
}
