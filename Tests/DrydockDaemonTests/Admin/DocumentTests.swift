// Every document of the admin API there and back, and what another version of the daemon may leave out or add.

import DownloadCore
import Testing

@testable import DrydockDaemon
@testable import ProxyServer

@Suite struct DocumentTests {
    private static let clock = AdminClock(
        isMovable: true,
        ahead: 7200,
        time: "2026-01-31T12:00:00Z",
        unixTime: 1_769_860_800
    )

    private static let status: AdminStatus = {
        let tier = AdminStatus.Tier(entries: 1, bytes: 2, limit: 3)
        var status = AdminStatus(
            version: "1.2.3",
            pid: 7,
            uptime: 8,
            configuration: "/a.yaml",
            loops: 2,
            listen: ["127.0.0.1:8080"],
            services: [.init(name: "a", target: "http://a", match: "/a", isDemo: true, isPartlyDemo: true)],
            isOffline: true,
            clock: clock,
            memory: tier,
            disk: tier
        )
        status.demo = demo.overrides
        status.refusal = "reload refused: a.yaml:1:2: why"
        status.distrusted = [
            .init(client: "c", host: "a:443", reason: "why", times: 2, since: 1_769_860_800, isTunnelled: true)
        ]
        status.forward = .init(isEnabled: true, intercepted: ["*.a"], certificate: "/c.pem")
        (status.connections, status.tunnels, status.answers, status.hits, status.misses) = (1, 2, 3, 4, 5)
        (status.hitRatio, status.answersPerSecond) = (0.5, 0.25)
        return status
    }()

    private static let entry = AdminEntries.Entry(
        url: "http://a/\"x\"",
        service: "a",
        key: ["Accept: x"],
        status: 200,
        size: 5,
        tiers: ["memory", "disk"],
        age: 1,
        ttl: -2,
        variant: ["X_Accept-Language": "de"],
        isPinned: true,
        tags: ["t"]
    )

    private static let job: AdminJob = {
        var item = AdminJob.Item(url: "http://a/", method: "POST", state: "done", received: 5)
        (item.check, item.outcome, item.size) = ("sized", "downloaded", 5)
        (item.status, item.reason, item.duplicateOf) = (200, "why", 0)
        item.file = "maps/a.json"
        var totals = BatchTotals()
        (totals.items, totals.queued, totals.running, totals.done, totals.failed) = (1, 2, 3, 4, 5)
        (totals.cancelled, totals.checked, totals.duplicates, totals.valid, totals.notStored) = (6, 7, 8, 9, 10)
        (totals.unknownSize, totals.bytes, totals.received, totals.remaining) = (11, 12, 13, 14)
        var job = AdminJob(id: "3", kind: .prefetch, name: "n", state: "running", totals: totals)
        (job.concurrency, job.onError, job.created, job.started, job.ended) = (10, "cancel-rest", 1, 2, 3)
        job.firstError = .init(url: "http://a/", reason: "why")
        job.items = [item]
        return job
    }()

    private static let demo = AdminDemo(
        answers: [.init(service: "s", endpoint: "e", isOn: true)],
        overrides: [.init(service: "s", endpoint: "e", key: "latency", value: "2s", left: 7)],
        latencies: [latency]
    )

    private static let latency = AdminDemo.Latency(of: "s/e", answers: 3, median: 1, p90: 2, p99: 3)

    private static let journal: AdminJournal = {
        var entry = AdminJournalEntry(
            number: 7,
            time: "2026-01-31T12:00:00.123Z",
            method: "POST",
            target: "/a",
            fields: [.init(name: "A", value: "b")],
            status: 201,
            source: "demo",
            durationMs: 0.5
        )
        (entry.service, entry.endpoint, entry.cacheStatus, entry.demo) = ("s", "e", "c", "d")
        entry.violations = "v"
        (entry.body, entry.bodyBase64, entry.isBodyCut, entry.isAborted) = ("b", "Yg==", true, true)
        return AdminJournal(entries: [entry], bytes: 1, limit: 2, dropped: 3)
    }()

    private static let verification: AdminVerification = {
        var wanted = AdminVerification()
        (wanted.method, wanted.path, wanted.bodyJson, wanted.bodyContains) = ("POST", "/a", "{}", "b")
        (wanted.service, wanted.endpoint, wanted.since) = ("s", "e", "5m")
        (wanted.times, wanted.atLeast, wanted.atMost) = (1, 2, 3)
        (wanted.query, wanted.fields) = ([.init(name: "q", value: "1")], [.init(name: "F", value: "2")])
        return wanted
    }()

    private static let request: AdminJobRequest = {
        var item = AdminJobItem(url: "/a")
        item.file = "maps/a.json"
        (item.method, item.headers, item.body) = ("POST", ["X_A": "1"], "{}")
        (item.force, item.seed, item.store) = (true, false, false)
        var request = AdminJobRequest(items: [item, AdminJobItem(url: "/b")])
        (request.job, request.name, request.concurrency) = ("3", "n", 2)
        (request.onError, request.save) = (.cancelRest, true)
        return request
    }()

