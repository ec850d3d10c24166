// Numbers of routes, and durations in buckets.

import Policies
import Testing
import Upstream

@testable import ServiceCore

@Suite struct RouteNumberTests {
    @Test func `a route has one number, whenever it is asked for`() {
        let numbers = RouteNumbers()
        let users = numbers.number(service: "api", endpoint: "users")
        let whole = numbers.number(service: "api", endpoint: "")
        #expect(users.service == whole.row && whole.service == whole.row && users.row != whole.row)
        #expect(numbers.number(service: "api", endpoint: "users") == users)
        #expect(numbers.number(service: "shop", endpoint: "users").row != users.row)
        #expect(numbers.names[users.row] == RouteNumbers.Name(service: "api", endpoint: "users"))
        #expect(numbers.names[RouteNumber.none.row].service == "")
        #expect(numbers.names[RouteNumber.other.row] == .other)
        #expect(numbers.names[RouteNumber.connect.row].service == "connect")
    }

    @Test func `what finds no room is counted by its service, or as another`() {
        let numbers = RouteNumbers()
        let service = numbers.number(service: "api", endpoint: "")
        for index in 0..<2 * RouteNumbers.most {
            #expect(numbers.number(service: "api", endpoint: "e\(index)").row < RouteNumbers.most)
        }
        #expect(numbers.names.count == RouteNumbers.most / 2)
        #expect(numbers.number(service: "api", endpoint: "late") == service)
        // Endpoints leave room for services.
        let shop = numbers.number(service: "shop", endpoint: "e")
        #expect(shop.row == shop.service && numbers.names[shop.row].service == "shop")
        for index in 0..<RouteNumbers.most { _ = numbers.number(service: "s\(index)", endpoint: "") }
        #expect(numbers.names.count == RouteNumbers.most)
        #expect(numbers.number(service: "late", endpoint: "") == .other)
        #expect(numbers.number(service: "late", endpoint: "e") == .other)
        #expect(numbers.number(service: "api", endpoint: "") == service)
    }
}

@Suite struct TimeHistogramTests {
    @Test func `a bound belongs to its bucket`() {
        #expect(TimeHistogram.bounds.count == TimeHistogram.buckets - 1)
        #expect(TimeHistogram.bounds == TimeHistogram.bounds.sorted())
        #expect(TimeHistogram.bucket(of: 0) == 0)
        for (index, bound) in TimeHistogram.bounds.enumerated() {
            #expect(TimeHistogram.bucket(of: bound) == index)
            #expect(TimeHistogram.bucket(of: bound + 1) == index + 1)
        }
        #expect(TimeHistogram.bucket(of: .max) == TimeHistogram.buckets - 1)
    }

    @Test func `quantiles lie where Prometheus sees them`() throws {
        var histogram = TimeHistogram()
        #expect(histogram.quantile(0.5) == nil && histogram.isEmpty)
        for _ in 0..<90 { histogram.add(2_000_000) }
        for _ in 0..<10 { histogram.add(200_000_000) }
        #expect(histogram.count == 100 && histogram.sum == 2_180_000_000)
        // 50 of the 90 between 1 and 5 ms.
        let middle = try #require(histogram.quantile(0.5))
        #expect(abs(middle - 0.003222222222) < 1e-9)
        // 5 of the 10 between 100 and 250 ms.
        let high = try #require(histogram.quantile(0.95))
        #expect(abs(high - 0.175) < 1e-9)
        var slow = TimeHistogram()
        slow.add(60_000_000_000)
        #expect(slow.quantile(0.5) == 30)
        slow.add(histogram)
        #expect(slow.count == 101)
        var words = TimeHistogram()
        let table: [UInt64] = [7, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 9]
        words.add(words: table[1...])
        #expect(words.counts[0] == 1 && words.counts[1] == 2 && words.sum == 5)
    }
}

@Suite struct OriginFigureTests {
    @Test func `results are told by class of status or kind of error`() {
        let figures = OriginFigures()
        figures.begin()
        figures.begin()
        figures.add(bytes: 100)
        figures.add(OriginResult(status: 204), connecting: 3_000_000, firstByte: 7_000_000)
        figures.add(OriginResult(UpstreamError(.timeout(.firstByte), detail: "slow")), connecting: nil, firstByte: nil)
        let values = figures.values
        #expect(values.began == 2 && values.bytes == 100)
        #expect(values.results == [.success: 1, .timeout: 1])
        #expect(values.connecting.count == 1 && values.firstByte.sum == 7_000_000)
        #expect(Set(OriginResult.allCases.map(\.label)).count == OriginResult.allCases.count)
        #expect(OriginResult(status: 101).label == "1xx" && OriginResult(status: 302).label == "3xx")
        #expect(OriginResult(status: 404).label == "4xx" && OriginResult(status: 503).label == "5xx")
        #expect(OriginResult.timeout.isError && !OriginResult.serverError.isError && !OriginResult.cancelled.isError)
    }
}
