// What a batch asks for, how far it is, and what each of its items has come to.

import DownloadCore
public import FoundationEssentials
public import HTTPTypes

extension DownloadBatch {
    /// One resource of a batch.
    public struct Item: Sendable, Hashable {
        /// What is asked for: GET or HEAD, with a scheme and an authority; in ``DownloadConfiguration/Mode/fixedLifetime`` also
        /// POST.
        public var request: HTTPRequest
        /// The content of a POST; nil where it has none.
        public var body: Data?
        /// Where the body is written, too, by a file URL: whole or not at all. The folders on the way are made. nil
        /// writes it nowhere; it is stored all the same.
        public var file: URL?
        /// What this download wants otherwise than the manager has it.
        public var options: DownloadOptions

        /// A resource by its URL; a fragment is left out.
        public init(_ url: URL, file: URL? = nil, options: DownloadOptions = DownloadOptions()) {
            self.init(HTTPRequest(url.absoluteString), file: file, options: options)
        }

        /// A resource by a request with fields, and for a POST a content, of its own.
        public init(
            _ request: HTTPRequest,
            body: Data? = nil,
            file: URL? = nil,
            options: DownloadOptions = DownloadOptions()
        ) {
            self.request = request
            self.body = body
            self.file = file
            self.options = options
        }

        /// The URL.
        var text: String { request.text }
    }

    /// Where a batch is.
    public enum State: Sendable, Hashable, CaseIterable {
        /// Nothing has been asked for.
        case queued
        /// Sizes are being looked for.
        case checking
        /// All sizes that can be known are.
        case checked
        /// Items are being downloaded.
        case running
        /// Every item is done; whether all are kept, ``Report/isComplete`` says.
        case done
        /// It has come to its end, and items have failed.
        case failed
        /// An item has failed, and the rest was not begun.
        case stopped
        /// It was cancelled.
        case cancelled

        var isEnd: Bool {
            switch self {
            case .queued, .checking, .running: false
            case .checked, .done, .failed, .stopped, .cancelled: true
            }
        }
    }

    /// How far a batch is: every item is counted in exactly one of ``queued``, ``running``, ``done``, ``failed`` and
    /// ``cancelled``.
    public struct Progress: Sendable, Hashable {
        /// Where the batch is.
        public var state: State
        /// Items of the batch.
        public var items: Int
        /// Items that wait.
        public var queued: Int
        /// Items under way.
        public var running: Int
        /// Items that have come or were there already; those that came and were not kept are among them.
        public var done: Int
        /// Items that have failed.
        public var failed: Int
        /// Items that were cancelled.
        public var cancelled: Int
        /// How many of those done needed no download.
        public var valid: Int
        /// How many of those done came and are not kept, such as an error page in the place of an image.
        public var notStored: Int
        /// How many of those done repeat an earlier item.
        public var duplicates: Int
        /// How many of those waiting or under way have a size that is not known.
        public var unknownSize: Int
        /// Bytes that are to be downloaded or have been, as far as they are known.
        public var bytes: Int64
        /// Bytes that have come for this batch.
        public var received: Int64
        /// Bytes that are still to come, as far as they are known.
        public var remaining: Int64
    }

    /// What one item has come to.
    public struct Entry: Sendable, Hashable {
        /// What was asked for.
        public var item: Item
        /// Where it is; never ``State/checking``, ``State/checked`` or ``State/stopped``.
        public var state: State
        /// How it was got; nil while it has not been, and for one that repeats another.
        public var outcome: DownloadOutcome?
        /// Whether it is stored now, and needs nothing more; false for one that repeats another.
        public var isStored: Bool
        /// Bytes of the body; nil while they are not known.
        public var size: Int64?
        /// Bytes of the body that have come for this item.
        public var received: Int64
        /// The status that the origin or the store answered with.
        public var status: Int?
        /// Why it failed, is not stored, or has no known size.
        public var reason: String?
        /// The position of the earlier item that it repeats, counted from 0.
        public var duplicateOf: Int?
    }

