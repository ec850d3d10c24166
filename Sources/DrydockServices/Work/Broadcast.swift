// The same news for any number of listeners, who may come late and leave early, and what each of them has still to
// hear.

import Synchronization

/// Sendable: its state is under its own mutex. Listeners are rung, and what they have missed is released, outside of it.
final class Broadcast<Element: Sendable>: Sendable {
    private struct Listener {
        weak var mailbox: Mailbox<Element>?
        let wants: @Sendable (Element) -> Bool
    }

    private struct State {
        var last: Element?
        var isOver = false
        var listeners: [Listener] = []
    }

    /// News that everybody has and that nobody has been told of yet.
    struct Delivery: Sendable {
        fileprivate var mailboxes: [Mailbox<Element>] = []
        fileprivate var displaced: [Element] = []
        fileprivate var isLast = false

        /// Rings for those who listen; outside of every lock.
        func carryOut() {
            for mailbox in mailboxes {
                if isLast { mailbox.finish() } else { mailbox.ring() }
            }
        }
    }

    private let replaysLast: Bool
    private let state: Mutex<State>

    /// News that nobody hears who comes late.
    init() {
        replaysLast = false
        state = Mutex(State())
    }

    /// - Parameter first: what those hear who listen before there are any news; later on it is the latest.
    init(replaying first: Element) {
        replaysLast = true
        state = Mutex(State(last: first))
    }

    /// Begins to listen.
    /// - Parameters:
    ///   - limit: elements that wait for a slow listener.
    ///   - wants: which ones are meant; called under a lock.
    func listen(limit: Int, where wants: @escaping @Sendable (Element) -> Bool = { _ in true }) -> Mailbox<Element> {
        let mailbox = Mailbox<Element>(limit: limit)
        let (isOver, others) = state.withLock { state -> (Bool, [Mailbox<Element>?]) in
            // The mailbox is empty, so that nothing gives way.
            if let last = state.last { _ = mailbox.put(last) }
            // Held up to the end of the lock: what is in a mailbox is the program's.
            let others = state.listeners.map(\.mailbox)
            if others.contains(where: { $0 == nil }) {
                state.listeners = zip(state.listeners, others).filter { $0.1 != nil }.map(\.0)
            }
            if !state.isOver { state.listeners.append(Listener(mailbox: mailbox, wants: wants)) }
            return (state.isOver, others)
        }
        withExtendedLifetime(others) { if isOver { mailbox.finish() } }
        return mailbox
    }

    /// Puts an element into the mailboxes of those that want it. It may be called under another lock, so that the order
    /// of the news is that of what happened.
    /// - Parameter isLast: nothing comes behind it.
    func put(_ element: Element, isLast: Bool = false) -> Delivery {
        state.withLock { state in
            var delivery = Delivery(isLast: isLast)
            if replaysLast {
                if let old = state.last { delivery.displaced.append(old) }
                state.last = element
            }
            for listener in state.listeners where listener.wants(element) {
                guard let mailbox = listener.mailbox else { continue }
                if let old = mailbox.put(element) { delivery.displaced.append(old) }
                delivery.mailboxes.append(mailbox)
            }
            if isLast { state.isOver = true }
            return delivery
        }
    }

    /// Nothing comes any more.
    func finish() {
        let listeners = state.withLock { state in
            state.isOver = true
            defer { state.listeners = [] }
            return state.listeners
        }
        for listener in listeners { listener.mailbox?.finish() }
    }
}

// MARK: - What one listener has still to hear

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
