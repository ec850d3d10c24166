// What an unsafe request has changed on its way through redirects, and whose word counts for other URLs.

import DownloadCore
import HTTPWire
import Testing

@Suite struct FetchTrailTests {
    private static let first = "http://a.test/1"

    private static func named(_ trail: FetchTrail, _ location: String) -> [String] {
        trail.urls(named: ResponseHead(status: 201, fields: Fields([("Location", location)])), first)
    }

    @Test func whatAnswersWithoutAnErrorHasChanged() {
        let trail = FetchTrail()
        trail.noteRedirect(of: "http://a.test/1", 307, to: .post)
        trail.noteRedirect(of: "http://a.test/2", 308, to: .post)
        trail.noteRedirect(of: "http://a.test/1", 307, to: .post)
        trail.noteAnswer(of: "http://a.test/3", 500, to: .post)
        #expect(trail.changed == ["http://a.test/1", "http://a.test/2"])
        let see = FetchTrail()
        see.noteRedirect(of: "http://a.test/1", 303, to: .post)
        see.noteAnswer(of: "http://a.test/2", 200, to: .get)
        #expect(see.changed == ["http://a.test/1"])
    }

    @Test func theOriginOfTheAnswerNamesWhatIsItsOwn() {
        let trail = FetchTrail()
        #expect(Self.named(trail, "/x") == ["http://a.test/x"])
        trail.noteAnswer(of: "http://b.test/3", 201, to: .put)
        #expect(Self.named(trail, "http://a.test/x").isEmpty)
        #expect(Self.named(trail, "http://b.test/x") == ["http://b.test/x"])
        trail.noteAnswer(of: "http://a.test/3", 200, to: .get)
        #expect(Self.named(trail, "http://a.test/x").isEmpty, "a GET changes nothing")
        // Another attempt, without redirects.
        trail.noteAnswer(of: nil, 201, to: .put)
        #expect(Self.named(trail, "/x") == ["http://a.test/x"])
    }
}
