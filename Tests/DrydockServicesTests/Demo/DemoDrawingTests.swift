// The draws of the library's demo mode: those of the daemon, the same in every run, and no shorter than they say.

import DemoMode
import Drydock
import DrydockServices
import DrydockTesting
import Foundation
import HTTPTypes
import HTTPWire
import LibrarySupport
import Policies
import TestSupport
import Testing

@Suite struct DemoDrawingTests {
    private func demo(
        _ change: (inout DemoTransport.Endpoint) -> Void = { _ in },
        seed: UInt64 = 0,
        clock: any Clock<Duration> = ContinuousClock()
    ) throws -> DemoTransport {
        let (folder, files) = try demoFiles(["user.json": "{}", "error.json": #"{"error": true}"#])
        var endpoint = DemoTransport.Endpoint("user", path: "/users/:id")
        change(&endpoint)
        defer { withExtendedLifetime(folder) {} }
        return try DemoTransport(
            [endpoint],
            files: files,
            base: URL(string: "http://demo.test"),
            seed: seed,
            clock: clock
        )
    }

    @Test(arguments: [0, 42, UInt64.max]) func theyAreThoseOfTheDaemon(seed: UInt64) async throws {
        let transport = try demo(
            {
                $0.latency = .microseconds(100) ... .milliseconds(3)
                $0 = $0.failing(0.3, status: 500)
            },
            seed: seed
        )
        // As the daemon compiles the same endpoint, and names a request behind the prefix of its service.
        let rule = DemoRule(
            endpoint: "user",
            seed: seed,
            latency: LatencyPolicy(.uniform(100_000...3_000_000)),
            failure: DemoFailure(chance: 0.3, answer: DemoAnswer(status: 500))
        )
        for target in ["/users/7", "/users/8?full=1"] {
            for ordinal in 0..<40 {
                let draw = DemoDraw.draw(rule, requestKey: Array("GET \(target)".utf8), ordinal: UInt64(ordinal))
                let head = try await transport.ask(target).head
                #expect(head.field("Drydock-Demo") == draw.fieldValue)
                #expect(head.status.code == draw.status)
            }
        }
    }

    /// The daemon prints these for `config/demo.yaml`; the README shows two of them.
    @Test func theyHaveTheNamesThatTheDaemonPrints() async throws {
        let clock = ManualClock()
        let transport = try demo(
            {
                $0.latency = .milliseconds(100) ... .milliseconds(400)
                $0 = $0.failing(0.2, file: "error.json")
                $0.seed = 37
            },
            clock: clock
        )
        var said: [String?] = []
        for _ in 0..<5 {
            let asking = Task { try await transport.ask("/users/7").head.field("Drydock-Demo") }
            try await clock.waitForSleepers(1)
            clock.advance(by: .milliseconds(400))
            said.append(try await asking.value)
        }
        #expect(said[0] == "endpoint=user; outcome=success; status=200; latency=387ms; draw=96baee85284f7951.1")
        #expect(said[4] == "endpoint=user; outcome=failure; status=503; latency=160ms; draw=96baee85284f7951.5")
    }

    @Test(arguments: [0, 42]) func severalStatusesAreDrawnAsTheDaemonDoes(seed: UInt64) async throws {
        let transport = try demo(
            {
                $0.statuses = [200: 0.6, 201: 0.1, 404: 0.3]
                $0 = $0.playing(text: "hello")
                $0 = $0.failing(0.1)
            },
            seed: seed
        )
        let hello = DemoContent.file(
            DemoFile(path: "", bytes: Array("hello".utf8), contentType: "text/plain; charset=utf-8")
        )
        let rule = DemoRule(
            endpoint: "user",
            seed: seed,
            choice: .weighted([
                (0.6, DemoAnswer(content: hello)), (0.1, DemoAnswer(status: 201, content: hello)),
                (0.3, DemoAnswer(status: 404)),
            ]),
            failure: DemoFailure(chance: 0.1)
        )
        var found: Set<Int> = []
        for ordinal in 0..<200 {
            let draw = DemoDraw.draw(rule, requestKey: Array("GET /users/7".utf8), ordinal: UInt64(ordinal))
            let (head, text) = try await transport.ask("/users/7")
            #expect(head.field("Drydock-Demo") == draw.fieldValue && head.status.code == draw.status)
            #expect(text == (200..<300 ~= draw.status ? "hello" : ""))
            #expect(head.field("ETag") == (draw.status == 200 ? draw.representationFields.first(.etag) : nil))
            found.insert(draw.status)
        }
        #expect(found == [200, 201, 404, 503])
    }

    @Test func anEndpointMayHaveASeedOfItsOwn() async throws {
        let (own, whole) = (try demo({ $0.seed = 7 }, seed: 3), try demo(seed: 7))
        for _ in 0..<5 {
            let drawn = try await own.ask("/users/7").head.field("Drydock-Demo")
            let expected = try await whole.ask("/users/7").head.field("Drydock-Demo")
            #expect(drawn != nil && drawn == expected)
        }
    }

    @Test func theyBeginAnew() async throws {
        let transport = try demo({ $0 = $0.failing(0.5) })
        var runs: [[String?]] = []
        for _ in 0..<2 {
            var run: [String?] = []
            for _ in 0..<10 { run.append(try await transport.ask("/users/7").head.field("Drydock-Demo")) }
            runs.append(run)
            transport.restart()
        }
        #expect(runs[0] == runs[1] && Set(runs[0]).count > 1)
    }

    @Test(arguments: [0.0, 1.0]) func aChanceOfNothingAndOfAllIsExact(chance: Double) async throws {
        let transport = try demo({ $0 = $0.failing(chance, file: "error.json") })
        for _ in 0..<200 {
            let (head, text) = try await transport.ask("/users/7")
            // Docker had 400 here; 503 is what retries repeat.
            #expect(head.status.code == (chance == 0 ? 200 : 503))
            #expect(text == (chance == 0 ? "{}" : #"{"error": true}"#))
        }
    }

    @Test func theLatencyIsWaitedFor() async throws {
        let clock = ManualClock()
        let transport = try demo({ $0.latency = .seconds(2) ... .seconds(2) }, clock: clock)
        let asking = Task { try await transport.ask("/users/7").head.field("Drydock-Demo") }
        try await clock.waitForSleepers(1)
        #expect(clock.nextDeadline?.offset == .seconds(2))
        clock.advance(by: .seconds(2))
        #expect(try await asking.value?.contains("latency=2000ms") == true)
    }

    @Test func itIsWaitedForOfFailuresToo() async throws {
        let clock = ManualClock()
        let transport = try demo(
            {
                $0.latency = .seconds(1) ... .seconds(3)
                $0 = $0.failing(1)
            },
            clock: clock
        )
        let asking = Task { try await transport.ask("/users/7").head.status.code }
        try await clock.waitForSleepers(1)
        let deadline = try #require(clock.nextDeadline?.offset)
        #expect(deadline >= .seconds(1) && deadline <= .seconds(3))
        clock.advance(to: .init(offset: deadline))
        #expect(try await asking.value == 503)
    }

    @Test func whoIsCancelledWaitsNoLonger() async throws {
        let clock = ManualClock()
        let transport = try demo({ $0.latency = .seconds(60) ... .seconds(60) }, clock: clock)
        let asking = Task { try await transport.ask("/users/7") }
        try await clock.waitForSleepers(1)
        asking.cancel()
        let error = await #expect(throws: DownloadError.self) { try await asking.value }
        #expect(error == .cancelled)
    }

    // MARK: - As a web server does for a file

    private func fields(_ pairs: (HTTPField.Name, String)...) -> HTTPFields {
        var fields = HTTPFields()
        for (name, value) in pairs { fields[name] = value }
        return fields
    }

    @Test func headHasTheFieldsAndNoBody() async throws {
        let transport = try demo()
        let (get, head) = (try await transport.ask("/users/7"), try await transport.ask("/users/7", .head))
        #expect(head.text.isEmpty && head.head.field("Content-Length") == "2")
        #expect(head.head.field("ETag") != nil && head.head.field("ETag") == get.head.field("ETag"))
        #expect(get.head.field("Accept-Ranges") == "bytes")
    }

    @Test func whoHasItIsToldSo() async throws {
        let transport = try demo()
        let tag = try #require(try await transport.ask("/users/7").head.field("ETag"))
        let (head, text) = try await transport.ask("/users/7", .get, fields((.ifNoneMatch, tag)))
        #expect(head.status == .notModified && text.isEmpty && head.field("ETag") == tag)
        #expect(head.field("Drydock-Demo") != nil)
        #expect(try await transport.ask("/users/7", .get, fields((.ifNoneMatch, "\"other\""))).head.status == .ok)
        let refused = try await transport.ask("/users/7", .get, fields((.ifMatch, "\"other\"")))
        #expect(refused.head.status == .preconditionFailed && refused.text.isEmpty)
        // There is no Last-Modified that the date could be compared with.
        let dated = fields((.ifModifiedSince, "Mon, 01 May 2023 10:00:00 GMT"))
        #expect(try await transport.ask("/users/7", .get, dated).head.status == .ok)
    }

    @Test func partsOfItAreGiven() async throws {
        let transport = try demo({ $0.file = "error.json" })
        let one = try await transport.ask("/users/7", .get, fields((.range, "bytes=2-6")))
        #expect(one.head.status == .partialContent && one.text == "error")
        #expect(one.head.field("Content-Range") == "bytes 2-6/15" && one.head.field("Content-Length") == "5")
        let two = try await transport.ask("/users/7", .get, fields((.range, "bytes=0-0,14-")))
        #expect(two.head.field("Content-Type")?.hasPrefix("multipart/byteranges; boundary=") == true)
        #expect(two.text.contains("Content-Range: bytes 0-0/15\r\n\r\n{\r\n--"))
        #expect(two.text.contains("Content-Range: bytes 14-14/15\r\n\r\n}\r\n--"))
        #expect(two.head.field("Content-Length") == "\(two.text.utf8.count)")
        let none = try await transport.ask("/users/7", .get, fields((.range, "bytes=99-")))
        #expect(none.head.status == .rangeNotSatisfiable && none.head.field("Content-Range") == "bytes */15")
        let other = fields((.range, "bytes=0-0"), (.ifRange, "\"other\""))
        #expect(try await transport.ask("/users/7", .get, other).head.status == .ok)
    }
}
