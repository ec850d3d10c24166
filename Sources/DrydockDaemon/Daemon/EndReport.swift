// What the end of a daemon logs: for whom it waits, and whom it cuts off.

import Glibc
import Logging
import ProxyServer

struct EndReport: Sendable {
    let logger: Logger

    /// Logs for whom the end waits, and how long.
    /// - Parameters:
    ///   - grace: nanoseconds.
    ///   - signal: what has asked for the end; nil if no signal has.
    func waiting(for waited: [WaitedFor], grace: UInt64, signal: Int32?) {
        guard !waited.isEmpty else { return }
        let seconds = Int64(clamping: grace / 1_000_000_000)
        let (end, isLate) = Int64(time(nil)).addingReportingOverflow(seconds)
        let until = isLate ? "" : ", until \(Timestamp.text(end)) at the latest ('shutdown' sets how long)"
        let again =
            signal.map { "; \($0 == SIGINT ? "a second Ctrl-C" : "a second signal") ends the daemon at once" } ?? ""
        logger.notice("waiting for \(WaitedFor.summary(waited))\(until)\(again)")
        for one in waited.prefix(Self.mostLines) { logger.info("waiting for \(one)") }
    }

    /// Logs which clients have not got all of an answer.
    func cut(_ cut: [WaitedFor]) {
        for one in cut.prefix(Self.mostLines) { logger.warning("cut off: \(one)") }
        if cut.count > Self.mostLines { logger.warning("cut off: \(cut.count - Self.mostLines) more") }
    }

    /// Lines that one of the two may log about single clients.
    private static let mostLines = 20
}
