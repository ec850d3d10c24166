// Connections of both carriers: which of several addresses, what an idle one may not hold, and answers before their
// requests' end.

import EventLoop
import Glibc
import HTTPWire
import TestSupport
import Testing

@testable import Upstream

@Suite struct WireTests {
    // MARK: - Addresses

    private static func lookup(_ hosts: String...) -> Resolver.Lookup {
        { _, port in .addresses(hosts.compactMap { SocketAddress(numericHost: $0, port: port) }) }
    }

    // libcurl 7.88 does not always come to a third address of one family.
    @Test(
        arguments: [
            (["127.0.0.2"], .wire), (["127.0.0.2", "127.0.0.3"], .wire), (["127.0.0.2", "::1"], .wire),
            (["127.0.0.2"], .libcurl), (["127.0.0.2", "::1"], .libcurl),
        ] as [([String], Carriage)]
    )
    func `an address that refuses is followed by the next`(refusing: [String], carriage: Carriage) throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "here") }
        let rig = try Rig(by: carriage) { _, port in
            .addresses((refusing + ["127.0.0.1"]).compactMap { SocketAddress(numericHost: $0, port: port) })
        }
        defer { rig.close() }
        for _ in 0..<3 {
            let heard = rig.get("http://several.test:\(origin.port)/")
            #expect(heard.text == "here", "\(heard.error?.detail ?? "")")
        }
        #expect(origin.connections == 1)
    }

    @Test func `an address that is silent is given a head start, and the next one wins`() throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "here") }
        let silent = try SilentListener("127.0.0.4", port: origin.port)
        defer { silent.close() }
        let rig = try Rig(lookup: Self.lookup("127.0.0.4", "127.0.0.1"))
        defer { rig.close() }
        let start = Monotonic.now()
        #expect(rig.get("http://several.test:\(origin.port)/").text == "here")
        #expect(Monotonic.now() - start >= 200_000_000)
        #expect(rig.connectionCount == 1)
    }

    @Test(arguments: Carriage.allCases)
    func `where every address refuses, the request is refused`(carriage: Carriage) throws {
        let port = try freePort()
        let rig = try Rig(by: carriage, lookup: Self.lookup("127.0.0.2", "127.0.0.3"))
        defer { rig.close() }
        let heard = rig.get("http://several.test:\(port)/")
        #expect(heard.error?.kind == .connectionRefused)
        #expect(rig.connectionCount == 0)
    }

    @Test(arguments: Carriage.allCases)
    func `a silent address alone ends with the deadline, and its socket is closed`(carriage: Carriage) throws {
        let silent = try SilentListener("127.0.0.4", port: try freePort())
        defer { silent.close() }
        let rig = try Rig(by: carriage, lookup: Self.lookup("127.0.0.4"))
        defer { rig.close() }
        rig.know("silent.test", port: silent.port)
        let url = "http://silent.test:\(silent.port)/"
        let heard = rig.run(UpstreamRequest(url: url, timeouts: Timeouts(connect: 50_000_000)))
        #expect(heard.error?.kind == .timeout(.connect))
        // libcurl does not tell of a socket that never connected: it is counted until its number is taken again.
        #expect(carriage == .libcurl || rig.connectionCount == 0)
    }

    @Test(arguments: Carriage.allCases)
    func `a connection to an address that the name has left is not used`(carriage: Carriage) throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "x") }
        let answers = Counter()
        let rig = try Rig(by: carriage, lifetime: 0) { _, port in
            answers.add()
            let host = answers.value == 1 ? "127.0.0.1" : "127.0.0.2"
            return .addresses([SocketAddress(numericHost: host, port: port)].compactMap { $0 })
        }
        defer { rig.close() }
        let url = "http://moving.test:\(origin.port)/"
        #expect(rig.get(url).text == "x")
        #expect(rig.get(url).error?.kind == .connectionRefused)
    }

    // MARK: - Idle connections

    @Test(arguments: ["HTTP/1.1 200 EVIL\r\nContent-Length: 4\r\n\r\nevil", ""], Carriage.allCases)
    func `whatever comes on an idle connection closes it`(late: String, carriage: Carriage) throws {
        let gate = Gate()
        let origin = try ScriptedOrigin { request in
            let answer = OriginReply.answer(to: request, "x").steps
            return OriginReply(answer + [.wait(gate), late.isEmpty ? .cut : OriginReply.text(late)])
        }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        #expect(rig.get(origin.url).text == "x")
        #expect(rig.connectionCount == 1)
        gate.open()
        #expect(Descriptors.areGone(to: origin.port))
        // libcurl lets go of it when it looks for one.
        #expect(carriage == .libcurl || rig.connectionCount == 0)
        #expect(rig.run(UpstreamRequest(method: .post, url: origin.url)).text == "x")
        #expect(origin.connections == 2)
    }

    @Test(arguments: ["GET", "HEAD"], Carriage.allCases)
    func `what comes behind a response closes the connection, also where its consumer leaves with the last of it`(
        method: String,
        carriage: Carriage
    ) throws {
        let body = method == "HEAD" ? "" : "ok"
        let evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
        let origin = try ScriptedOrigin { _ in
            .raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" + body + evil)
        }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let request = UpstreamRequest(method: Method(method), url: origin.url)
        let (heard, _) = rig.watch(request) { recorder in
            recorder.onHead = { if method == "HEAD" { $0.cancel() } }
            recorder.onBytes = { transfer, _ in
                transfer.cancel()
                return .continue
            }
        }
        #expect(heard.wait(120) { $0.bodyLength == body.utf8.count && $0.head != nil })
        #expect(rig.connectionCount == 0)
        #expect(Descriptors.areGone(to: origin.port))
    }

    @Test func `while it is dialled again, nothing is taken from the source`() throws {
        let origin = try ScriptedOrigin { request in
            OriginReply(OriginReply.answer(to: request, "x").steps + [.more, .cut])
        }
        let silent = try SilentListener("127.0.0.4", port: origin.port)
        defer { silent.close() }
        let answers = Counter()
        let rig = try Rig(lifetime: 0) { _, port in
            answers.add()
            let host = answers.value <= 2 ? "127.0.0.1" : "127.0.0.4"
            return .addresses([SocketAddress(numericHost: host, port: port)].compactMap { $0 })
        }
        defer { rig.close() }
        let url = "http://moving.test:\(origin.port)/"
        #expect(rig.get(url).text == "x")
        let reads = Counter()
        let request = UpstreamRequest(
            method: .put,
            url: url,
            fields: Fields([("Expect", "100-continue"), ("Content-Length", "4")]),
            bodyFraming: .length(4),
            timeouts: Timeouts(connect: 2_000_000_000)
        )
        let (heard, _) = rig.start(
            request,
            source: {
                let source = ScriptedSource([.bytes([1, 2, 3, 4])])
                source.onRead = { reads.add() }
                return source
            }
        )
        #expect(heard.wait(120) { $0.isOver })
        #expect(heard.read { $0.error?.kind } == .timeout(.connect))
        #expect(answers.value == 3 && reads.value == 0)
    }

    @Test(arguments: Carriage.allCases)
    func `no more idle connections are kept than are allowed`(carriage: Carriage) throws {
        let gate = Gate()
        let origin = try ScriptedOrigin { request in
            OriginReply([.wait(gate)] + OriginReply.answer(to: request, "x").steps)
        }
        let rig = try Rig(limits: UpstreamLimits(idleConnections: 3), by: carriage)
        defer { rig.close() }
        let started = (0..<8).map { rig.start(UpstreamRequest(url: "\(origin.url)/\($0)")).heard }
        #expect(origin.waitForRequests(8))
        gate.open()
        for heard in started { #expect(heard.wait(120) { $0.isFinished }) }
        #expect(rig.connectionCount == 3)
    }

    // MARK: - Consumers that hold back

    @Test(arguments: [50, 4], Carriage.allCases)
    func `an end that comes while the consumer holds back is heard when it goes on`(announced: Int, carriage: Carriage)
        throws
    {
        let head = OriginReply.text("HTTP/1.1 200 OK\r\nContent-Length: \(announced)\r\n\r\n")
        let gate = Gate()
        let origin = try ScriptedOrigin { _ in
            OriginReply([head, OriginReply.text("a"), .wait(gate), OriginReply.text("bcd"), .reset])
        }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let (heard, number) = rig.watch(UpstreamRequest(url: origin.url)) { recorder in
            recorder.onBytes = { _, heard in heard.bodyLength == 1 ? .pause : .continue }
        }
        #expect(heard.wait(120) { $0.bodyLength == 1 })
        gate.open()
        #expect(origin.waitForEnds(allBut: 0))
        rig.turn()
        #expect(heard.read { !$0.isOver && $0.bodyLength == 1 })
        rig.with(number) { $0.resume() }
        #expect(heard.wait(120) { $0.isOver })
        #expect(heard.read { $0.text } == "abcd")
        #expect(heard.read { $0.isFinished } == (announced == 4))
        #expect(heard.read { $0.error?.kind } == (announced == 4 ? nil : .truncated))
        #expect(Descriptors.areGone(to: origin.port))
    }

    // MARK: - Interim responses

    @Test(arguments: Carriage.allCases)
    func `interim responses without end are refused`(carriage: Carriage) throws {
        @Sendable func hint(_ length: Int) -> String {
            "HTTP/1.1 103 Early Hints\r\nX-Long: \(String(repeating: "x", count: length))\r\n\r\n"
        }
        let origin = try ScriptedOrigin { request in
            let hints =
                switch request.target {
                case "/few": String(repeating: hint(1000), count: 100)
                case "/many": String(repeating: hint(10), count: 101)
                default: String(repeating: hint(7000), count: 50)
                }
            return .raw(hints + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let few = rig.get("\(origin.url)/few")
        #expect(few.text == "ok" && few.interims.count == 100)
        let many = rig.get("\(origin.url)/many")
        let refusal = UpstreamError.Kind.protocolViolation(WireError(.tooManyInterims, side: .response))
        #expect(many.error?.kind == refusal)
        #expect(many.head == nil && many.interims.count <= 100)
        let long = rig.get("\(origin.url)/long")
        // libcurl refuses so much itself, and has no word for it.
        #expect(long.error?.kind == (carriage == .wire ? refusal : .closed))
        #expect(long.head == nil && long.interims.count < 50)
    }

    // MARK: - Answers before the end of the request

    @Test("the body of a 417 comes whole", arguments: Carriage.allCases)
    func longRefusal(carriage: Carriage) throws {
        let refusal = "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 100000\r\n\r\n"
        // Refuses before the body, as an origin does that minds the expectation.
        let origin = try EarlyOrigin(refusal + String(repeating: "n", count: 100_000), readsOn: true)
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let fields = Fields([("Expect", "100-continue"), ("Content-Length", "4")])
        let request = UpstreamRequest(method: .post, url: origin.url, fields: fields, bodyFraming: .length(4))
        let heard = rig.run(request) { PatternSource(4) }
        #expect(heard.head?.status == 417)
        #expect(heard.error == nil && heard.isFinished)
        #expect(heard.text == String(repeating: "n", count: 100_000))
    }

    @Test(arguments: Carriage.allCases)
    func `a refusal before the end of the body is the answer, and the rest is not sent`(carriage: Carriage) throws {
        let origin = try EarlyOrigin("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno", readsOn: false)
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let size = 64 << 20
        let request = UpstreamRequest(method: .put, url: origin.url, bodyFraming: .length(UInt64(size)))
        let heard = rig.run(request) { PatternSource(size) }
        #expect(heard.head?.status == 413)
        #expect(heard.text == "no")
        #expect(heard.isFinished)
        #expect(Descriptors.areGone(to: origin.port))
    }

    @Test(arguments: Carriage.allCases)
    func `a refusal ends a request whose source waits`(carriage: Carriage) throws {
        let origin = try EarlyOrigin("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno", readsOn: false)
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let request = UpstreamRequest(method: .post, url: origin.url, bodyFraming: .chunked)
        let heard = rig.run(request) { ScriptedSource([.bytes([1]), .wait]) }
        #expect(heard.text == "no")
        #expect(heard.isFinished)
        #expect(Descriptors.areGone(to: origin.port))
    }

    @Test(arguments: Carriage.allCases)
    func `after an early success the rest of the body goes out all the same`(carriage: Carriage) throws {
        let origin = try EarlyOrigin("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", readsOn: true)
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let size = 8 << 20
        let request = UpstreamRequest(method: .put, url: origin.url, bodyFraming: .length(UInt64(size)))
        let heard = rig.run(request) { PatternSource(size) }
        #expect(heard.text == "ok")
        #expect(heard.isFinished)
        rig.sync { [inside = rig.inside] _ in inside.client?.shutdown() }
        #expect(origin.bodyBytes.wait(for: size))
        #expect(origin.bodyBytes.value == size)
    }

    @Test func `a body waits for 100, and goes out without it after a while`() throws {
        let origin = try EarlyOrigin("", readsOn: true)
        let rig = try Rig()
        defer { rig.close() }
        let fields = Fields([("Expect", "100-continue"), ("Content-Length", "4")])
        let request = UpstreamRequest(method: .post, url: origin.url, fields: fields, bodyFraming: .length(4))
        let start = Monotonic.now()
        let (_, number) = rig.start(request, source: { PatternSource(4) })
        #expect(origin.bodyBytes.wait(for: 4))
        #expect(Monotonic.now() - start >= 1_000_000_000)
        rig.with(number) { $0.cancel() }
    }
}

/// Answers as soon as it has a head, then reads on and counts, or closes; one connection.
private final class EarlyOrigin: Sendable {
    let port: Int
    let bodyBytes = Counter()
    var url: String { "http://127.0.0.1:\(port)" }

    init(_ answer: String, readsOn: Bool) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, length) == 0 && listen(listener, 4) == 0
                    && getsockname(listener, address, &length) == 0
            }
        }
        guard isBound else { throw TestSupportError.failed("no socket for an early origin") }
        port = Int(UInt16(bigEndian: address.sin_port))
        let bodyBytes = bodyBytes
        Threads.start("early origin") {
            let peer = accept(listener, nil, nil)
            close(listener)
            var head: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            var isAnswered = false
            while true {
                let count = recv(peer, &buffer, buffer.count, 0)
                guard count > 0 else { break }
                if isAnswered {
                    bodyBytes.add(count)
                    continue
                }
                head += buffer[..<count]
                let ends = head.indices.first { head[$0...].starts(with: [13, 10, 13, 10]) }
                guard let end = ends else { continue }
                bodyBytes.add(head.count - end - 4)
                isAnswered = true
                _ = send(peer, Array(answer.utf8), answer.utf8.count, Int32(MSG_NOSIGNAL))
                guard readsOn else { break }
            }
            close(peer)
        }
    }
}
