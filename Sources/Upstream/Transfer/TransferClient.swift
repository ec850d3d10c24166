// What a transfer knows of the client that began it.

/// Begins transfers, and hands on what came of them; loop-bound. A transfer holds it until its end.
protocol TransferClient: AnyObject {
    /// A carrier is at work that cannot lose a transfer before it has returned: whoever is cancelled meanwhile ends
    /// later.
    var mustKeepTransfers: Bool { get }
    /// The transfer has something to hand on: it is asked for it at the end of the event, or within ``settle()``.
    func mark(_ transfer: Transfer)
    /// A method of a transfer was called from outside: the delegates are called later.
    func poke()
    /// Has what is marked handed on in this turn of the loop, and not from within this call.
    func wakeLater()
    /// Has the transfer carried once more, from the addresses of its origin on.
    /// - Parameter isFresh: by a connection of its own, not by an idle one.
    func resolve(_ transfer: Transfer, isFresh: Bool)
    /// The transfer has ended and holds nothing any more.
    func released(_ transfer: Transfer)
    /// An event of a connection begins: what delegates ask for meanwhile waits for its end.
    func beginEvent()
    func endEvent()
}
