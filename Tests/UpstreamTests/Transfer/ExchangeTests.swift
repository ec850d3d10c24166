// One request and its response: what goes out byte for byte, what comes in, and how connections are used again.

import Glibc
import HTTPWire
import TestSupport
import Testing
import Upstream

@Suite struct ExchangeTests {
    @Test(arguments: Carriage.allCases)
    func `a response comes with its head, its bytes and its end, in that order`(
        carriage: Carriage
    ) throws {
        let origin = try ScriptedOrigin { .answer(to: $0, fields: [("X-One", "1")], "hello") }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let heard = rig.get("\(origin.url)/a?b=c")
        #expect(heard.head?.status == 200)
        #expect(heard.head?.reason == "Scripted")
        #expect(heard.head?.fields.first("x-one") == "1")
        #expect(heard.framing == .length(5))
        #expect(heard.text == "hello")
        #expect(heard.calls == "hbf")
    }

    @Test(
        arguments: [
            "/a/../b", "/./a/./b", "/%2e%2e/x", "/%2E/%2e%2E", "//double///slash", "/a?b=%20&c=d?e//../..", "/?",
            "/;p=1",
            "/a%00b", "/..;/x", "/a\\b", "/{}|^`\"<>", "/~x!$&'()*+,=:@", "/a/", "/?a=b&&c=", "/%zz", "/?../..",
        ],
        Carriage.allCases
    )
    func `the target reaches the origin byte for byte`(target: String, carriage: Carriage) throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "") }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        #expect(rig.get(origin.url + target).isFinished)
        #expect(origin.log.map(\.target) == [target])
    }

    @Test(
        arguments: overBoth([
            ("GET", "", "/"), ("GET", "?q=1", "/?q=1"), ("OPTIONS", "", "*"), ("OPTIONS", "/", "/"),
            ("OPTIONS", "?a", "/?a"),
        ])
    )
    func `a URL without a path has a target by its method`(
        method: String,
        suffix: String,
        target: String,
        carriage: Carriage
    ) throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "") }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        #expect(rig.run(UpstreamRequest(method: Method(method), url: origin.url + suffix)).isFinished)
        #expect(origin.log.map { "\($0.method) \($0.target)" } == ["\(method) \(target)"])
    }

    @Test(arguments: Carriage.allCases)
    func `fields go out as given where none is empty, and again for the next request`(
        carriage: Carriage
    ) throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "") }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let fields = [
            ("Host", "name.example:81"), ("X-Second", "b"), ("x-FIRST", "a"), ("Accept", "x/y"), ("User-Agent", "u"),
            ("Cookie", "k=v"), ("Range", "bytes=0-"), ("X-Semi", "a;b"), ("X-Colon", ":;"), ("Connection", "TE"),
            ("TE", "trailers"), ("Content-Length", "0"), ("Referer", "r"), ("Accept-Encoding", "br"),
        ]
        for method in ["GET", "HEAD", "POST", "DELETE", "GET"] {
            let request = UpstreamRequest(method: Method(method), url: origin.url, fields: Fields(fields))
            #expect(rig.run(request).isFinished)
            #expect(rig.get(origin.url, fields: [("X", "y")]).isFinished)
        }
        for (index, exchange) in origin.log.enumerated() {
            let sent = exchange.fields.map { "\($0.name)=\($0.value)" }
            if index % 2 == 0 {
                #expect(sent == fields.map { "\($0.0)=\($0.1)" })
            } else {
                #expect(exchange.fields.map(\.name) == ["Host", "X"])
            }
        }
    }

    @Test(arguments: Carriage.allCases)
    func `Host goes first: that of the fields, else the one said apart, else that of the URL`(carriage: Carriage) throws
    {
        let origin = try ScriptedOrigin { .answer(to: $0, "") }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let asked: [(fields: [(String, String)], host: String?)] = [
            ([("X", "1")], nil), ([("X", "1")], "h.test:8"), ([("X", "")], "h.test"),
            ([("X", "1"), ("Host", "own")], "h.test"),
        ]
        for (fields, host) in asked {
            #expect(rig.run(UpstreamRequest(url: origin.url, fields: Fields(fields), host: host)).isFinished)
        }
        let sent = origin.log.map { $0.fields.map { "\($0.name)=\($0.value)" } }
        #expect(
            sent == [
                ["Host=\(origin.authority)", "X=1"], ["Host=h.test:8", "X=1"], ["Host=h.test", "X="],
                ["Host=own", "X=1"],
            ]
        )
    }

    @Test(arguments: Carriage.allCases)
    func `an origin that is known still refuses a target with other bytes than visible ASCII`(
        carriage: Carriage
    ) throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "") }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        for target in ["/a", "/a b", "/b#c", "?d", "/\u{e4}", ""] {
            let heard = rig.get(origin.url + target)
            #expect(heard.isFinished == (target.allSatisfy { $0.isASCII && $0 != " " && $0 != "#" }))
        }
        #expect(origin.log.map(\.target) == ["/a", "/?d", "/"])
    }

    @Test(arguments: Carriage.allCases)
    func `fields go out as given, in order, and none is added`(carriage: Carriage) throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "") }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let fields = [
            ("Host", "name.example:81"), ("X-Second", "b"), ("x-FIRST", "a"), ("X-Empty", ""), ("X-Second", "c"),
            ("Cookie", "k=v"), ("Range", "bytes=0-"), ("Content-Type", "text/plain"), ("X-Semi", "a;b"),
            ("X-Colon", ":;"),
        ]
        #expect(rig.get(origin.url, fields: fields).isFinished)
        let sent = origin.log[0].fields.map { "\($0.name)=\($0.value)" }
        #expect(sent == fields.map { "\($0.0)=\($0.1)" })
        #expect(rig.get(origin.url).isFinished)
        #expect(origin.log[1].fields.map(\.name) == ["Host"])
        #expect(origin.log[1].field("Host") == origin.authority)
        let given = [
            ("Host", "h"), ("Accept", "a/b"), ("User-Agent", "me"), ("Accept-Encoding", "br"), ("Expect", "x"),
        ]
        #expect(rig.get(origin.url, fields: given).isFinished)
        // What an expectation is over libcurl, StreamingTests say.
        let sentThen = given.filter { carriage == .wire || $0.0 != "Expect" }
        #expect(origin.log[2].fields.map { "\($0.name)=\($0.value)" } == sentThen.map { "\($0.0)=\($0.1)" })
    }

    @Test(arguments: Carriage.allCases)
    func `one connection serves every method in turn, with and without a body`(
        carriage: Carriage
    ) throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "\($0.method) \($0.bodyLength)") }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let steps: [(String, Int)] = [
            ("GET", 0), ("HEAD", 0), ("GET", 0), ("POST", 7), ("HEAD", 0), ("PUT", 3), ("DELETE", 0), ("POST", 0),
            ("GET", 5), ("OPTIONS", 0), ("PROPFIND", 2), ("get", 0), ("PATCH", 1), ("TRACE", 0), ("GET", 0),
        ]
        for (name, length) in steps {
            var request = UpstreamRequest(method: Method(name), url: "\(origin.url)/")
            request.bodyFraming = length == 0 ? .none : .length(UInt64(length))
            let heard = rig.run(request) { PatternSource(length) }
            #expect(heard.isFinished)
            #expect(heard.text == (name == "HEAD" ? "" : "\(name) \(length)"))
        }
        #expect(origin.connections == 1)
        #expect(origin.log.allSatisfy { $0.field("Expect") == nil && $0.field("Content-Type") == nil })
    }

    @Test(arguments: Carriage.allCases)
    func `redirects, cookies, codings and authentication are the consumer's`(carriage: Carriage) throws {
        let origin = try ScriptedOrigin { request in
            .answer(
                request.target == "/login" ? 401 : 302,
                to: request,
                fields: [
                    ("Location", "/next"), ("Set-Cookie", "a=b"), ("Content-Encoding", "gzip"),
                    ("WWW-Authenticate", "Basic realm=x"),
                ],
                "not gzip"
            )
        }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        #expect(rig.get("\(origin.url)/first").text == "not gzip")
        #expect(rig.get("\(origin.url)/login").head?.status == 401)
        #expect(origin.log.map(\.target) == ["/first", "/login"])
        #expect(origin.log[1].field("Cookie") == nil)
    }

    @Test(arguments: Carriage.allCases)
    func `the environment's http_proxy is not obeyed`(carriage: Carriage) throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "direct") }
        setenv("http_proxy", "http://127.0.0.1:1", 1)
        setenv("all_proxy", "http://127.0.0.1:1", 1)
        defer {
            unsetenv("http_proxy")
            unsetenv("all_proxy")
        }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        #expect(rig.get(origin.url).text == "direct")
    }

    @Test(arguments: Carriage.allCases)
    func `interim responses are kept apart from the final one`(
        carriage: Carriage
    ) throws {
        let interims = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n"
        let origin = try ScriptedOrigin { _ in
            .raw(interims + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Final: 1\r\n\r\nok")
        }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        for _ in 0..<2 {
            let heard = rig.get(origin.url)
            #expect(heard.interims.map(\.status) == [103, 102])
            #expect(heard.interims.first?.fields.first("link") == "</a>")
            #expect(heard.head?.status == 200)
            #expect(heard.head?.fields.first("link") == nil)
            #expect(heard.text == "ok")
            #expect(heard.calls == "iihbf")
        }
        #expect(origin.connections == 1)
    }

    @Test(arguments: Carriage.allCases)
    func `a chunked response comes decoded, with its trailers apart`(
        carriage: Carriage
    ) throws {
        let origin = try ScriptedOrigin { _ in
            .raw(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nX-Sum: 5\r\n\r\n"
            )
        }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        for _ in 0..<2 {
            let heard = rig.get(origin.url)
            #expect(heard.framing == .chunked)
            #expect(heard.text == "abcde")
            #expect(heard.trailers.first("x-sum") == "5")
            #expect(heard.head?.fields.first("x-sum") == nil)
        }
        #expect(origin.connections == 1)
    }

    @Test(arguments: Carriage.allCases)
    func `a body that ends with the connection is complete`(
        carriage: Carriage
    ) throws {
        let origin = try ScriptedOrigin { _ in
            OriginReply([OriginReply.text("HTTP/1.0 200 OK\r\n\r\nuntil the end"), .cut])
        }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let heard = rig.get(origin.url)
        #expect(heard.framing == .untilClose)
        #expect(heard.text == "until the end")
        #expect(heard.isFinished)
    }

    @Test(arguments: Carriage.allCases)
    func `a limit of connections makes transfers wait, not fail`(
        carriage: Carriage
    ) throws {
        let origin = try ScriptedOrigin { request in
            OriginReply([.pause(milliseconds: 5)] + OriginReply.answer(to: request, "x").steps)
        }
        let rig = try Rig(limits: UpstreamLimits(connectionsPerHost: 2), by: carriage)
        defer { rig.close() }
        let started = (0..<20).map { rig.start(UpstreamRequest(url: "\(origin.url)/\($0)")).heard }
        for heard in started { #expect(heard.wait(120) { $0.isFinished }) }
        #expect(origin.connections <= 2)
        #expect(origin.requests() == 20)
    }

    @Test(
        arguments: [
            "ftp://127.0.0.1/", "http:/x", "http://", "http://a b/", "http://user@host/", "http://127.0.0.1:0/",
            "http://127.0.0.1:99999/", "http://h/a b", "http://h/a\r\nX: y", "http://h/é", "http://h/#f", "//h/", "",
            "http://exam%70le/", "http://./",
        ],
        Carriage.allCases
    )
    func `a URL that cannot be sent fails before anything is`(url: String, carriage: Carriage) throws {
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let heard = rig.get(url)
        #expect(heard.error?.kind == .request)
        #expect(heard.calls == "e")
    }

    @Test(
        arguments: overBoth([
            ("POST", BodyFraming.length(5), [("Content-Length", "6")]),
            ("POST", .length(5), [("Transfer-Encoding", "chunked")]),
            ("POST", .chunked, [("Content-Length", "5")]),
            ("POST", .chunked, [("Transfer-Encoding", "gzip")]),
            ("POST", .none, [("Content-Length", "5")]),
            ("POST", .none, [("Transfer-Encoding", "chunked")]),
            ("HEAD", .length(5), [("Content-Length", "5")]),
            ("CONNECT", .none, []),
            ("POST", .untilClose, []),
        ])
    )
    func `fields that contradict the framing are not sent`(
        method: String,
        framing: BodyFraming,
        fields: [(String, String)],
        carriage: Carriage
    ) throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "") }
        let rig = try Rig(by: carriage)
        defer { rig.close() }
        let request = UpstreamRequest(
            method: Method(method),
            url: origin.url,
            fields: Fields(fields),
            bodyFraming: framing
        )
        #expect(rig.run(request) { PatternSource(5) }.error?.kind == .request)
        #expect(origin.connections == 0)
    }
}
