// Choosing between HEAD and conditional GET, and learning what an origin does with them.

import HTTPWire
import Testing

@testable import HTTPCaching

@Suite("Choice of the check")
struct CheckChoiceTests {
    @Test(
        "auto: a conditional GET for what is short or where conditions are honoured, HEAD for what is long",
        arguments: [
            (.never, .unknown, .unknown, 1, nil), (.conditional, .unknown, .refused, 1 << 30, .conditional),
            (.conditional, .refused, .unknown, 1, .conditional), (.head, .unknown, .honoured, 1, .head),
            (.head, .honoured, .unknown, nil, .head), (.head, .refused, .refused, 1 << 30, .conditional),
            (.automatic, .unknown, .unknown, 16384, .conditional), (.automatic, .unknown, .unknown, 16385, .head),
            (.automatic, .unknown, .unknown, nil, .head), (.automatic, .honoured, .refused, 16385, .head),
            (.automatic, .honoured, .refused, 16384, .conditional),
            (.automatic, .honoured, .honoured, 1 << 30, .conditional),
            (.automatic, .refused, .refused, 1 << 30, .conditional),
            (.automatic, .refused, .unknown, nil, .conditional),
        ] as [(ValidationMethod, OriginCapabilities.Support, OriginCapabilities.Support, Int64?, Revalidation.Kind?)]
    )
    func choice(
        method: ValidationMethod,
        head: OriginCapabilities.Support,
        conditional: OriginCapabilities.Support,
        length: Int64?,
        expected: Revalidation.Kind?
    ) {
        let capabilities = OriginCapabilities(head: head, conditional: conditional)
        #expect(
            Caching.chooseCheck(policy: CachePolicy(revalidate: method), capabilities: capabilities, length: length)
                == expected
        )
        var head = stored([("ETag", "\"a\"")])
        head.bodyLength = length
        let check = Caching.revalidation(
            request: request(),
            stored: head,
            policy: CachePolicy(revalidate: method),
            capabilities: capabilities
        )
        #expect(check?.kind == expected)
    }

    @Test(
        "What the answer to a HEAD teaches",
        arguments: [
            (304, .unchanged(stored()), OriginCapabilities(head: .honoured, conditional: .honoured)),
            (200, .unchanged(stored()), OriginCapabilities(head: .honoured, conditional: .refused)),
            (200, .changed(.etag), OriginCapabilities(head: .honoured)),
            (200, .changed(.noValidator), OriginCapabilities()),
            (405, .failed(405), OriginCapabilities()), (404, .gone(404), OriginCapabilities()),
            (500, .failed(500), OriginCapabilities()),
        ] as [(Int, HeadVerdict, OriginCapabilities)]
    )
    func head(status: Int, verdict: HeadVerdict, expected: OriginCapabilities) {
        var capabilities = OriginCapabilities()
        capabilities.noteHead(status: status, verdict: verdict)
        #expect(capabilities == expected)
    }

    @Test(
        "A HEAD that failed where GET did not is left alone for five minutes, and no longer where the clock is set back",
        arguments: [
            (0, .refused), (299, .refused), (300, .unknown), (100_000, .unknown), (-1, .unknown), (.min, .unknown),
        ] as [(Int64, OriginCapabilities.Support)]
    )
    func failedHead(seconds: Int64, expected: OriginCapabilities.Support) {
        var capabilities = OriginCapabilities(head: .honoured, conditional: .honoured)
        capabilities.noteFailedHead(now: arrival)
        let later = capabilities.current(at: seconds == .min ? .min : arrival + seconds)
        #expect(later.head == expected && later.conditional == .honoured)
        let kind = Caching.chooseCheck(policy: CachePolicy(), capabilities: later, length: nil)
        #expect(kind == (expected == .refused ? .conditional : .head))
        capabilities.noteHead(status: 200, verdict: .unchanged(stored()))
        #expect(capabilities.head == .honoured && capabilities.headFailedAt == nil)
    }

    @Test("What was seen of conditional GETs outweighs what a HEAD suggests")
    func order() {
        var capabilities = OriginCapabilities(conditional: .honoured)
        capabilities.noteHead(status: 200, verdict: .unchanged(stored()))
        #expect(capabilities == OriginCapabilities(head: .honoured, conditional: .honoured))
    }

    @Test(
        "What the answer to a conditional GET teaches",
        arguments: [
            (304, [], .honoured), (200, [("ETag", "\"a\"")], .refused), (200, [("ETag", "\"b\"")], .unknown),
            (200, [("ETag", "W/\"a\"")], .unknown), (200, [("Last-Modified", date(-9))], .refused),
            (200, [("Last-Modified", date(-8))], .unknown), (200, [], .unknown), (404, [("ETag", "\"a\"")], .unknown),
            (500, [], .unknown),
        ] as [(Int, [(String, String)], OriginCapabilities.Support)]
    )
    func conditional(status: Int, fields: [(String, String)], expected: OriginCapabilities.Support) {
        var capabilities = OriginCapabilities()
        let head = stored([("ETag", "\"a\""), ("Last-Modified", date(-9))])
        capabilities.noteConditional(stored: head, answer: response(status, fields))
        #expect(capabilities.conditional == expected)
        #expect(capabilities.head == .unknown)
    }
}
