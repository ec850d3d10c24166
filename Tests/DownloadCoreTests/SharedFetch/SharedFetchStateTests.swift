// Every event in every state of a shared fetch, what holds in all states, and the order of events that once went wrong.

import Testing

@testable import DownloadCore

struct SharedFetchStateTests {
    typealias State = SharedFetchState
    typealias Event = SharedFetchState.Event
    typealias Actions = SharedFetchState.Actions

    private static func state(isLed: Bool = true, isListed: Bool = true, endsUnawaited: Bool = true) -> State {
        State(isLed: isLed, isListed: isListed, endsUnawaited: endsUnawaited)
    }

    // MARK: - Every event in every state

    /// The states of the table, in the order of its columns.
    private static let columns: [State] = [
        state(),
        state().after(.headCame(isStored: true), .leaderAnswered),
        state().after(.headCame(isStored: false), .leaderAnswered),
        state().after(.headCame(isStored: true), .leaderAnswered, .bodyCame),
        state().after(.stopped),
        state().after(.ended),
    ]

    private static let phases: [State.Phase] = [
        .asking, .flowing(isStored: true), .flowing(isStored: false), .storing, .stopping, .ended,
    ]

    /// What an event leads to: its actions, and the phase where that is another.
    struct Cell {
        var actions: Actions
        var phase: State.Phase?

        init(_ actions: Actions, _ phase: State.Phase? = nil) {
            self.actions = actions
            self.phase = phase
        }
    }

    private static let none = Cell([])

    private static let table: [(event: Event, cells: [Cell])] = [
        (.joined(limit: 1), [Cell(.wait), Cell(.wait), none, Cell(.wait), none, none]),
        (.joined(limit: 0), [Cell(.turnAway), Cell(.turnAway), none, Cell(.turnAway), none, none]),
        // Nobody waits: there is nobody to leave.
        (.waiterLeft(isReading: false), [none, none, none, none, none, none]),
        (.waiterLeft(isReading: true), [none, none, none, none, none, none]),
        (.leaderAnswered, [none, none, none, none, none, none]),
        (.leaderGone, [Cell([.unlist, .cancel, .reportAbandoned], .stopping), none, none, none, none, none]),
        (.wanted, [none, none, none, none, none, none]),
        (.readerOpened, [none, none, none, none, none, none]),
        (
            .headCame(isStored: true),
            [
                Cell(.publish, .flowing(isStored: true)), Cell(.cancel), Cell(.cancel), Cell(.cancel), Cell(.cancel),
                Cell(.cancel),
            ]
        ),
        (
            .headCame(isStored: false),
            [
                Cell([.publish, .unlist, .endUnderWay], .flowing(isStored: false)), Cell(.cancel), Cell(.cancel),
                Cell(.cancel), Cell(.cancel), Cell(.cancel),
            ]
        ),
        // A tier takes the body.
        (.unread(opened: 1, mayEnd: false, isKept: true), [none, none, Cell(.cancel, .stopping), none, none, none]),
        (
            .unread(opened: 1, mayEnd: false, isKept: false),
            [
                none, Cell([.unlist, .cancel, .noteUnkept, .removeOutdated], .stopping), Cell(.cancel, .stopping), none,
                none, none,
            ]
        ),
        (
            .unread(opened: 1, mayEnd: true, isKept: true),
            [none, Cell([.unlist, .cancel, .reportAbandoned], .stopping), Cell(.cancel, .stopping), none, none, none]
        ),
        (
            .unread(opened: 1, mayEnd: true, isKept: false),
            [none, Cell([.unlist, .cancel, .reportAbandoned], .stopping), Cell(.cancel, .stopping), none, none, none]
        ),
        // A reader was opened since the look.
        (.unread(opened: 0, mayEnd: true, isKept: false), [none, none, Cell(.cancel, .stopping), none, none, none]),
        (.bodyCame, [none, Cell([], .storing), none, none, none, none]),
        (
            .stopped,
            [
                Cell([.unlist, .cancel], .stopping), Cell([.unlist, .cancel], .stopping), Cell(.cancel, .stopping),
                Cell(.unlist), none, none,
            ]
        ),
        (.waitersDropped, [Cell(.dropWaiters), none, none, none, none, none]),
        (.forgotten, [Cell(.unlist), Cell(.unlist), none, Cell(.unlist), none, none]),
        (
            .ended,
            [
                Cell([.unlist, .endUnderWay], .ended), Cell([.unlist, .endUnderWay], .ended), Cell([], .ended),
                Cell([.unlist, .endUnderWay], .ended), Cell(.endUnderWay, .ended), none,
            ]
        ),
    ]

