// The table of shared fetches: who leads, who waits, who is turned away, and what leaves with the last one.

import HTTPCaching
import HTTPWire
import Policies
import Synchronization
import Testing

@testable import DownloadCore

@Suite(.timeLimit(.minutes(5)))
struct SharedFetchTableTests {
    private final class Heard: Sendable {
        let actions = Mutex<[SharedFetchState.Actions]>([])
        var all: [SharedFetchState.Actions] { actions.withLock { $0 } }
    }

    private static func ask(_ rig: Rig, _ abort: AbandonmentPolicy = .abort, waiters: Int = 9) -> CacheRequest {
        var ask = rig.ask(collapse: CollapseLimits(waiters: waiters))
        ask.onClientAbort = abort
        return ask
    }

    @Test("the first leads, as many wait as may, the next is turned away")
    func admissions() async throws {
        try await withRig { rig in
            let underWay = UnderWay()
            let table = SharedFetchTable(underWay)
            let ask = Self.ask(rig, waiters: 1)
            guard case .leader(let fetch) = table.join(ask, known: nil),
                case .waiter(let same) = table.join(ask, known: nil), case .full = table.join(ask, known: nil)
            else {
                Issue.record("another place")
                return
            }
            #expect(same === fetch && table.count(of: ask.key) == 1 && underWay.count == 1)
            #expect(table.beginBehind(ask, known: nil) == nil, "one is under way")
            table.end(fetch)
            table.end(fetch)
            #expect(table.count(of: ask.key) == 0 && underWay.count == 0)
        }
    }

    @Test("the last one that waits tells the runner; who comes a moment later begins anew")
    func lastWaiterLeaves() async throws {
        try await withRig { rig in
            let table = SharedFetchTable(UnderWay())
            let ask = Self.ask(rig)
            let heard = Heard()
            guard case .leader(let fetch) = table.join(ask, known: nil), case .waiter = table.join(ask, known: nil)
            else {
                Issue.record("another place")
                return
            }
            fetch.connect { actions in heard.actions.withLock { $0.append(actions) } }
            #expect(table.send(.leaderGone, to: fetch) == [])
            table.leave(fetch, isReading: false)
            #expect(heard.all == [[.unlist, .cancel, .reportAbandoned]])
            guard case .leader(let next) = table.join(ask, known: nil) else {
                Issue.record("it joined a fetch that ends")
                return
            }
            #expect(next !== fetch && table.count(of: ask.key) == 1)
        }
    }

    @Test("a key that is forgotten is not joined; who waits for its fetch goes on waiting")
    func forgotten() async throws {
        try await withRig { rig in
            let table = SharedFetchTable(UnderWay())
            let ask = Self.ask(rig, .finish)
            guard case .leader(let fetch) = table.join(ask, known: nil), case .waiter = table.join(ask, known: nil)
            else {
                Issue.record("another place")
                return
            }
            table.forget(ask.key)
            #expect(table.count(of: ask.key) == 0 && !fetch.state.isListed && fetch.state.waiters == 1)
            guard case .leader(let next) = table.join(ask, known: nil) else {
                Issue.record("it joined what is forgotten")
                return
            }
            // The end of the first one leaves the second in its place.
            table.end(fetch)
            #expect(next !== fetch && table.count(of: ask.key) == 1)
        }
    }

    @Test("a fetch that leaves its state first is not joined, although the table has it still")
    func unlisted() async throws {
        try await withRig { rig in
            let table = SharedFetchTable(UnderWay())
            let ask = Self.ask(rig)
            guard case .leader(let fetch) = table.join(ask, known: nil) else {
                Issue.record("another place")
                return
            }
            // As between the state's decision and the table's part of it.
            let actions = fetch.handle(.leaderGone)
            #expect(actions.contains(.unlist) && table.count(of: ask.key) == 1)
            guard case .leader(let next) = table.join(ask, known: nil) else {
                Issue.record("it joined a fetch that ends")
                return
            }
            table.carryOut(actions, on: fetch)
            #expect(next !== fetch && table.count(of: ask.key) == 1)
        }
    }

    @Test("whenever a fetch is found to be stopping for an operator, its outcome says so already")
    func stopped() async throws {
        try await withRig(loops: 2) { rig in
            let ask = Self.ask(rig, .finish)
            for _ in 0..<200 {
                let table = SharedFetchTable(UnderWay())
                let fetch = table.beginAlone(ask)
                // As the runner does whose head comes at that moment.
                let runner = Task.detached {
                    while fetch.state.phase == .asking { await Task.yield() }
                    fetch.outcome.set(.failed(.cancelled))
                }
                table.stop(fetch, .stopped("by an operator"))
                await runner.value
                guard case .failed(.stopped)? = fetch.outcome.value else {
                    Issue.record("another outcome was first")
                    return
                }
                #expect(fetch.state.phase == .stopping)
            }
        }
    }
}
