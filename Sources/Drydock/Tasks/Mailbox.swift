// What one listener has still to hear: a list with a limit, and a bell.

import Synchronization

/// Sendable: the list is under its own mutex; the bell is rung outside of every lock.
final class Mailbox<Element: Sendable>: Sendable {
    fileprivate let bell: AsyncStream<Void>
    private let ringer: AsyncStream<Void>.Continuation
    private let waiting: Mutex<[Element]>
    private let limit: Int

    /// - Parameter limit: elements that wait at most, at least 1; the oldest gives way to a further one.
    init(_ elements: [Element] = [], limit: Int) {
        self.limit = limit
        waiting = Mutex(elements)
        (bell, ringer) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Adds one, and rings no bell.
    /// - Returns: the one that gave way, which the caller releases outside of its locks.
    func put(_ element: Element) -> Element? {
        waiting.withLock { waiting in
            waiting.append(element)
            return waiting.count > limit ? waiting.removeFirst() : nil
        }
    }

    func ring() { ringer.yield() }

    /// Nothing comes any more.
    func finish() { ringer.finish() }

    fileprivate func take() -> Element? { waiting.withLock { $0.isEmpty ? nil : $0.removeFirst() } }
}

/// The elements of a mailbox as they come; each iteration has a mailbox of its own.
struct MailboxSequence<Element: Sendable>: AsyncSequence, Sendable {
    typealias Failure = Never

    private let open: @Sendable () -> Mailbox<Element>

    init(_ open: @escaping @Sendable () -> Mailbox<Element>) { self.open = open }

    func makeAsyncIterator() -> Iterator { Iterator(open()) }

    struct Iterator: AsyncIteratorProtocol {
        private let mailbox: Mailbox<Element>
        private var bell: AsyncStream<Void>.AsyncIterator

        fileprivate init(_ mailbox: Mailbox<Element>) {
            self.mailbox = mailbox
            bell = mailbox.bell.makeAsyncIterator()
        }

        mutating func next(isolation actor: isolated (any Actor)? = #isolation) async -> Element? {
            while true {
                if let element = mailbox.take() { return element }
                // Nothing comes any more, or the task is cancelled. What came since the look above counts.
                if await bell.next(isolation: actor) == nil { return mailbox.take() }
            }
        }
    }
}
