// What demo answers remember: turns, scenarios, outages, and that many threads see one order.

import DemoMode
import HTTPWire
import Matching
import Policies
import Synchronization
import TestSupport
import Testing

@Suite struct DemoStateTests {
    static let second: UInt64 = 1_000_000_000

    static func rule(_ label: String, _ gate: RuleGate? = nil, counting: CountScope = .request) -> DemoRule {
        DemoRule(endpoint: "shop", label: label, gate: gate, counting: counting)
    }

    static func plan(_ rules: DemoRule...) -> DemoPlan { DemoPlan(name: "shop", rules: rules) }

    static func take(_ state: DemoState, _ plan: DemoPlan, _ target: String = "/a", at now: UInt64 = 0) -> String {
        let request = RequestParts(method: "GET", target: target, fields: Fields())
        return state.take(plan, request, key: Array("GET \(target)".utf8), now: now)?.rule.label ?? "none"
    }

    @Test(
        arguments: [
            (RuleTurn(nth: 3), [false, false, true, false, false, false, false]),
            (RuleTurn(first: 2), [true, true, false, false, false, false, false]),
            (RuleTurn(every: 3), [false, false, true, false, false, true, false]),
            (RuleTurn(first: 5, every: 2), [false, true, false, true, false, false, false]),
        ]
    )
    func turns(turn: RuleTurn, answers: [Bool]) {
        let plan = Self.plan(Self.rule("turn", RuleGate(turn: turn)), Self.rule("rest"))
        let state = DemoState(began: 0)
        #expect((0..<7).map { _ in Self.take(state, plan) == "turn" } == answers)
        // Another target counts for itself.
        #expect((0..<7).map { _ in Self.take(state, plan, "/b") == "turn" } == answers)
    }

    @Test func aRuleMayCountAllItsRequests() {
        let plan = Self.plan(Self.rule("turn", RuleGate(turn: RuleTurn(first: 2)), counting: .rule), Self.rule("rest"))
        let state = DemoState(began: 0)
        #expect(["/a", "/b", "/c", "/a"].map { Self.take(state, plan, $0) } == ["turn", "turn", "rest", "rest"])
        state.reset(now: 0)
        #expect(Self.take(state, plan, "/z") == "turn")
    }

    /// "The third request" is the third of the path, whatever rules before it have answered.
    @Test func aTurnCountsTheRequestsThatOtherRulesAnswer() {
        let plan = Self.plan(
            Self.rule("twice", RuleGate(turn: RuleTurn(first: 2))),
            Self.rule("third", RuleGate(turn: RuleTurn(nth: 3))),
            Self.rule("rest")
        )
        let state = DemoState(began: 0)
        #expect((0..<5).map { _ in Self.take(state, plan) } == ["twice", "twice", "third", "rest", "rest"])
        // A rule that answers without counting does not hide the request, and an outage counts what reaches it alone.
        let behind = Self.plan(
            DemoRule(endpoint: "shop", label: "x", condition: RequestCondition([.query("x", .present(true))])),
            Self.rule("out", RuleGate(outage: RuleOutage(requests: 1)), counting: .rule),
            Self.rule("turn", RuleGate(turn: RuleTurn(nth: 3)), counting: .rule),
            Self.rule("rest")
        )
        let targets = ["/b?x", "/b?x", "/b", "/b", "/b"]
        let other = DemoState(began: 0)
        #expect(targets.map { Self.take(other, behind, $0) } == ["x", "x", "out", "rest", "rest"])
    }

    @Test func onlyRequestsThatARuleIsForAreCounted() throws {
        let condition = RequestCondition([.query("x", .present(true))])
        let first = DemoRule(
            endpoint: "shop",
            label: "turn",
            condition: condition,
            gate: RuleGate(turn: RuleTurn(nth: 2)),
            counting: .rule
        )
        let plan = Self.plan(first, Self.rule("rest"))
        let state = DemoState(began: 0)
        let targets = ["/a?x", "/a", "/a", "/a?x", "/a?x"]
        #expect(targets.map { Self.take(state, plan, $0) } == ["rest", "rest", "rest", "turn", "rest"])
    }

    static func checkout() -> DemoPlan {
        func step(_ state: String, _ next: String?) -> RuleGate {
            RuleGate(step: ScenarioStep(scenario: "checkout", state: state, next: next))
        }
        return plan(
            rule("pay", step("started", "paid")),
            rule("ship", step("paid", "shipped")),
            rule("done", step("shipped", nil))
        )
    }

    @Test func scenariosGoFromStateToState() {
        let (plan, state) = (Self.checkout(), DemoState(began: 0))
        state.keep(plan.scenarios)
        #expect(state.scenarios == ["checkout": "started"])
        #expect((0..<4).map { _ in Self.take(state, plan) } == ["pay", "ship", "done", "done"])
        #expect(state.scenarios == ["checkout": "shipped"])
        #expect(state.set("checkout", to: "paid") && Self.take(state, plan) == "ship")
        #expect(!state.set("nobody", to: "paid"))
        #expect(state.set("checkout", to: "lost") && Self.take(state, plan) == "none")
        let request = RequestParts(method: "GET", target: "/a", fields: Fields())
        let nearest = state.nearMisses(plan, request, key: [], now: 0)
        #expect(nearest.first?.description == "pay: scenario checkout is 'lost', not 'started'")
        state.reset(now: 0)
        #expect(state.scenarios == ["checkout": "started"])
    }