    @Test("every event in every phase", arguments: Self.table.indices)
    func everyEvent(_ row: Int) {
        let (event, cells) = Self.table[row]
        #expect(cells.count == Self.columns.count)
        for (start, (phase, cell)) in zip(Self.columns, zip(Self.phases, cells)) {
            #expect(start.phase == phase)
            var state = start
            let actions = state.handle(event)
            #expect(actions == cell.actions, "\(event) in \(phase)")
            #expect(state.phase == cell.phase ?? phase, "\(event) in \(phase)")
        }
    }

    @Test("what an event changes besides the phase")
    func fields() {
        #expect(Self.state().after(.joined(limit: 9), .joined(limit: 9)).waiters == 2)
        #expect(Self.state().after(.joined(limit: 9), .waiterLeft(isReading: false)).waiters == 0)
        #expect(Self.state().isLed && !Self.state().after(.leaderAnswered).isLed)
        #expect(!Self.state().after(.leaderGone).isLed)
        #expect(Self.state().after(.wanted).isWanted)
        #expect(Self.state().after(.waitersDropped).isWanted, "the fetch goes on without them")
        #expect(Self.state(isLed: false).isWanted, "a refresh behind an answer goes on by itself")
        #expect(Self.state().after(.headCame(isStored: true)).readersOpened == 1, "the leader's")
        #expect(Self.state(isLed: false).after(.headCame(isStored: true)).readersOpened == 0)
        #expect(Self.state().after(.headCame(isStored: true), .readerOpened).readersOpened == 2)
        #expect(!Self.state().after(.forgotten).isListed)
        #expect(!Self.state().after(.headCame(isStored: false)).isListed)
    }

    // MARK: - What holds in every state

    private static let events: [Event] =
        [
            .joined(limit: 2), .waiterLeft(isReading: false), .waiterLeft(isReading: true), .leaderAnswered,
            .leaderGone, .wanted, .headCame(isStored: true), .headCame(isStored: false), .bodyCame, .stopped,
            .waitersDropped, .forgotten, .ended,
        ]
        + [0, 1, 2].flatMap { opened in
            [(false, false), (false, true), (true, false), (true, true)].map { mayEnd, isKept in
                .unread(opened: opened, mayEnd: mayEnd, isKept: isKept)
            }
        }

    /// Every state that events lead to, with at most two readers.
    private static func reachable(from start: State) -> [State] {
        var (found, next) = ([start], 0)
        while next < found.count {
            let state = found[next]
            next += 1
            let more = state.readersOpened < 2 ? events + [.readerOpened] : events
            for event in more {
                let after = state.after(event)
                if after.readersOpened <= 2, !found.contains(after) { found.append(after) }
            }
        }
        return found
    }

    @Test("what holds in every state that events lead to", arguments: [false, true], [false, true])
    func invariants(_ isLed: Bool, _ endsUnawaited: Bool) {
        var count = 0
        for isListed in [false, true] {
            for state in Self.reachable(
                from: Self.state(isLed: isLed, isListed: isListed, endsUnawaited: endsUnawaited)
            ) {
                count += 1
                Self.check(state)
            }
        }
        #expect(count > 50)
    }

