// A job and its items as the command line prints them.

import DrydockDaemon
import ProxyServer

extension AdminJob {
    /// Sizes are being looked for, or have been.
    var isCheck: Bool { state == "checking" || state == "checked" }
    /// Every item is done, or has its size.
    var isGood: Bool { (state == "done" || state == "checked") && totals.failed == 0 }

    var progress: BatchProgress { BatchProgress(totals) }
    /// How far it is.
    var sentence: String { isCheck ? progress.checkSentence : progress.sentence }
    /// `3  prefetch  running  12 of 30 items, 1.2 of 3.0 MiB  catalogue`.
    var line: String { ([id, kind, state, sentence] + [name].compactMap { $0 }).joined(separator: "  ") }
}

extension AdminJob.Item {
    /// The line of a call of a group: `done  200  api /login`; what failed or was skipped, with the reason.
    var callLine: String {
        var parts = [outcome == "skipped" ? "skipped" : state]
        if let status { parts.append("\(status)") }
        parts.append(url)
        if let reason, state == "failed" || outcome == "skipped" { parts.append("(\(reason))") }
        return parts.joined(separator: "  ")
    }

    /// One line for people; the state first.
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
