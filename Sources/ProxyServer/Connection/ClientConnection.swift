// What every connection of a client has, whatever version of HTTP it speaks: its client, and what its loop knows it by.

package import EventLoop
import ServiceCore

/// What a connection is made of. Its members are the connection's from its beginning on.
package struct ConnectionParts {
    package let context: LoopContext
    package let handler: any ExchangeHandler
    /// Its handshake, if it has one, is over.
    package let transport: any ByteTransport
    package let client: ConnectedClient
}

/// A connection of a client; loop-bound, and kept by its loop until it ends. A subclass is one form in which exchanges are
/// carried.
///
/// A class and no protocol: a loop calls connections back with every answer that is passed on, and has their index in its
/// list.
package class ClientConnection: LoopMember {
    package nonisolated let loop: EventLoop
    package let context: LoopContext
    package let client: ConnectedClient
    package let transport: any ByteTransport
    let handler: any ExchangeHandler
    let records: AnswerRecords
    var position: Int?
    /// The loop will call ``runAgain()``.
    var isQueued = false

    init(on loop: isolated EventLoop, _ parts: ConnectionParts, carriage: ConnectionContext.Carriage) {
        parts.client.isServed(by: carriage)
        self.loop = loop
        context = parts.context
        client = parts.client
        transport = parts.transport
        handler = parts.handler
        records = AnswerRecords(
            client: client,
            isRecorded: client.listener.role == .proxy,
            context: context
        )
    }

    /// Called once, when the connection can hear its transport.
    func joinLoop() {
        context.add(self)
        context.counters.add(.connectionsAccepted)
    }

    /// Gives back the connection's slot in the limits, and with its loop.
    func leaveLoop() {
        context.counters.add(.connectionsClosed)
        context.remove(self)
        client.leave(context.limits, loop, context.daemonLog)
    }

    /// Called by the loop for work that the connection has deferred.
    func runAgain() {}

    /// Tells a connection that has no slot in the limits why, and ends it.
    func turnAway(_ problem: Problem) {}

    func sweep(now: UInt64, elapsed: UInt64) {}

    func drainBegan() {}

    var waitedFor: WaitedFor? { nil }

    var mayChangeStore: Bool { false }

    func cut() {}
}

@available(*, unavailable) extension ClientConnection: Sendable {}
