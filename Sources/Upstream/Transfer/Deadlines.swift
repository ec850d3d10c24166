// The four deadlines of a transfer as a value: no timer, no clock of its own.

/// Which deadline passes when. Times are `Monotonic` nanoseconds, handed in.
///
/// Transitions of the phase: connecting → sending | waiting; sending → waiting | receiving; waiting → receiving.
package struct Deadlines {
    package enum Phase: Equatable, Sendable { case resolving, connecting, sending, waiting, receiving }

    private var timeouts: Timeouts
    package private(set) var phase = Phase.resolving
    /// Both move on by the length of each suspension, so that suspended time does not count.
    private var startedAt: UInt64
    private var phaseSince: UInt64
    private var suspendedAt: UInt64?

    package init(_ timeouts: Timeouts, now: UInt64) {
        self.timeouts = timeouts
        startedAt = now
        phaseSince = now
    }

    /// A new phase begins; resolving and connecting count as one.
    package mutating func enter(_ next: Phase, now: UInt64) {
        let isConnecting = phase == .resolving && next == .connecting
        if !isConnecting, phase != next { phaseSince = now }
        phase = next
    }

    /// Silence is no failure from now on.
    mutating func liftIdle() { timeouts.idle = nil }

    /// A byte of a body went or came.
    package mutating func progress(now: UInt64) { phaseSince = now }

    /// Stops the clocks, or lets them go on.
    package mutating func setSuspended(_ isWanted: Bool, now: UInt64) {
        if isWanted {
            if suspendedAt == nil { suspendedAt = now }
        } else if let began = suspendedAt {
            suspendedAt = nil
            let pause = now > began ? now - began : 0
            startedAt += pause
            phaseSince = min(phaseSince + pause, now)
        }
    }

    /// The earliest deadline; nil while suspended or if none applies.
    package var next: (at: UInt64, what: TimeoutPhase)? {
        guard suspendedAt == nil else { return nil }
        let (limit, what): (UInt64?, TimeoutPhase) =
            switch phase {
            case .resolving: (timeouts.connect, .resolve)
            case .connecting: (timeouts.connect, .connect)
            case .waiting: (timeouts.firstByte, .firstByte)
            case .sending, .receiving: (timeouts.idle, .idle)
            }
        let ofPhase = limit.map { (at: saturating(phaseSince, $0), what: what) }
        guard let total = timeouts.total else { return ofPhase }
        let ofTotal = (at: saturating(startedAt, total), what: TimeoutPhase.total)
        guard let ofPhase, ofPhase.at <= ofTotal.at else { return ofTotal }
        return ofPhase
    }

    /// The deadline that has passed.
    package func expired(now: UInt64) -> TimeoutPhase? {
        guard let next, next.at <= now else { return nil }
        return next.what
    }

    private func saturating(_ time: UInt64, _ wait: UInt64) -> UInt64 {
        let (sum, overflow) = time.addingReportingOverflow(wait)
        return overflow ? .max : sum
    }
}
