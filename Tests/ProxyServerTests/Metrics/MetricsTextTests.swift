// The two formats of the metrics, and which of them a monitor gets.

import ServiceCore
import Testing

@testable import ProxyServer

@Suite struct MetricsTextTests {
    private static var families: [MetricFamily] {
        var histogram = TimeHistogram()
        histogram.add(400_000)
        histogram.add(700_000)
        histogram.add(60_000_000_000)
        return [
            MetricFamily(
                "a_total",
                "What \"it\" is.",
                .counter,
                [.init([("name", "a\"b\\c\nd")], .count(3)), .init([], .count(4))]
            ),
            MetricFamily("b", "B.", .gauge, .number(0.25)),
            MetricFamily("c", "C.", .gauge, []),
            MetricFamily("d_seconds", "D.", .histogram, [.init([("s", "x")], .histogram(histogram))]),
        ]
    }

    private static let buckets = """
        d_seconds_bucket{s="x",le="0.0005"} 1
        d_seconds_bucket{s="x",le="0.001"} 2
        d_seconds_bucket{s="x",le="0.005"} 2
        d_seconds_bucket{s="x",le="0.01"} 2
        d_seconds_bucket{s="x",le="0.05"} 2
        d_seconds_bucket{s="x",le="0.1"} 2
        d_seconds_bucket{s="x",le="0.25"} 2
        d_seconds_bucket{s="x",le="0.5"} 2
        d_seconds_bucket{s="x",le="1.0"} 2
        d_seconds_bucket{s="x",le="5.0"} 2
        d_seconds_bucket{s="x",le="30.0"} 2
        d_seconds_bucket{s="x",le="+Inf"} 3
        d_seconds_sum{s="x"} 60.0011
        d_seconds_count{s="x"} 3

        """

