// The bound on series by service: what is folded into `other`, and that no sum is lost.

import Testing

@testable import DrydockDaemon
@testable import ProxyServer
@testable import ServiceCore

@Suite struct SeriesBudgetTests {
    @Test func `what is shown stays, and what has no room never comes`() {
        let budget = SeriesBudget(limit: 10)
        #expect(budget.admits("a", count: 6))
        #expect(!budget.admits("b", count: 5))
        #expect(budget.admits("c", count: 4))
        #expect(budget.admits("a", count: 6) && !budget.admits("b", count: 5) && !budget.admits("d", count: 1))
        #expect(budget.foldedCount == 2)
    }

    /// The answers of many services, each with hits of its own and a miss.
    private static func totals(_ numbers: RouteNumbers, services: Int) -> AnswerTotals {
        let countsLoop = LoopCounters()
        let counts = countsLoop.answers
        defer { withExtendedLifetime(countsLoop) {} }
        for service in 0..<services {
            let number = numbers.number(service: "service-\(service)", endpoint: "e")
            for _ in 0...service {
                counts.addWhole(
                    AnswerKind(number: number, outcome: .hit, tier: .memory, status: 200),
                    bytes: 3,
                    took: 1_000
                )
            }
            counts.addWhole(AnswerKind(number: number, outcome: .miss, tier: .none, status: 200), bytes: 3, took: 1_000)
        }
        return counts.totals
    }

    private static func sum(_ family: MetricFamily?) -> UInt64 {
        family?.series.reduce(0) { sum, series in
            switch series.value {
            case .count(let count): sum + count
            case .histogram(let histogram): sum + histogram.count
            case .integer, .number: sum
            }
        } ?? 0
    }

    @Test(arguments: [1, 10, 100, 400])
    func `no answer is lost, the most frequent are shown, and the whole is bounded`(services: Int) throws {
        let numbers = RouteNumbers()
        let totals = Self.totals(numbers, services: services)
        let budget = SeriesBudget()
        let maker = AnswerFamilies(names: numbers.names, budget: budget)
        let families = maker.families(totals)
        let answers = UInt64(services * (services + 1) / 2 + services)
        for name in ["drydock_requests_total", "drydock_first_byte_seconds", "drydock_request_duration_seconds"] {
            #expect(Self.sum(families.first { $0.name == name }) == answers, "\(name)")
        }
        #expect(Self.sum(families.first { $0.name == "drydock_answer_bytes_total" }) == 3 * answers)
        let text = MetricsText.render(families, .text)
        #expect(text.split(separator: "\n").count { !$0.hasPrefix("#") } <= SeriesBudget.most + 2 * 14 * 12)
        // No two series have the same labels.
        let names = text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { $0.prefix { $0 != " " } }
        #expect(Set(names).count == names.count)
        #expect(text.contains("service=\"other\"") == (services >= 100))
        #expect(
            text.contains("drydock_request_duration_seconds_count{service=\"service-\(services - 1)\",outcome=\"hit\"}")
        )
        #expect((budget.foldedCount > 0) == (services >= 100))
        // What was shown is shown again, with at least as much.
        #expect(MetricsText.render(maker.families(totals), .text) == text)
    }

    @Test func `a service that is called other shares its series with what is folded`() {
        let numbers = RouteNumbers()
        let countsLoop = LoopCounters()
        let counts = countsLoop.answers
        defer { withExtendedLifetime(countsLoop) {} }
        for service in ["other", "late"] {
            let number = numbers.number(service: service, endpoint: "")
            counts.addWhole(AnswerKind(number: number, outcome: .hit, tier: .memory, status: 200), bytes: 1, took: 1)
        }
        let families = AnswerFamilies(names: numbers.names, budget: SeriesBudget(limit: 0)).families(counts.totals)
        #expect(families[0].series.count == 1 && families[0].series[0].value == .count(2))
        #expect(families[0].series[0].labels.map(\.value) == ["other", "", "hit", "memory", "2xx"])
    }

    @Test func `origins are told by what their answers were`() {
        let budget = SeriesBudget(limit: 33)
        func figures(_ results: [OriginResult]) -> OriginFigures.Values {
            let figures = OriginFigures()
            for result in results {
                figures.begin()
                figures.add(result, connecting: nil, firstByte: 1_000)
            }
            return figures.values
        }
        let families = OriginFamilies(budget: budget).families([
            ("a", figures([.success, .success, .timeout])), ("b", figures([.success])), ("c", figures([.cut])),
            ("silent", figures([])),
        ])
        let text = MetricsText.render(families, .text)
        #expect(text.contains("drydock_origin_requests_total{service=\"a\",result=\"2xx\"} 2\n"))
        #expect(text.contains("drydock_origin_requests_total{service=\"a\",result=\"timeout\"} 1\n"))
        #expect(text.contains("drydock_origin_requests_total{service=\"b\",result=\"2xx\"} 1\n"))
        #expect(text.contains("drydock_origin_first_byte_seconds_count{service=\"other\"} 2\n"))
        #expect(!text.contains("silent") && !text.contains("service=\"c\",le"))
    }
}
