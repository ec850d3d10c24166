// What a transfer knows of the client that began it.

/// Begins transfers, and hands on what came of them; loop-bound. A transfer holds it until its end.
protocol TransferClient: AnyObject {
    /// libcurl is on the stack: no transfer may end before it has returned.
    var isInsideLibcurl: Bool { get }
    /// The transfer has something to hand on: it is asked for it at the end of the event, or within ``settle()``.
    func mark(_ transfer: Transfer)
    /// A method of a transfer was called from outside: the delegates are called later.
    func poke()
    /// Has what is marked handed on in this turn of the loop, and not from within this call.
    func wakeLater()
    /// Has the transfer carried once more, from the addresses of its origin on.
    /// - Parameters:
    ///   - isFresh: by a connection of its own, not by an idle one.
    ///   - mustPin: libcurl is told the addresses, also where it was told them a short while ago.
    func resolve(_ transfer: Transfer, isFresh: Bool, mustPin: Bool)
    /// The transfer has ended; its carrier holds nothing of it.
    func released(_ transfer: Transfer, _ carrier: Carrier?)
    /// An event of a connection begins: what delegates ask for meanwhile waits for its end.
    func beginEvent()
    func endEvent()
}