    @Test func `text`() {
        let expected = #"""
            # HELP a_total What "it" is.
            # TYPE a_total counter
            a_total{name="a\"b\\c\nd"} 3
            a_total 4
            # HELP b B.
            # TYPE b gauge
            b 0.25
            # HELP d_seconds D.
            # TYPE d_seconds histogram

            """#
        #expect(MetricsText.render(Self.families, .text) == expected + Self.buckets)
    }

    @Test func `OpenMetrics`() {
        let expected = #"""
            # HELP a What \"it\" is.
            # TYPE a counter
            a_total{name="a\"b\\c\nd"} 3
            a_total 4
            # HELP b B.
            # TYPE b gauge
            b 0.25
            # HELP d_seconds D.
            # TYPE d_seconds histogram

            """#
        #expect(MetricsText.render(Self.families, .openMetrics) == expected + Self.buckets + "# EOF\n")
    }

    @Test func exemplarsAreForOpenMetricsAlone() {
        var histogram = TimeHistogram()
        histogram.add(400_000)
        let exemplar = Exemplar(trace: "ab", duration: 400_000, time: 1_700_000_000_007_999_999)
        let series = MetricFamily.Series([], .histogram(histogram), exemplars: [0: exemplar])
        let families = [MetricFamily("d_seconds", "D.", .histogram, [series])]
        let lines = MetricsText.render(families, .openMetrics).split(separator: "\n")
        #expect(lines[2] == "d_seconds_bucket{le=\"0.0005\"} 1 # {trace_id=\"ab\"} 0.0004 1700000000.007")
        #expect(lines[3] == "d_seconds_bucket{le=\"0.001\"} 1")
        #expect(!MetricsText.render(families, .text).contains("trace_id"))
    }

    @Test func theLastTracedRequestOfABucketStandsForIt() {
        var exemplars = Exemplars()
        let kind = AnswerKind(number: .none, outcome: .miss, tier: .none, status: 200)
        for (trace, duration) in [("a", 400_000), ("b", 300_000), ("c", 60_000_000_000)] as [(String, UInt64)] {
            exemplars.note(kind, Exemplar(trace: trace, duration: duration, time: 1))
        }
        var later = Exemplars()
        later.note(kind, Exemplar(trace: "d", duration: 1, time: 2))
        exemplars.add(later)
        let row = RouteNumber.none.service
        let found = exemplars.buckets(ofService: row, .miss)
        #expect(found.mapValues(\.trace) == [0: "d", TimeHistogram.buckets - 1: "c"])
        #expect(exemplars.buckets(ofService: row, .hit).isEmpty)
        #expect(exemplars.buckets(ofService: row + 1, .miss).isEmpty)
    }

    @Test(
        arguments: [
            (nil, false), ("*/*", false), ("text/plain;version=0.0.4", false),
            ("application/openmetrics-text", true),
            ("application/openmetrics-text; version=1.0.0; charset=utf-8", true),
            ("application/openmetrics-text;version=\"1.0.0\",text/plain;version=0.0.4;q=0.5,*/*;q=0.1", true),
            ("application/openmetrics-text; version=0.0.1,text/plain", true),
            ("Application/OpenMetrics-Text", true), ("application/openmetrics-text;version=2.0.0,text/plain", false),
            ("application/openmetrics-text;q=0,text/plain", false), ("application/openmetrics-text;q=x", false),
            ("", false),
            (",;,", false),
        ] as [(String?, Bool)]
    )
    func `which of them`(accept: String?, isOpen: Bool) {
        #expect(MetricsFormat(accept: accept) == (isOpen ? .openMetrics : .text))
    }
}

@Suite struct AnswerCountTests {
    @Test func `answers are counted by all that they are, and their times by service and outcome`() {
        let numbers = RouteNumbers()
        let users = numbers.number(service: "api", endpoint: "users")
        let whole = numbers.number(service: "api", endpoint: "")
        let countsLoop = LoopCounters()
        let counts = countsLoop.answers
        defer { withExtendedLifetime(countsLoop) {} }
        #expect(counts.totals == AnswerTotals())
        let hit = AnswerKind(number: users, outcome: .hit, tier: .memory, status: 200)
        for _ in 0..<3 { counts.addWhole(hit, bytes: 10, took: 7_000) }
        counts.add(
            AnswerKind(number: whole, outcome: .miss, tier: .none, status: 404),
            bytes: 5,
            firstByte: 20_000_000,
            took: 2_000_000_000
        )
        counts.add(
            AnswerKind(number: .none, outcome: .error, tier: .none, status: 499),
            bytes: 0,
            firstByte: nil,
            took: 1
        )
        let otherLoop = LoopCounters()
        let other = otherLoop.answers
        defer { withExtendedLifetime(otherLoop) {} }
        other.addWhole(hit, bytes: 10, took: 7_000)
        var totals = counts.totals
        totals.add(other.totals)
        #expect(totals.kinds == ["0 error none 4xx 1", "3 miss none 4xx 1", "4 hit memory 2xx 4"])
        #expect(totals.services == [0, 3] && totals.count == 6)
        #expect(totals.bytes(ofService: 3) == 45 && totals.bytes(ofService: 4) == 0)
        #expect(totals[.hit] == 4 && totals[.error] == 1 && totals[.stale] == 0)
        #expect(totals.answers(ofClass: 4) == 2 && totals.answers(ofClass: 2) == 4 && totals.answers(ofClass: 5) == 0)
        let hits = totals.durations(ofService: 3, .hit)
        #expect(hits.firstByte == hits.whole && hits.whole.count == 4 && hits.whole.sum == 28_000)
        let misses = totals.durations(ofService: 3, .miss)
        #expect(misses.firstByte.sum == 20_000_000 && misses.whole.sum == 2_000_000_000)
        #expect(misses.firstByte.counts[4] == 1 && misses.whole.counts[9] == 1)
        let gone = totals.durations(ofService: 0, .error)
        #expect(gone.firstByte.isEmpty && gone.whole.count == 1)
        #expect(totals.durations(ofService: 900, .hit).whole.isEmpty)
    }

    @Test func `the table has room for all outcomes, tiers and buckets`() {
        #expect(AnswerCounts.outcomes == CacheOutcome.allCases.count && AnswerCounts.tiers == AnswerTier.allCases.count)
        #expect(AnswerCounts.histogram == TimeHistogram.buckets + 1)
        #expect(CacheOutcome.allCases.map(\.rawValue) == Array(0..<AnswerCounts.outcomes))
        #expect(AnswerTier.allCases.map(\.rawValue) == Array(0..<AnswerCounts.tiers))
        #expect(TimeHistogram.bounds.first == 500_000)
        let countsLoop = LoopCounters()
        let counts = countsLoop.answers
        defer { withExtendedLifetime(countsLoop) {} }
        let kinds = CacheOutcome.allCases.flatMap { outcome in
            AnswerTier.allCases.flatMap { tier in
                [100, 200, 304, 499, 599].map { AnswerKind(number: .connect, outcome: outcome, tier: tier, status: $0) }
            }
        }
        for kind in kinds { counts.addWhole(kind, bytes: 1, took: 600_000) }
        #expect(counts.totals.kinds.count == kinds.count && counts.totals.count == UInt64(kinds.count))
        #expect(counts.totals.bytes(ofService: RouteNumber.connect.row) == UInt64(kinds.count))
        for outcome in CacheOutcome.allCases {
            let times = counts.totals.durations(ofService: RouteNumber.connect.row, outcome)
            #expect(
                times.whole.counts[1] == UInt64(5 * AnswerCounts.tiers) && times.whole.count == times.whole.counts[1]
            )
        }
    }
}
