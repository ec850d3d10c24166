// The second try on a connection that died, libcurl's hidden one included: only what is idempotent, and
// only before anything came.

import HTTPWire
import TestSupport
import Testing
import Upstream

@Suite struct ResendTests {
    /// An origin that answers `/warm` and treats everything else on a used connection as `end` says; a first request on
    /// a connection is answered.
    private func origin(_ end: OriginReply) throws -> ScriptedOrigin {
        try ScriptedOrigin { request in
            request.target == "/warm" || request.ordinal == 1 ? .answer(to: request, "again") : end
        }
    }

    enum End: CaseIterable, Sendable {
        case cut, reset, cutByLibcurl, resetByLibcurl

        var reply: OriginReply { self == .cut || self == .cutByLibcurl ? .cut : OriginReply([.reset]) }
        var carriage: Carriage { self == .cut || self == .reset ? .wire : .libcurl }
    }

    @Test(arguments: ["GET", "HEAD", "OPTIONS", "DELETE", "PUT"], End.allCases)
    func `an idempotent request is sent once more`(method: String, end: End) throws {
        let origin = try origin(end.reply)
        let rig = try Rig(by: end.carriage)
        defer { rig.close() }
        #expect(rig.get("\(origin.url)/warm").isFinished)
        let heard = rig.run(UpstreamRequest(method: Method(method), url: "\(origin.url)/x"))
        #expect(heard.isFinished)
        #expect(heard.calls == (method == "HEAD" ? "hf" : "hbf"))
        #expect(origin.requests(target: "/x") == 2)
    }

    @Test(arguments: ["POST", "PATCH", "PROPPATCH"], End.allCases)
    func `any other is not`(method: String, end: End) throws {
        let origin = try origin(end.reply)
        let rig = try Rig(by: end.carriage)
        defer { rig.close() }
        #expect(rig.get("\(origin.url)/warm").isFinished)
        let heard = rig.run(UpstreamRequest(method: Method(method), url: "\(origin.url)/x"))
        #expect(heard.error?.kind == .closed)
        #expect(heard.error?.isUnsent == false)
        #expect(heard.error?.proxyStatus == "connection_terminated")
        #expect(origin.requests(target: "/x") == 1)
    }

    @Test(arguments: ["POST", "PUT"], Carriage.allCases)
    func `a body that was begun is not sent twice`(method: String, carriage: Carriage) throws {
        let origin = try origin(.cut)
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        #expect(rig.get("\(origin.url)/warm").isFinished)
        let request = UpstreamRequest(method: Method(method), url: "\(origin.url)/x", bodyFraming: .length(9))
        let heard = rig.run(request) { PatternSource(9) }
        #expect(heard.error?.kind == .closed)
        #expect(origin.requests(target: "/x") == 1)
    }

    @Test(arguments: Carriage.allCases)
    func `nothing is sent again once a byte of a response came`(carriage: Carriage) throws {
        let origin = try origin(OriginReply([OriginReply.text("HTTP/1.1 103 Early Hints\r\n\r\n"), .cut]))
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        #expect(rig.get("\(origin.url)/warm").isFinished)
        let heard = rig.get("\(origin.url)/x")
        #expect(heard.error?.kind == .closed)
        #expect(heard.interims.count == 1)
        #expect(origin.requests(target: "/x") == 1)
    }

    @Test(arguments: Carriage.allCases)
    func `a connection that the origin closed while idle costs no attempt`(carriage: Carriage) throws {
        let origin = try ScriptedOrigin { request in
            OriginReply(OriginReply.answer(to: request, "x").steps + (request.target == "/warm" ? [.cut] : []))
        }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        #expect(rig.get("\(origin.url)/warm").isFinished)
        #expect(rig.settled(origin))
        #expect(rig.run(UpstreamRequest(method: .post, url: "\(origin.url)/x")).isFinished)
        #expect(origin.requests(target: "/x") == 1)
        #expect(origin.connections == 2)
    }

    @Test(arguments: Carriage.allCases)
    func `a 417 is the answer, not a reason to ask again`(carriage: Carriage) throws {
        let origin = try ScriptedOrigin { _ in .answer(417, "no") }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let fields = Fields([("Expect", "100-continue"), ("Content-Length", "4")])
        let request = UpstreamRequest(method: .post, url: origin.url, fields: fields, bodyFraming: .length(4))
        // The scripted origin sends 100 itself; then the body goes out, and the 417 comes.
        let heard = rig.run(request) { PatternSource(4) }
        #expect(heard.head?.status == 417)
        #expect(heard.text == "no")
        #expect(heard.isFinished)
        #expect(origin.requests() == 1)
    }
}