    /// What a batch has come to.
    public struct Report: Sendable, Hashable {
        /// The sums.
        public var progress: Progress
        /// The items, in the order in which they were given.
        public var entries: [Entry]

        /// The items that came and are not kept.
        public var unstored: [Entry] {
            entries.filter { $0.state == .done && !$0.isStored && $0.outcome == .downloaded }
        }
        /// The items that have failed.
        public var failures: [Entry] { entries.filter { $0.state == .failed } }
        /// Whether every item is there: stored, so that it needs no more downloading. An item that came and was
        /// not kept is done (``State/done``), but not there; its ``Entry/reason`` says why. One that repeats
        /// another is there with that one.
        public var isComplete: Bool {
            entries.allSatisfy { entry in entry.duplicateOf.map { entries[$0].isStored } ?? entry.isStored }
        }
    }
}

extension DownloadBatch.State {
    init(_ state: BatchState) {
        self =
            switch state {
            case .queued: .queued
            case .checking: .checking
            case .checked: .checked
            case .running: .running
            case .done: .done
            case .failed: .failed
            case .stopped: .stopped
            case .cancelled: .cancelled
            }
    }

    init(_ state: BatchEntryState) {
        self =
            switch state {
            case .queued: .queued
            case .running: .running
            case .done: .done
            case .failed: .failed
            case .cancelled: .cancelled
            }
    }
}

extension DownloadBatch.Progress {
    init(_ progress: (state: BatchState, totals: BatchTotals)) {
        let totals = progress.totals
        state = DownloadBatch.State(progress.state)
        items = totals.items
        queued = totals.queued
        running = totals.running
        done = totals.done
        failed = totals.failed
        cancelled = totals.cancelled
        valid = totals.valid
        notStored = totals.notStored
        duplicates = totals.duplicates
        unknownSize = totals.unknownSize
        bytes = totals.bytes
        received = totals.received
        remaining = totals.remaining
    }
}

extension DownloadBatch.Entry {
    init(_ item: DownloadBatch.Item, _ entry: BatchEntry) {
        self.item = item
        state = DownloadBatch.State(entry.state)
        size = entry.size
        received = entry.received
        status = entry.status
        reason = entry.reason.map { ProgramWords.told($0) }
        duplicateOf = entry.duplicateOf
        switch entry.outcome {
        case .seed: (outcome, isStored) = (.seeded, true)
        case .valid: (outcome, isStored) = (.stillValid, true)
        case .revalidated: (outcome, isStored) = (.confirmed, true)
        case .downloaded: (outcome, isStored) = (.downloaded, true)
        case .notStored: (outcome, isStored) = (.downloaded, false)
        case .duplicate, .skipped: (outcome, isStored) = (nil, false)
        case nil:
            outcome = entry.state == .failed ? .downloadFailed : entry.check == .valid ? .stillValid : nil
            isStored = entry.check == .valid
        }
    }
}

extension HTTPRequest {
    /// A GET of an absolute URL; one that is none keeps its text, which is refused when it is asked for.
    package init(_ url: String) {
        let whole = url.prefix { $0 != "#" }
        guard let colon = whole.firstRange(of: "://") else {
            self.init(method: .get, scheme: nil, authority: nil, path: String(whole))
            return
        }
        let rest = whole[colon.upperBound...]
        let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        let path = rest[end...]
        self.init(
            method: .get,
            scheme: String(whole[..<colon.lowerBound]),
            authority: String(rest[..<end]),
            path: path.first == "/" ? String(path) : "/\(path)"
        )
    }

    /// The absolute URL; what is missing is left out.
    package var text: String {
        guard let scheme else { return path ?? "" }
        return "\(scheme)://\(authority ?? "")\(path ?? "/")"
    }
}
