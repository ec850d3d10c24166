// Follows a job of the daemon until it ends: a progress bar on a terminal, plain lines elsewhere, both on standard error.

import DrydockDaemon
import FoundationEssentials
import Glibc
import Synchronization

/// What the daemon says of a job.
struct JobDocument: Decodable {
    struct Item: Decodable {
        let url: String
        let state: String
        let check: String?
        let outcome: String?
        let size: Int64?
        let received: Int64
        let reason: String?
        let duplicateOf: Int?
    }

    let id: String
    let kind: String
    let name: String?
    let state: String
    let totals: BatchProgress
    let items: [Item]?

    var isEnd: Bool { !["queued", "checking", "running"].contains(state) }
    /// Sizes are being looked for, or have been.
    var isCheck: Bool { state == "checking" || state == "checked" }
    /// How far it is.
    var sentence: String { isCheck ? totals.checkSentence : totals.sentence }
    /// Every item is done, or has its size.
    var isGood: Bool { (state == "done" || state == "checked") && totals.failed == 0 }
}

/// That the user has pressed Ctrl-C; set by a signal handler, which may only touch atomics.
private let interrupted = Atomic<Bool>(false)

struct JobFollower {
    let client: AdminClient
    private let isTerminal = isatty(STDERR_FILENO) == 1 && processEnvironment()["TERM"] != "dumb"

    init(client: AdminClient) { self.client = client }

    /// Waits for the end of a job.
    /// - Returns: nil where Ctrl-C ended the waiting.
    func follow(_ id: String) throws -> JobDocument? {
        signal(SIGINT) { _ in interrupted.store(true, ordering: .relaxed) }
        defer { signal(SIGINT, SIG_DFL) }
        let began = Date()
        var first: Int64?
        var told = ""
        var lastLine = Date.distantPast
        while true {
            let job = try client.request("GET", "/v1/jobs/\(AdminClient.escape(id))?items=false").successful()
                .decode(JobDocument.self)
            let before = first ?? job.totals.received
            first = before
            if isTerminal {
                let line =
                    job.isCheck
                    ? job.totals.checkBar(columns: Self.columns)
                    : job.totals.bar(columns: Self.columns, seconds: Date().timeIntervalSince(began), since: before)
                // Back to the first column, and what the line before had more than this one is erased.
                write("\r\(line)\u{1B}[K")
            } else if job.sentence != told, job.isEnd || Date().timeIntervalSince(lastLine) >= 1 {
                told = job.sentence
                lastLine = Date()
                write("\(job.kind) \(id): \(told)\n")
            }
            if job.isEnd || interrupted.load(ordering: .relaxed) {
                if isTerminal { write("\n") }
                return job.isEnd ? job : nil
            }
            usleep(isTerminal ? 100_000 : 200_000)
        }
    }

    /// The job with its items, as the daemon says it.
    func whole(_ id: String) throws -> AdminClient.Answer {
        try client.request("GET", "/v1/jobs/\(AdminClient.escape(id))").successful()
    }

    private func write(_ text: String) {
        _ = text.utf8CString.withUnsafeBytes { Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count - 1) }
    }

    private static var columns: Int {
        var size = winsize()
        guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }
}

extension JobDocument.Item {
    /// One line for people; the state first.
    var line: String {
        var parts = [outcome ?? check.map { state == "queued" ? $0 : state } ?? state]
        if let size { parts.append(Format.size(Int(size))) }
        parts.append(url)
        if let duplicateOf { parts.append("(repeats item \(duplicateOf + 1))") }
        if let reason { parts.append("(\(reason))") }
        return parts.joined(separator: "  ")
    }
}