    private static func check(_ state: State) {
        let isOver = state.phase == .stopping || state.phase == .ended
        if isOver || state.phase == .flowing(isStored: false) { #expect(!state.isListed, "\(state)") }
        if state.phase == .ended { #expect(!state.isUnderWay, "\(state)") }
        for event in events {
            var after = state
            let actions = after.handle(event)
            let label = "\(event) in \(state)"
            // Whoever acts on these does so once.
            #expect(actions.contains(.unlist) == (state.isListed && !after.isListed), "\(label)")
            #expect(actions.contains(.endUnderWay) == (state.isUnderWay && !after.isUnderWay), "\(label)")
            #expect(!after.isListed || state.isListed, "nothing comes back: \(label)")
            if actions.contains(.wait) { #expect(state.isListed && after.waiters == state.waiters + 1, "\(label)") }
            if actions.contains(.publish) { #expect(state.phase == .asking, "\(label)") }
            // Only an operator cuts off whoever waits for what may be theirs, or may have begun to read.
            if actions.contains(.cancel), event != .stopped, state.phase == .flowing(isStored: true), after != state {
                #expect(after.waiters == 0, "\(label)")
                if case .unread(let opened, _, _) = event { #expect(opened == state.readersOpened, "\(label)") }
            }
            if actions.contains(.reportAbandoned) {
                #expect(actions.contains(.cancel) && after.waiters == 0 && !after.isLed && !after.isWanted, "\(label)")
            }
            if state.phase == .ended { #expect(after.phase == .ended, "\(label)") }
        }
    }

    // MARK: - The order of events that once went wrong

    /// All orders of two sequences, each in its own order.
    private static func interleavings<Step>(_ first: [Step], _ second: [Step]) -> [[Step]] {
        guard let one = first.first, let other = second.first else { return [first + second] }
        return interleavings(Array(first.dropFirst()), second).map { [one] + $0 }
            + interleavings(first, Array(second.dropFirst())).map { [other] + $0 }
    }

    private enum Step { case opensReader, tellsOfIt, leaves, takesNumber, countsReaders, judges }

    @Test(
        "a waiter that becomes a reader while the fetch is about to end for want of readers is not cut off",
        arguments: [true, false],
        [true, false]
    )
    func waiterBecomesReader(_ mayEnd: Bool, _ isKept: Bool) {
        let orders = Self.interleavings(
            [Step.opensReader, .tellsOfIt, .leaves],
            [Step.takesNumber, .countsReaders, .judges]
        )
        #expect(orders.count == 20)
        for order in orders {
            // The leader has read, and has left; a request waits.
            var state = Self.state().after(.headCame(isStored: true), .leaderAnswered, .joined(limit: 9))
            var (inBody, opened, isUnread) = (0, 0, false)
            for step in order {
                switch step {
                case .opensReader: inBody += 1
                case .tellsOfIt: _ = state.handle(.readerOpened)
                case .leaves: #expect(state.handle(.waiterLeft(isReading: true)) == [])
                case .takesNumber: opened = state.readersOpened
                case .countsReaders: isUnread = inBody == 0
                case .judges:
                    guard isUnread else { continue }
                    let actions = state.handle(.unread(opened: opened, mayEnd: mayEnd, isKept: isKept))
                    #expect(!actions.contains(.cancel), "\(order)")
                }
            }
            #expect(state.phase == .flowing(isStored: true), "\(order)")
            // When that reader leaves, too, the next look ends what nobody needs.
            let last = state.handle(.unread(opened: state.readersOpened, mayEnd: mayEnd, isKept: isKept))
            #expect(last.contains(.cancel) == (mayEnd || !isKept))
        }
    }

    @Test("a fetch ends with the last of those who wait for its head, in whatever order they leave")
    func lastOneLeaves() {
        let leaving: [Event] = [.leaderGone, .waiterLeft(isReading: false), .waiterLeft(isReading: false)]
        for first in leaving.indices {
            for endsUnawaited in [true, false] {
                var order = leaving
                order.swapAt(0, first)
                var state = Self.state(endsUnawaited: endsUnawaited).after(.joined(limit: 9), .joined(limit: 9))
                for event in order.dropLast() { #expect(state.handle(event) == []) }
                let end: Actions = endsUnawaited ? [.unlist, .cancel, .reportAbandoned] : []
                #expect(state.handle(order[2]) == end)
                let next: Actions = endsUnawaited ? [] : .wait
                #expect(state.handle(.joined(limit: 9)) == next, "it is joined no more once it ends")
            }
        }
    }

    @Test("a fetch for one client alone ends with it before the head, whatever the route says, and unreported")
    func alone() {
        for endsUnawaited in [true, false] {
            var state = Self.state(isListed: false, endsUnawaited: endsUnawaited)
            #expect(state.handle(.leaderGone) == .cancel)
            // Once the body flows, its reader tells.
            var flowing = Self.state(isListed: false, endsUnawaited: endsUnawaited).after(.headCame(isStored: true))
            #expect(flowing.handle(.leaderGone) == [] && flowing.phase == .flowing(isStored: true))
        }
        // Invalidated meanwhile, but somebody waits.
        var shared = Self.state(endsUnawaited: false).after(.joined(limit: 9), .forgotten)
        #expect(shared.handle(.leaderGone) == [])
    }

    @Test("what no tier keeps ends where the leader left before the body, once nobody waits")
    func leaderLeftBeforeTheBody() {
        let look = Event.unread(opened: 0, mayEnd: false, isKept: false)
        var state = Self.state(endsUnawaited: false).after(.leaderGone, .headCame(isStored: true))
        #expect(state.phase == .flowing(isStored: true))
        #expect(state.handle(look) == [.unlist, .cancel, .noteUnkept, .removeOutdated])
        // With one that waits, which then does not read.
        state = Self.state(endsUnawaited: false).after(.joined(limit: 9), .leaderGone, .headCame(isStored: true))
        #expect(state.handle(look) == .noteUnkept)
        #expect(state.handle(.waiterLeft(isReading: false)) == .checkReaders)
        #expect(state.handle(look).contains(.cancel))
    }

    @Test("what is not stored is read by the leader alone: without one it is not begun")
    func unstored() {
        var state = Self.state(endsUnawaited: false).after(.joined(limit: 9), .leaderGone)
        #expect(state.handle(.headCame(isStored: false)) == [.unlist, .cancel, .removeOutdated])
        #expect(state.phase == .stopping)
        // An operator was faster: nothing that is stored changes.
        state = Self.state(endsUnawaited: false).after(.joined(limit: 9), .leaderGone, .stopped)
        #expect(state.handle(.headCame(isStored: false)) == .cancel)
    }

    @Test("whoever got a 304, a range or a placeholder has not left: the fetch goes on")
    func served() {
        var state = Self.state().after(.headCame(isStored: true), .wanted, .leaderAnswered)
        #expect(state.handle(.unread(opened: 1, mayEnd: true, isKept: true)) == [])
        // Before the head, with one that waits and leaves.
        state = Self.state().after(.joined(limit: 9), .wanted, .leaderAnswered)
        #expect(state.handle(.waiterLeft(isReading: false)) == [])
        // No tier keeps it: then it ends all the same.
        state = Self.state().after(.headCame(isStored: true), .wanted, .leaderAnswered)
        #expect(state.handle(.unread(opened: 1, mayEnd: true, isKept: false)).contains(.cancel))
    }

    @Test("a refresh behind an answer goes on, whoever waits for it and leaves")
    func refresh() {
        var state = Self.state(isLed: false).after(.joined(limit: 9))
        #expect(state.handle(.waiterLeft(isReading: false)) == [])
        #expect(state.handle(.headCame(isStored: true)) == .publish)
        #expect(state.handle(.unread(opened: 0, mayEnd: true, isKept: true)) == [])
        // Nobody reads what is not stored.
        #expect(Self.state(isLed: false).after(.headCame(isStored: false)).phase == .stopping)
    }

    @Test("an operator's word counts from the moment it is given: nobody joins, and no head is published any more")
    func stopped() {
        var state = Self.state(endsUnawaited: false).after(.joined(limit: 9), .stopped)
        #expect(state.handle(.joined(limit: 9)) == [])
        #expect(state.handle(.headCame(isStored: true)) == .cancel)
        #expect(state.handle(.leaderGone) == [] && state.handle(.waiterLeft(isReading: false)) == [])
        #expect(state.handle(.ended) == .endUnderWay)
        // What has come as a whole is stored.
        let storing = Self.state().after(.headCame(isStored: true), .bodyCame, .stopped)
        #expect(storing.phase == .storing && !storing.isListed)
    }

    @Test("a fetch counts as under way until what it brought is stored, and no longer")
    func underWay() {
        var state = Self.state()
        for event in [Event.headCame(isStored: true), .leaderAnswered, .bodyCame, .stopped, .forgotten] {
            #expect(!state.handle(event).contains(.endUnderWay))
        }
        #expect(state.handle(.ended) == .endUnderWay)
        #expect(state.handle(.ended) == [])
    }
}

extension SharedFetchState {
    fileprivate func after(_ events: Event...) -> SharedFetchState {
        var state = self
        for event in events { _ = state.handle(event) }
        return state
    }
}
