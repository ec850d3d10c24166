// The table of features: each member of what a route is made of says which short ways go on with it.

import DemoMode
import HTTPCaching
import Policies
import Testing

@testable import ServiceCore

@Suite struct RouteFeatureTests {
    private static let service = ServicePlan(
        name: "s",
        origin: OriginAddress(scheme: "http", host: "a.test", port: nil, basePath: "")
    )

    private static func members(of whole: Any, _ prefix: String = "") -> Set<String> {
        Set(Mirror(reflecting: whole).children.compactMap { $0.label.map { prefix + $0 } })
    }

    /// What only finds a route, holds the others, or is made of them.
    private static let noSettings: Set<String> = [
        "name", "request", "endpoint", "endpoints", "paths", "plan", "label", "runtime", "demoState", "ordinals",
        "prefix",
        "host", "hosts", "inner", "answersItself", "isAskedInSecret", "rewriting", "rewritings", "keysHost",
        "address", "keyPrefix",
        "keyRoot", "itself", "headFormatIDs", "hotKey", "order", "openWays", "readyDemo",
        "passThrough", "directRules",
        "isShaped", "keyLines", "number", "demo.name", "demo.lastTurn",
    ]

    @Test func eachMemberSaysWhichWaysGoOnWithIt() {
        let route = ServiceRoute(
            plan: Self.service,
            runtime: ServiceRuntime(name: "s", limits: AdmissionLimits()),
            via: "1.1 dock"
        )
        let whole = RequestPlan()
        var members = Self.members(of: whole).subtracting(["policies", "policy", "key"])
        members.formUnion(Self.members(of: whole.policies))
        members.formUnion(Self.members(of: whole.policy, "policy."))
        members.formUnion(Self.members(of: whole.key, "key."))
        members.formUnion(Self.members(of: Self.service))
        members.formUnion(Self.members(of: route))
        members.formUnion(Self.members(of: route.itself))
        members.formUnion(Self.members(of: DemoPlan(name: "s", rules: []), "demo."))
        let names = RouteFeature.all.map(\.name)
        #expect(names.count == Set(names).count, "a feature has two rows")
        #expect(
            members.subtracting(names).subtracting(Self.noSettings).sorted() == [],
            "say in RouteFeature.swift which ways go on with it"
        )
        #expect(Self.noSettings.subtracting(members).sorted() == [])
        // What is asked of the only rule of a demo plan is no member of the plan.
        #expect(Set(names).subtracting(members).sorted() == ["demo.failure", "demo.status"])
    }

    @Test func aPlainRouteIsOpenToEachWay() {
        #expect(RouteFacts(request: RequestPlan(), service: Self.service).openWays == .all)
    }

    @Test func aFeatureClosesTheWaysThatDoNotGoOnWithIt() {
        var facts = RouteFacts(request: RequestPlan(), service: Self.service)
        facts.request.policies.logBodies = 1
        #expect(facts.openWays == .earlyDraw)
        facts.request.policies.retry.count = 1
        #expect(facts.openWays == [])
    }
}