    @Test func aResetGivesCollectionsBackWhatTheirFilesHave() throws {
        let state = DemoState(began: 0)
        let file = DemoFile(path: "db.json", bytes: Array("[]".utf8), contentType: "application/json")
        let collection = try state.collections.collection(of: "shop", file, idName: "id", newIDs: .counting)
        #expect(collection.answer(CollectionRequest(method: "POST", target: "/", body: Array("{}".utf8))).status == 201)
        state.reset(now: 0)
        #expect(collection.answer(CollectionRequest(method: "GET", target: "/")).body == Array("[]".utf8))
    }

    @Test func aPlanThatTakesEffectKeepsWhatItKnows() {
        let (plan, state) = (Self.checkout(), DemoState(began: 0))
        state.keep(plan.scenarios)
        _ = Self.take(state, plan)
        state.keep(["checkout", "other"])
        #expect(state.scenarios == ["checkout": "paid", "other": "started"])
        state.keep(["other"])
        #expect(state.scenarios == ["other": "started"])
        state.keep(plan.scenarios)
        #expect(state.scenarios == ["checkout": "started"])
    }

    /// A ring of states: whatever the threads do, each state is left once per round, and no request finds none.
    @Test func transitionsAreAtomic() throws {
        let rules = (0..<5).map { number in
            let state = number == 0 ? "started" : "s\(number)"
            let next = number == 4 ? "started" : "s\(number + 1)"
            return Self.rule("r\(number)", RuleGate(step: ScenarioStep(scenario: "ring", state: state, next: next)))
        }
        let (plan, state) = (DemoPlan(name: "shop", rules: rules), DemoState(began: 0))
        let labels = try Threads.run(8) { _ in (0..<500).map { _ in Self.take(state, plan) } }.joined()
        for number in 0..<5 { #expect(labels.count { $0 == "r\(number)" } == 800) }
    }

    @Test func turnsOfManyThreadsAreGivenOnce() throws {
        let plan = Self.plan(Self.rule("turn", RuleGate(turn: RuleTurn(every: 10))), Self.rule("rest"))
        let state = DemoState(began: 0)
        let labels = try Threads.run(8) { _ in (0..<500).map { _ in Self.take(state, plan) } }.joined()
        #expect(labels.count { $0 == "turn" } == 400)
    }

    @Test(
        arguments: [
            (
                RuleOutage(after: 30 * second, duration: 10 * second, every: 60 * second), [30, 39, 90, 99, 150],
                [0, 29, 40, 89, 100]
            ),
            (RuleOutage(after: 5 * second), [5, 6, 1000], [0, 4]),
            (RuleOutage(duration: 5 * second), [0, 4], [5, 1000]),
            (RuleOutage(after: 10 * second, duration: 1 * second), [10], [9, 11, 70]),
        ]
    )
    func outagesHaveTheirTimes(outage: RuleOutage, within: [UInt64], outside: [UInt64]) {
        let plan = Self.plan(Self.rule("outage", RuleGate(outage: outage)), Self.rule("rest"))
        let state = DemoState(began: 7 * Self.second)
        for time in within { #expect(Self.take(state, plan, at: (time + 7) * Self.second) == "outage", "\(time)") }
        for time in outside { #expect(Self.take(state, plan, at: (time + 7) * Self.second) == "rest", "\(time)") }
        state.reset(now: 1007 * Self.second)
        for time in within { #expect(Self.take(state, plan, at: (time + 1007) * Self.second) == "outage", "\(time)") }
    }

    @Test func outagesMayCountRequests() {
        let outage = RuleOutage(afterRequests: 2, requests: 3)
        let plan = Self.plan(Self.rule("outage", RuleGate(outage: outage)), Self.rule("rest"))
        let state = DemoState(began: 0)
        let labels = (0..<7).map { Self.take(state, plan, "/\($0)") }
        #expect(labels == ["rest", "rest", "outage", "outage", "outage", "rest", "rest"])
    }

    @Test func sequencesOfARuleHaveOneOrder() {
        let answers = [1, 2, 3].map { DemoAnswer(status: 200 + $0) }
        let sequence = DemoRule(endpoint: "job", counting: .rule, choice: .sequence(answers, after: .last))
        let (plan, state) = (DemoPlan(sequence), DemoState(began: 0))
        let positions = ["/a", "/b", "/a"].map { target in
            state.take(
                plan,
                RequestParts(method: "GET", target: target, fields: Fields()),
                key: Array(target.utf8),
                now: 0
            )?.position
        }
        #expect(positions == [0, 1, 2])
    }

    @Test func whatIsAskedForAnExplanationChangesNothing() {
        let (plan, state) = (Self.checkout(), DemoState(began: 0))
        let request = RequestParts(method: "GET", target: "/a", fields: Fields())
        let turn = Self.plan(Self.rule("turn", RuleGate(turn: RuleTurn(nth: 2))))
        for _ in 0..<3 {
            #expect(state.differences(plan.rules[0], request, key: [], now: 0).isEmpty)
            #expect(
                state.differences(plan.rules[1], request, key: [], now: 0) == [
                    "scenario checkout is 'started', not 'paid'"
                ]
            )
            #expect(state.differences(turn.rules[0], request, key: [], now: 0) == ["request 1 is not nth 2"])
        }
    }
}
