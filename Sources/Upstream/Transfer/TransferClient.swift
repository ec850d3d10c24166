// The client of a transfer, as the transfer sees it.

/// Begins transfers and delivers their events; loop-bound. A transfer holds it until its end.
protocol TransferClient: AnyObject {
    /// A carrier is at work that cannot lose a transfer before it has returned: whoever is cancelled meanwhile ends
    /// later.
    var mustKeepTransfers: Bool { get }
    /// Marks a transfer with events to deliver: they are delivered at the end of the current
    /// event, or within ``settle()``.
    func mark(_ transfer: Transfer)
    /// A method of a transfer was called from outside: the delegates are called later.
    func poke()
    /// Schedules the delivery of marked transfers for this turn of the loop, not within this call.
    func wakeLater()
    /// Starts the transfer again, from the resolution of its origin.
    /// - Parameter isFresh: by a connection of its own, not by an idle one.
    func resolve(_ transfer: Transfer, isFresh: Bool)
    /// The transfer has ended and holds nothing any more.
    func released(_ transfer: Transfer)
    /// An event of a connection begins: what delegates ask for meanwhile waits for its end.
    func beginEvent()
    func endEvent()
}
