// What redirects let be stored of the response that they lead to.

import HTTPWire
import Testing

@testable import HTTPCaching

@Suite struct RedirectTermsTests {
    private static let now: Int64 = 1_700_000_000

    /// What the answer at the end says after these redirects, each a status and its fields.
    private static func answer(
        _ redirects: [(Int, [(String, String)])],
        _ fields: [(String, String)] = [("Cache-Control", "max-age=600")],
        to request: [(String, String)] = [],
        policy: CachePolicy = CachePolicy(),
        temporary: RedirectTerms.Temporary = .unstored
    ) -> ResponseHead {
        var terms = RedirectTerms(temporary: temporary)
        let times = ResponseTimes(at: now)
        for (status, fields) in redirects {
            let head = ResponseHead(status: status, fields: Fields(fields))
            terms.note(head, to: Fields(request), policy: policy, times: times)
        }
        var answer = ResponseHead(status: 200, fields: Fields(fields))
        terms.apply(to: &answer, policy: policy, times: times)
        return answer
    }

    /// Whether it would be stored, and how many seconds it would be fresh.
    private static func stored(_ answer: ResponseHead, policy: CachePolicy = CachePolicy()) -> Int64? {
        let request = RequestHead(method: .get, target: "/", fields: Fields())
        let times = ResponseTimes(at: now)
        guard case .store = Caching.decideStore(request: request, response: answer, policy: policy, times: times) else {
            return nil
        }
        let head = Caching.makeStoredHead(request: request, response: answer, times: times, policy: policy)
        return Caching.freshnessLifetime(head, policy: policy).seconds - head.initialAge
    }

    @Test("the answer is fresh for no longer than each redirect, and one that is not stored forbids it for the answer")
    func lifetime() {
        let cases: [(Int, [(String, String)], Int64?)] = [
            (301, [], 600), (308, [], 600), (302, [], nil), (303, [], nil), (307, [], nil),
            (302, [("Cache-Control", "max-age=60")], 60), (307, [("Cache-Control", "max-age=6000")], 600),
            (301, [("Cache-Control", "max-age=60")], 60), (301, [("Cache-Control", "max-age=60"), ("Age", "50")], 10),
            (301, [("Cache-Control", "no-store")], nil), (308, [("Cache-Control", "private")], nil),
            (302, [("Cache-Control", "public, s-maxage=5, max-age=500")], 5),
            (301, [("Vary", "*")], nil), (301, [("Set-Cookie", "a=b")], nil),
            (301, [("Expires", "0")], nil), (302, [("Cache-Control", "max-age=0")], nil),
            (301, [("Last-Modified", "Tue, 14 Nov 2023 22:12:20 GMT")], 600),
        ]
        for (status, fields, seconds) in cases {
            #expect(Self.stored(Self.answer([(status, fields)])) == seconds, "\(status) \(fields)")
        }
        let two = Self.answer([(301, [("Cache-Control", "max-age=90")]), (302, [("Cache-Control", "max-age=40")])])
        #expect(Self.stored(two) == 40)
        #expect(two.fields.first(.age) == "560")
        #expect(Self.stored(Self.answer([(301, []), (302, [])])) == nil)
    }

    @Test("the redirect's directives reach a targeted field, too, which stands in for Cache-Control")
    func targeted() {
        let fields = [("CDN-Cache-Control", "max-age=100"), ("Cache-Control", "max-age=600")]
        #expect(Self.stored(Self.answer([(302, [])], fields)) == nil)
        #expect(Self.stored(Self.answer([(302, [("Cache-Control", "max-age=30")])], fields)) == 30)
        let understood = [("Cache-Control", "max-age=600, must-understand")]
        #expect(Self.stored(Self.answer([(302, [])], understood)) == nil)
    }

    @Test("what a redirect varies by, the answer varies by")
    func vary() {
        let answer = Self.answer(
            [(301, [("Vary", "Accept-Language")])],
            [("Vary", "Accept"), ("Cache-Control", "max-age=9")]
        )
        #expect(answer.fields.combined(.vary) == "Accept, Accept-Language")
        let library = CachePolicy(mode: .library)
        #expect(Self.answer([(302, [("Vary", "Accept")])], policy: library).fields.first(.vary) == "Accept")
    }

    @Test("a redirect that must not be used stale takes the answer along")
    func stale() {
        let answer = Self.answer([(302, [("Cache-Control", "max-age=60, must-revalidate")])])
        #expect(answer.fields.combined(.cacheControl) == "max-age=600, must-revalidate")
        let checked = Self.answer([(301, [("Cache-Control", "no-cache, max-age=60")])])
        #expect(checked.fields.combined(.cacheControl)?.contains("no-cache") == true)
        let temporary = Self.answer([(302, [("Cache-Control", "no-cache, max-age=60")])])
        #expect(temporary.fields.combined(.cacheControl)?.contains("no-store") == true)
    }

    @Test("library mode keeps what the origin does not forbid, for its own lifetime")
    func library() {
        let policy = CachePolicy(mode: .library)
        #expect(Self.stored(Self.answer([(302, [])], policy: policy), policy: policy) == CachePolicy.libraryTTL)
        for forbidding in ["no-store", "private"] {
            let answer = Self.answer([(302, [("Cache-Control", forbidding)])], policy: policy)
            #expect(Self.stored(answer, policy: policy) == nil)
        }
    }

    @Test("an answer to a client with credentials is stored only where each redirect allows that")
    func credentials() {
        let public_ = [("Cache-Control", "public, max-age=60")]
        for field in [("Authorization", "Bearer x"), ("Cookie", "a=b")] {
            #expect(Self.stored(Self.answer([(301, [])], public_, to: [field])) == nil, "\(field)")
            #expect(Self.stored(Self.answer([(301, public_)], public_, to: [field])) == 60, "\(field)")
        }
    }

    @Test("where temporary redirects are to be checked, the answer is stored and checked before each use")
    func checked() {
        let answer = Self.answer([(302, [])], temporary: .checked)
        #expect(answer.fields.combined(.cacheControl) == "max-age=600, no-cache")
        #expect(Self.stored(Self.answer([(302, [("Cache-Control", "no-store")])], temporary: .checked)) == nil)
        #expect(Self.answer([(301, [])], temporary: .checked).fields.combined(.cacheControl) == "max-age=600")
    }

    @Test("without redirects, and where nothing is stored, the answer stays as it is")
    func untouched() {
        #expect(Self.answer([]).fields.combined(.cacheControl) == "max-age=600")
        let none = CachePolicy(mode: .none)
        #expect(Self.answer([(302, [])], policy: none).fields.combined(.cacheControl) == "max-age=600")
    }
}
