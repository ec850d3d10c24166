// `drydock jobs`: the batches that the daemon knows, the orders for them, and following one until it ends.

import ArgumentParser
import DownloadCore
import DrydockDaemon
import FoundationEssentials
import Glibc
import ProxyServer
import Synchronization

struct Jobs: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List, show, cancel, retry or remove batches.",
        subcommands: [List.self, Show.self, Cancel.self, Retry.self, Remove.self],
        defaultSubcommand: List.self
    )

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Print one line for each job, the oldest first.")
        @OptionGroup var options: AdminOptions

        func run() throws {
            let answer = try options.client.request("GET", .jobs).successful()
            if options.json { return print(answer.text, terminator: "") }
            let rows = try answer.decode(AdminJobs.self).jobs.map(\.columns)
            for line in Format.table(rows) { print(line) }
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Print one job, item by item.")
        @Argument(help: "The number of the job.") var id: String
        @OptionGroup var options: AdminOptions

        func run() throws {
            let answer = try JobFollower(client: options.client).whole(id)
            if options.json { return print(answer.text, terminator: "") }
            let job = try answer.decode(AdminJob.self)
            let isRun = job.kind == AdminJob.Kind.group.rawValue
            for item in job.items ?? [] { print(isRun ? item.callLine : item.line) }
            print(job.line)
        }
    }

    struct Cancel: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "End a job; items that are done stay done.")
        @Argument(help: "The number of the job.") var id: String
        @OptionGroup var options: AdminOptions
        func run() throws { try Jobs.act("POST", .cancelJob, id: id, options: options) }
    }

    struct Retry: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Try the items again that have failed or were cancelled."
        )
        @Argument(help: "The number of the job.") var id: String
        @OptionGroup var options: AdminOptions
        func run() throws { try Jobs.act("POST", .retryJob, id: id, options: options) }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Forget a job that is not under way; the responses that it stored stay."
        )
        @Argument(help: "The number of the job.") var id: String
        @OptionGroup var options: AdminOptions
        func run() throws { try Jobs.act("DELETE", .job, id: id, options: options) }
    }
    private static func act(_ method: String, _ path: AdminPath, id: String, options: AdminOptions) throws {
        try options.order(method, path, id: id) { (job: AdminJob) in job.line }
    }
}

// MARK: - Jobs as text

// A job and its items as the command line prints them.
extension AdminJob {
    /// True if the job looks for sizes, or has found them.
    var isCheck: Bool { state == "checking" || state == "checked" }
    /// True if every item is done, or has its size.
    var isGood: Bool { (state == "done" || state == "checked") && totals.failed == 0 }

    var progress: BatchProgress { BatchProgress(totals) }
    /// The progress of the job.
    var sentence: String { isCheck ? progress.checkSentence : progress.sentence }
    /// The job as a line: `3  prefetch  running  12 of 30 items, 1.2 of 3.0 MiB  catalogue`.
    var line: String { columns.joined(separator: "  ") }
    var columns: [String] { [id, kind, state, sentence] + [name].compactMap { $0 } }
}

extension AdminJob.Item {
    /// The call of a group as a line, such as `done  200  api /login`; with the reason if it failed or was skipped.
    var callLine: String {
        var parts = [outcome == "skipped" ? "skipped" : state]
        if let status { parts.append("\(status)") }
        parts.append(url)
        if let reason, state == "failed" || outcome == "skipped" { parts.append("(\(reason))") }
        return parts.joined(separator: "  ")
    }

    /// The item as one line for people, with its state first.
    var line: String {
        var parts = [outcome ?? check.map { state == "queued" ? $0 : state } ?? state]
        if let size { parts.append(Format.size(Int(size))) }
        parts.append(url)
        if let file { parts.append("to \(file)") }
        if let duplicateOf { parts.append("(repeats item \(duplicateOf + 1))") }
        if let reason { parts.append("(\(reason))") }
        return parts.joined(separator: "  ")
    }
}

// MARK: - Following a job

/// True if the user has pressed Ctrl-C; set by a signal handler, which may only access atomics.
private let interrupted = Atomic<Bool>(false)

struct JobFollower {
    let client: AdminClient
    private let isTerminal = isatty(STDERR_FILENO) == 1 && processEnvironment()["TERM"] != "dumb"

    init(client: AdminClient) { self.client = client }

    /// Waits for the end of a job.
    /// - Returns: nil if Ctrl-C ended the wait.
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
                // The line begins at the first column, and the rest of a longer previous line is erased.
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

    /// The job with its items, as the daemon sends it.
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
