// What the end of a daemon says: for whom it waits, and whom it cuts off.

internal import Glibc
internal import Logging
internal import ProxyServer

extension Daemon {
    /// Says for whom the end waits, and how long.
    func tellWaiting(_ waited: [WaitedFor], grace: UInt64, _ signal: Int32?) {
        guard !waited.isEmpty else { return }
        let seconds = Int64(clamping: grace / 1_000_000_000)
        let (end, isLate) = Int64(time(nil)).addingReportingOverflow(seconds)
        let until = isLate ? "" : ", until \(Timestamp.text(end)) at the latest ('shutdown' sets how long)"
        let again =
            signal.map { "; \($0 == SIGINT ? "a second Ctrl-C" : "a second signal") ends the daemon at once" } ?? ""
        parts.logger.notice("waiting for \(WaitedFor.summary(waited))\(until)\(again)")
        for one in waited.prefix(Self.toldAtMost) { parts.logger.info("waiting for \(one)") }
    }

    /// Says who has not got all of an answer.
    func tellCut(_ cut: [WaitedFor]) {
        for one in cut.prefix(Self.toldAtMost) { parts.logger.warning("cut off: \(one)") }
        if cut.count > Self.toldAtMost { parts.logger.warning("cut off: \(cut.count - Self.toldAtMost) more") }
    }

    /// Lines that one event may write.
    private static var toldAtMost: Int { 20 }
}
