// What ends at this hop (RFC 9110 section 7.6.1).

import HTTPWire
import Testing

@Suite("Hop-by-hop fields")
struct HopByHopTests {
    @Test("RFC 9110 7.6.1: fields of the connection and what Connection names are dropped")
    func dropped() {
        let fields = Fields([
            ("Host", "a"), ("Connection", "keep-alive, X-Gone"), ("Keep-Alive", "5"), ("connection", "x-ALSO,,"),
            ("X-gone", "1"), ("X-Also", "2"), ("X-Kept", "3"), ("Proxy-Connection", "close"), ("TE", "gzip"),
            ("Trailer", "X"), ("Transfer-Encoding", "chunked"), ("Upgrade", "h2c"), ("Proxy-Authorization", "x"),
            ("Proxy-Authenticate", "x"), ("Proxy-Authentication-Info", "x"),
        ])
        for isRequest in [true, false] {
            let kept = HopByHop.forwardable(fields, isRequest: isRequest)
            #expect(kept.description == "Host: a\nX-Kept: 3")
        }
    }

    @Test(
        "RFC 9110 7.6.1: what Connection names besides keep-alive is dropped",
        arguments: [
            (["keep-alive"], ["Close", "X-A"]), (["Keep-Alive, ,keep-alive"], ["Close", "X-A"]),
            ([""], ["Close", "X-A"]),
            (["close"], ["X-A"]), (["keep-alive", "x-a"], ["Close"]), (["keep-alive,close", "X-A"], []),
        ]
    )
    func options(lines: [String], kept: [String]) {
        let fields = Fields(lines.map { ("Connection", $0) } + [("Close", "1"), ("Keep-Alive", "1"), ("X-A", "1")])
        #expect(HopByHop.forwardable(fields, isRequest: false).lines.map(\.name) == kept)
    }

    @Test(
        "Connection may not name protected fields",
        arguments: ["Host", "Content-Length", "Authorization", "Cache-Control", "Cookie", "Age"]
    )
    func protected(name: String) {
        let fields = Fields([("Connection", "close, \(name.lowercased())"), (name, "1")])
        #expect(HopByHop.forwardable(fields, isRequest: true).description == "\(name): 1")
    }

    @Test("Connection may name other known fields")
    func named() {
        let fields = Fields([("Connection", "ETag"), ("ETag", "\"1\""), ("Accept", "*/*")])
        #expect(HopByHop.forwardable(fields, isRequest: false).description == "Accept: */*")
    }

    @Test("TE: trailers alone is forwarded, in requests", arguments: ["trailers", "Trailers"])
    func trailers(value: String) {
        let fields = Fields([("TE", value), ("Connection", "TE")])
        #expect(HopByHop.forwardable(fields, isRequest: true).description == "TE: \(value)")
        #expect(HopByHop.forwardable(fields, isRequest: false).isEmpty)
    }

    @Test("Proxy, of which CGI makes HTTP_PROXY, goes from requests in any case")
    func proxy() {
        let fields = Fields([("Proxy", "http://evil.test"), ("pROXY", "2"), ("Proxy-Host", "a"), ("X-Proxy", "b")])
        #expect(HopByHop.forwardable(fields, isRequest: true).lines.map(\.name) == ["Proxy-Host", "X-Proxy"])
        #expect(HopByHop.forwardable(fields, isRequest: false).count == 4)
    }

    @Test("TE with anything else is not")
    func codings() {
        for lines in [[("TE", "trailers, gzip")], [("TE", "trailers"), ("TE", "gzip")], [("TE", "")]] {
            #expect(HopByHop.forwardable(Fields(lines), isRequest: true).isEmpty)
        }
    }
}
