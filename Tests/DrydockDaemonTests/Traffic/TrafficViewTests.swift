// The picture of `drydock top`, and the rates that it shows; the query of the stream.

import HTTPWire
import ProxyServer
import ServiceCore
import Testing

@testable import DrydockDaemon

@Suite struct TrafficViewTests {
    private static func service(_ name: String, _ factor: Int) -> AdminTraffic.Service {
        var service = AdminTraffic.Service(name: name)
        service.count(.hit, 2, 80 * factor)
        service.count(.miss, 2, 15 * factor)
        service.count(.error, 5, 5 * factor)
        service.bytes = 1_000_000 * factor
        service.originBytes = 200_000 * factor
        service.originRequests = 20 * factor
        service.originErrors = 5 * factor
        service.firstByte[0] = 80 * factor
        service.firstByte[5] = 20 * factor
        (service.fetches, service.waiting, service.parked) = (3, 2, 1)
        return service
    }

    private static func traffic(_ uptime: Double, _ services: [AdminTraffic.Service]) -> AdminTraffic {
        AdminTraffic(
            uptime: uptime,
            bounds: TimeHistogram.bounds.map { Double($0) / 1e9 },
            services: services,
            connections: 127,
            fills: 3,
            memory: 48 << 20,
            memoryLimit: 64 << 20,
            disk: 12 << 28,
            diskLimit: 10 << 30,
            isOffline: false
        )
    }

    private static var rates: (rates: TrafficRates, now: AdminTraffic) {
        var away = service("away", 4)
        away.breaker = "open"
        let now = traffic(7_300, [service("api", 3), away, AdminTraffic.Service(name: "")])
        return (TrafficRates(from: traffic(7_290, [service("api", 1)]), to: now), now)
    }

    @Test func `rates are what has come since, by the second`() throws {
        let (rates, _) = Self.rates
        #expect(rates.interval == 10 && rates.services.map(\.name) == ["api", "away", ""])
        let api = rates.services[0]
        #expect(api.answers == 20 && api.saved == 160_000 && api.originRequests == 4 && api.originErrors == 1)
        #expect(api.hitRatio == 0.8 && api.failureRatio == 0.05)
        // States are not differences.
        #expect(api.fetches == 3 && api.waiting == 2 && api.parked == 1)
        let percentiles = try #require(api.percentiles)
        #expect(percentiles[0] <= 0.0005 && percentiles[1] > 0.05 && percentiles[2] < 0.1)
        #expect(rates.all.answers == 60 && rates.all.waiting == 4)
        #expect(rates.services[2].hitRatio == nil && rates.services[2].percentiles == nil)
        // A daemon that has begun anew has no past.
        let anew = TrafficRates(
            from: Self.traffic(5_000, [Self.service("api", 9)]),
            to: Self.traffic(10, [Self.service("api", 1)])
        )
        #expect(anew.interval == 10 && anew.all.answers == 10)
    }

