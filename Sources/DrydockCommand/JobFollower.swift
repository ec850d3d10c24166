// Follows a job of the daemon until it ends: a progress bar on a terminal, plain lines
// elsewhere, both on standard error.

import DrydockDaemon
import FoundationEssentials
import Glibc
import ProxyServer
import Synchronization

/// A flag that the user has pressed Ctrl-C; set by a signal handler, which may only touch atomics.
private let interrupted = Atomic<Bool>(false)

struct JobFollower {
    let client: AdminClient
    private let isTerminal = isatty(STDERR_FILENO) == 1 && processEnvironment()["TERM"] != "dumb"

    init(client: AdminClient) { self.client = client }

    /// Waits for the end of a job.
    /// - Returns: nil where Ctrl-C ended the waiting.
    func follow(_ id: String) throws -> AdminJob? {
        signal(SIGINT) { _ in interrupted.store(true, ordering: .relaxed) }
        defer { signal(SIGINT, SIG_DFL) }
        let began = Date()
        var first: Int64?
        var told = ""
        var lastLine = Date.distantPast
        while true {
            let job = try client.request("GET", .job, id: id, query: [("items", "false")]).successful()
                .decode(AdminJob.self)
            let before = first ?? job.totals.received
            first = before
            if isTerminal {
                let line =
                    job.isCheck
                    ? job.progress.checkBar(columns: Self.columns)
                    : job.progress.bar(columns: Self.columns, seconds: Date().timeIntervalSince(began), since: before)
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
        try client.request("GET", .job, id: id).successful()
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