    private static let explanation: AdminExplanation = {
        let ruling = AdminExplanation.Ruling(reason: "fresh", section: "RFC 9111 section 4.2")
        let field = AdminExplanation.Field(name: "If-None-Match", value: "\"x\"")
        let variant = AdminExplanation.Variant(
            status: 200,
            size: 5,
            parts: ["0-4"],
            tiers: ["memory"],
            etag: "\"x\"",
            lastModified: "then",
            groups: ["g"],
            selecting: [.init(name: "Accept", stored: "a", asked: "b", matches: false)],
            age: .init(
                dateValue: 1,
                requestTime: 2,
                responseTime: 3,
                ageValue: 4,
                apparentAge: 5,
                responseDelay: 6,
                correctedAgeValue: 7,
                correctedInitialAge: 8,
                residentTime: 9,
                currentAge: 10
            ),
            lifetime: 11,
            timeInUse: 12,
            source: ruling,
            ttl: 13,
            isChosen: true,
            isInvalidated: true,
            decision: ruling,
            staleIfError: 14,
            staleRefusal: ruling
        )
        let standing = AdminExplanation.Standing(path: "/f", status: 200, afterMilliseconds: 5, mayAnswer: true)
        var meeting = AdminExplanation.Meeting(kind: .refused, reason: "why")
        (meeting.instead, meeting.parking, meeting.status, meeting.retryAfter) = (.nothing, "full", 503, 9)
        var explanation = AdminExplanation(
            method: "GET",
            target: "/a",
            fields: [field],
            route: .init(kind: .service, service: "a", match: "/a", endpoint: "e", asks: "http://a/"),
            now: 1,
            isOffline: true,
            bypass: ruling,
            cache: .init(
                service: "a",
                url: "http://a/",
                keyLines: ["k"],
                revalidate: "auto",
                variants: [variant],
                outcome: .check,
                decision: ruling,
                reply: .init(status: 206, parts: ["0-1"], section: "s"),
                upstream: .init(method: "HEAD", url: "http://a/", conditions: [field]),
                fills: 1,
                isUncacheable: true,
                unstored: .init(ruling: ruling, ago: 5),
                checkPause: 6,
                placeholder: standing,
                fallback: standing
            ),
            demo: [.init(rule: "admin", answers: false, differences: ["query.role is missing"])],
            rungs: [.init(rung: "fresh", answers: false, reason: "nothing is stored")],
            ways: [.init(service: "b", url: "/b")]
        )
        explanation.meets = meeting
        explanation.proxied = [.init(rule: "service by host", takes: true, reason: "service a at a.test")]
        explanation.cache?.otherVariant = 1
        return explanation
    }()

    private static let drift: AdminDrift = {
        var recording = AdminDrift.Recording(service: "a", request: "GET /a", state: .leftOut)
        (recording.recordedStatus, recording.recordedAt, recording.status) = (200, 1, 404)
        recording.fields = [.init(name: "Location", recorded: "/a", now: "/b")]
        (recording.content, recording.reason) = (["a is missing"], "why")
        var drift = AdminDrift()
        (drift.same, drift.changed, drift.gone, drift.unreachable) = (1, 2, 3, 4)
        (drift.unreadable, drift.leftOut, drift.recordings) = (5, 6, [recording])
        return drift
    }()

    private static func check<Document: Codable & Equatable>(_ document: Document) throws {
        let bytes = try AdminJSON.encode(document)
        #expect(bytes.last == 10)
        let text = String(decoding: bytes, as: UTF8.self)
        #expect(try AdminJSON.decode(Document.self, from: bytes) == document, "\(text)")
        // No member is left at nil, or it would not be seen whether it comes back.
        for (name, value) in Mirror(reflecting: document).children {
            if case nil as Any? = value { Issue.record("\(name ?? "") of \(Document.self) is nil") }
        }
        guard !(document is AdminJobItem) else { return }
        // What a newer daemon adds is ignored.
        let more = Array("{\"of_a_newer_daemon\":{\"a\":[1]},".utf8) + bytes.dropFirst()
        #expect(try AdminJSON.decode(Document.self, from: more) == document, "\(text)")
    }