    @Test func `80 columns`() {
        let (rates, now) = Self.rates
        let lines = TrafficView().lines(rates, now, version: "1.2.3", width: 80, height: 24)
        #expect(
            lines == [
                "drydock 1.2.3  up 2h  127 connections  by requests",
                "60 requests/s  80% hits  5% failures  469K/s saved (80%)",
                "fetches 6  fills 3  waiting 4  parked 2  breakers open 1",
                "memory 48M of 64M  disk 3.0G of 10G",
                "",
                "SERVICE              REQ/S   HIT   5XX    P50    P95    P99  SAVED/S FETCH  WAIT",
                "away                    40   80%    5%  0.3ms   88ms   98ms     313K     3     2",
                "api                     20   80%    5%  0.3ms   88ms   98ms     156K     3     2",
                "(none)                   0     -     -      -      -      -       0B     0     0",
            ]
        )
        #expect(lines.allSatisfy { $0.count <= 80 })
    }

    @Test func `200 columns`() {
        let (rates, now) = Self.rates
        let lines = TrafficView().lines(rates, now, version: "1.2.3", width: 200, height: 24)
        #expect(
            lines[5].split(separator: " ") == [
                "SERVICE", "REQ/S", "HIT", "5XX", "P50", "P95", "P99", "SAVED/S", "FETCH", "WAIT", "SENT/S", "ORIGIN/S",
                "ORIGERR/S", "RETRIES/S", "REFUSED/S", "PARKED", "BREAKER",
            ]
        )
        #expect(lines[6].hasSuffix(" 8.0       2.0         0         0      1      open"), "\(lines[6])")
        #expect(lines[5].count == 200 && lines[6].count == 200)
    }

    @Test(arguments: [20, 40, 80, 81, 200, 500])
    func `no line is longer than the terminal, and none is behind its end`(width: Int) {
        let (rates, now) = Self.rates
        for height in [1, 3, 7, 8, 9, 24] {
            let lines = TrafficView().lines(rates, now, version: "1.2.3", width: width, height: height)
            #expect(lines.count <= height && lines.allSatisfy { $0.count <= width })
        }
        let short = TrafficView().lines(rates, now, version: "1.2.3", width: width, height: 8)
        #expect(short.last == "... 2 more" && short[6].hasPrefix("away"))
    }

    @Test func `sorted and filtered`() {
        let (rates, _) = Self.rates
        func names(_ change: (inout TrafficView) -> Void) -> [String] {
            var view = TrafficView()
            change(&view)
            return view.shown(rates.services).map(\.name)
        }
        #expect(names { _ in } == ["away", "api", ""])
        #expect(names { $0.isReversed = true } == ["", "api", "away"])
        #expect(names { $0.order = .name } == ["", "api", "away"])
        #expect(names { $0.filter = "ap" } == ["api"])
        for order in [TrafficView.Order.hits, .errors, .time, .waiting] {
            #expect(names { $0.order = order } == ["api", "away", ""], "\(order)")
        }
        #expect(names { $0.order = .saved } == ["away", "api", ""])
    }

    @Test func `numbers have three digits`() {
        #expect(
            [0, 0.04, 0.06, 9.94, 12.4, 999, 12_345, 20_000_000].map(TrafficView.number) == [
                "0", "0", "0.1", "9.9", "12", "999", "12k", "20M",
            ]
        )
        #expect([0, 0.001, 0.5, 0.996, 1].map(TrafficView.percent) == ["0%", "<1%", "50%", "99%", "100%"])
        #expect(
            [0, 999, 1_000, 10_240, 1_048_576, 3e12].map(TrafficView.size) == [
                "0B", "999B", "1.0K", "10K", "1.0M", "2.7T",
            ]
        )
        #expect(
            [0.0004, 0.02, 1.5, 60, 600, 8_000, 200_000].map(TrafficView.time) == [
                "0.4ms", "20ms", "1.5s", "60s", "10m", "2h", "2d",
            ]
        )
    }

    @Test func `the query of the stream`() throws {
        let query = try TrafficQuery(members: [
            ("follow", ""), ("as", "text"), ("service", "api"), ("status", "5xx"), ("outcome", "hit"), ("url", "/a"),
            ("client", "::1"),
        ])
        #expect(query.follows && query.isText && query.filter.status == 500...599 && query.filter.outcome == .hit)
        #expect(try TrafficQuery(members: [("follow", ""), ("status", "404")]).filter.status == 404...404)
        #expect(try TrafficQuery(members: [("follow", ""), ("client", "unix")]).filter.client == "unix")
        #expect(try !TrafficQuery(members: []).follows)
        for members in [
            [("follow", "x")], [("follow", ""), ("follow", "")], [("follow", ""), ("status", "6xx")],
            [("follow", ""), ("status", "20x")], [("follow", ""), ("status", "99")], [("follow", ""), ("status", "")],
            [("follow", ""), ("outcome", "hits")], [("follow", ""), ("service", "")], [("service", "api")],
            [("follow", ""), ("as", "xml")], [("servce", "api")], [("follow", ""), ("client", "")],
            [("follow", ""), ("client", "laptop")], [("follow", ""), ("client", "127.0.0.1:80")],
        ] as [[(String, String)]] {
            #expect(throws: Problem.self, "\(members)") { try TrafficQuery(members: members) }
        }
    }
}