    @Test("what is written is read again, with and without further members")
    func roundTrips() throws {
        try Self.check(Self.status)
        try Self.check(AdminStatus.Identity(pid: 7, configuration: "/a.yaml"))
        try Self.check(Self.clock)
        try Self.check(ReloadResult(isReloaded: false, summary: "1 error", errors: ["a"], changes: ["b"]))
        try Self.check(AdminEntries(entries: [Self.entry], next: "http://b/", more: 3))
        try Self.check(Self.entry)
        try Self.check(AdminOffline(isOffline: true))
        let module = AdminLog.Module(name: "download", level: "debug", configured: "info", left: 7)
        try Self.check(module)
        try Self.check(AdminLog(modules: [module]))
        try Self.check(AdminCancelled(fetches: 1, waiters: 2))
        try Self.check(AdminPurge(purged: 1, isSoft: true))
        try Self.check(AdminPin(url: "http://a/", isPinned: true, isChanged: true))
        try Self.check(AdminPins(urls: ["http://a/"]))
        var export = AdminSeedExport()
        (export.written, export.bytes, export.skipped, export.failed, export.firstError) = (1, 2, 3, 4, "e")
        try Self.check(export)
        var imported = AdminSeedImport()
        (imported.imported, imported.kept, imported.unknown, imported.refused) = (1, 2, 3, 4)
        (imported.failed, imported.firstError) = (5, "e")
        try Self.check(imported)
        try Self.check(AdminRecording(service: "a", request: "GET /", status: 200, bytes: 1, name: "n"))
        try Self.check(Self.drift)
        try Self.check(try #require(Self.drift.recordings.first))
        try Self.check(Self.request)
        try Self.check(try #require(Self.request.items?.first))
        try Self.check(Self.job)
        try Self.check(try #require(Self.job.items?.first))
        try Self.check(Self.job.totals)
        try Self.check(AdminJobs(jobs: [Self.job]))
        try Self.check(Self.explanation)
        try Self.check(try #require(Self.explanation.cache))
        try Self.check(try #require(Self.explanation.cache?.variants.first))
        try Self.check(Self.demo)
        try Self.check(Self.latency)
        try Self.check(AdminDemoReset(requests: 1, entries: 2, latencies: 3))
        let member = AdminDraw.Member(said: "s", drawn: "d", latency: 3, note: "n")
        try Self.check(AdminDraw(members: [member], isSame: true))
        try Self.check(Self.journal)
        try Self.check(AdminJournalCleared(entries: 3))
        try Self.check(Self.verification)
        let near = AdminVerdict.Near(entry: Self.journal.entries[0], differences: ["d"])
        try Self.check(AdminVerdict(isMet: false, count: 1, expected: "none", reason: "r", closest: [near]))
        try Self.check(AdminProblem(title: "Bad query", detail: "d", status: 400))
    }

    @Test("names are in snake_case and sorted, and slashes stay")
    func form() throws {
        #expect(
            String(
                decoding: try AdminJSON.encode(AdminPin(url: "http://a/", isPinned: true, isChanged: false)),
                as: UTF8.self
            )
                == "{\"is_changed\":false,\"is_pinned\":true,\"url\":\"http://a/\"}\n"
        )
    }

    @Test("any status, whatever else it has, tells which daemon it is of")
    func identity() throws {
        let known = AdminStatus.Identity(pid: 7, configuration: "/a.yaml")
        #expect(try AdminJSON.decode(AdminStatus.Identity.self, from: AdminJSON.encode(Self.status)) == known)
        #expect(try AdminJSON.decode(AdminStatus.Identity.self, from: Array("{\"pid\":7,\"clock\":1}".utf8)).pid == 7)
    }

    @Test("what an older daemon leaves out, and words of a newer one, do not keep a document from being read")
    func otherVersions() throws {
        func read<Document: Decodable>(_ type: Document.Type, _ text: String) throws -> Document {
            try AdminJSON.decode(type, from: Array(text.utf8))
        }
        let entry = try read(
            AdminEntries.self,
            #"{"entries":[{"url":"u","service":"","status":200,"tiers":[],"age":1,"variant":{},"is_pinned":false,"tags":[]}]}"#
        )
        #expect(entry.entries.first?.key == nil && entry.more == nil)
        let service = try read(AdminStatus.Service.self, #"{"name":"a","target":"t","match":"m","is_demo":true}"#)
        #expect(service.isPartlyDemo == nil)
        #expect(try read(AdminClock.self, #"{"is_movable":true,"ahead":1,"time":"t"}"#).unixTime == nil)
        let totals =
            #"{"items":1,"queued":0,"running":0,"done":0,"failed":0,"cancelled":0,"checked":0,"duplicates":0,"valid":0,"not_stored":0,"unknown_size":0,"bytes":0,"received":0,"remaining":0}"#
        let item = #"{"url":"u","state":"asleep","check":"odd","outcome":"lent","received":0}"#
        let job = try read(
            AdminJob.self,
            #"{"id":"1","kind":"mirror","state":"paused","totals":\#(totals),"items":[\#(item)]}"#
        )
        #expect(job.kind == "mirror" && job.state == "paused" && job.isEnd)
        #expect(job.items?.first?.outcome == "lent" && job.concurrency == nil && job.created == nil)
        #expect(try read(AdminProblem.self, #"{"title":"t","detail":"d"}"#).status == nil)
    }

    @Test("an item of a list has no members but the known ones")
    func unknownMember() {
        let error = #expect(throws: DecodingError.self) {
            try AdminJSON.decode(AdminJobItem.self, from: Array(#"{"url":"/a","ulr":1}"#.utf8))
        }
        #expect(error.map { AdminJSON.reason($0) }?.hasPrefix("'ulr' is not known; there are url, method") == true)
    }
}
