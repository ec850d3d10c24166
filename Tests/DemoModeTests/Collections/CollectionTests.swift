// Demo collections: what each request answers and changes.

import Glibc
import HTTPWire
import Testing
import Trees

@testable import DemoMode

@Suite struct CollectionTests {
    static let file = """
        {"posts":[{"id":1,"title":"One","views":10,"author":{"name":"Ada"}},
        {"id":2,"title":"Two","views":30,"author":{"name":"Ben"}},
        {"id":3,"title":"Three","views":20,"author":{"name":"Ada"}}],
        "profile":{"name":"Me"}}
        """

    static func collection(_ text: String = file, id: String = "id", _ ids: NewIDs = .counting) throws -> DemoCollection
    {
        let file = DemoFile(path: "db.json", bytes: Array(text.utf8), contentType: "application/json")
        return try DemoCollection(file, idName: id, newIDs: ids)
    }

    static func ask(
        _ collection: DemoCollection,
        _ method: String,
        _ target: String,
        _ body: String = "",
        ifMatch: String? = nil,
        bits: UInt64 = 0
    ) -> (status: Int, body: String, fields: Fields) {
        let answer = collection.answer(
            CollectionRequest(
                method: method,
                target: target,
                prefix: "/api",
                ifMatch: ifMatch,
                body: Array(body.utf8),
                bits: bits
            )
        )
        return (answer.status, String(decoding: answer.body, as: UTF8.self), answer.fields)
    }

    /// The ids of a list.
    static func ids(_ collection: DemoCollection, _ query: String) throws -> String {
        let answer = ask(collection, "GET", "/posts" + query)
        let tree = try JSONReader.read(Array(answer.body.utf8))
        guard case .array(let rows) = tree else { return "\(answer.status)" }
        return rows.map { $0["id"]?.scalar ?? "-" }.joined()
    }

    @Test(
        arguments: [
            ("", "123"), ("?title=Two", "2"), ("?title=Two&title=One", "12"), ("?author.name=Ada", "13"),
            ("?none=1", ""),
            ("?id=3", "3"), ("?views_gte=20", "23"), ("?views_lte=20", "13"), ("?views_gte=15&views_lte=25", "3"),
            ("?id_ne=2", "13"), ("?id_ne=2&id_ne=1", "3"), ("?views_gt=20", "2"), ("?views_lt=20", "1"),
            ("?views_gt=9.5&views_lt=10.5", "1"),
            ("?title_like=t", "23"), ("?q=ADA", "13"), ("?q=three", "3"),
            ("?_sort=views", "132"), ("?_sort=views&_order=desc", "231"), ("?_sort=-views", "231"),
            ("?_sort=author.name,views&_order=asc,desc", "312"), ("?_sort=none", "123"), ("?_limit=2", "12"),
            ("?_start=1", "23"), ("?_start=1&_end=2", "2"), ("?_start=1&_limit=1", "2"), ("?_page=2&_limit=2", "3"),
            ("?_page=9", ""), ("?_page=0", "123"), ("?_=17", "123"), ("?_end=0&_start=2", ""),
        ]
    )
    func lists(query: String, ids: String) throws { #expect(try Self.ids(Self.collection(), query) == ids) }

    @Test(arguments: ["?_sorted=a", "?_embed=x", "?_page=x", "?_limit=-1", "?_order=up&_sort=id"])
    func refusesAQuery(query: String) throws {
        let answer = Self.ask(try Self.collection(), "GET", "/posts" + query)
        #expect(answer.status == 400)
        #expect(answer.fields.first(.contentType) == "application/problem+json")
    }

    @Test func aQueryHasABound() throws {
        let items = (0...100).map { "id=\($0)" }
        #expect(try Self.ids(Self.collection(), "?" + items.dropLast().joined(separator: "&")) == "123")
        #expect(Self.ask(try Self.collection(), "GET", "/posts?" + items.joined(separator: "&")).status == 400)
    }

    /// A Double takes the first two for one.
    @Test func largeNumbersAreNotRounded() throws {
        let collection = try Self.collection(
            #"[{"id":9007199254740993},{"id":9007199254740992},{"id":3,"at":9007199254740992.5}]"#
        )
        #expect(
            Self.ask(collection, "GET", "/?_sort=id&id_gt=3").body
                == "[{\"id\":9007199254740992},{\"id\":9007199254740993}]"
        )
        #expect(Self.ask(collection, "GET", "/?at_gt=9007199254740992").body.contains("992.5"))
        #expect(Self.ask(collection, "GET", "/?id_gte=9007199254740993").body == "[{\"id\":9007199254740993}]")
    }

    /// The name of such an id begins as those of parameters do.
    @Test func idsOfOtherNamesCanBeAskedFor() throws {
        let collection = try Self.collection(#"[{"_id":"a"},{"_id":"b"}]"#, id: "_id")
        #expect(Self.ask(collection, "GET", "/?_id=b").body == #"[{"_id":"b"}]"#)
        #expect(Self.ask(collection, "GET", "/?_id_ne=b").body == #"[{"_id":"a"}]"#)
        #expect(Self.ask(collection, "GET", "/?_di=b").status == 400)
    }

    @Test func aListWithoutObjectsIsAValue() throws {
        let collection = try Self.collection(#"{"tags":["a","b"],"posts":[]}"#)
        #expect(Self.ask(collection, "GET", "/tags").body == #"["a","b"]"#)
        #expect(Self.ask(collection, "PUT", "/tags", "{}").fields.first("Allow") == "GET, HEAD, OPTIONS")
        #expect(Self.ask(collection, "POST", "/posts", "{}").status == 201)
    }

    /// Tens of thousands of members are merged in one pass: the square of them takes many seconds.
    @Test func aPatchOfManyMembersIsMergedInOnePass() throws {
        func members(_ value: String) -> String { (0..<80_000).map { "\"m\($0)\":\(value)" }.joined(separator: ",") }
        let collection = try Self.collection("[{\"id\":1,\(members("1"))}]")
        let before = threadNanoseconds()
        let body = Self.ask(collection, "PATCH", "/1", "{\(members("2")),\"m7\":null}".replacing("\"m7\":2,", with: ""))
            .body
        #expect(threadNanoseconds() - before < 20_000_000_000)
        #expect(
            body.hasPrefix("{\"id\":1,\"m0\":2,") && body.contains("\"m6\":2,\"m8\":2")
                && body.hasSuffix("\"m79999\":2}")
        )
    }

    /// Of this thread, so that other tests do not count.
    private func threadNanoseconds() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }

    @Test func pagesHaveLinks() throws {
        let answer = Self.ask(try Self.collection(), "GET", "/posts?title_ne=x&_page=2&_limit=1")
        #expect(answer.fields.first("X-Total-Count") == "3")
        #expect(
            answer.fields.first("Link") == """
                </api/posts?title_ne=x&_page=1&_limit=1>; rel="first", </api/posts?title_ne=x&_page=1&_limit=1>; rel="prev", \
                </api/posts?title_ne=x&_page=3&_limit=1>; rel="next", </api/posts?title_ne=x&_page=3&_limit=1>; rel="last"
                """
        )
        let only = Self.ask(try Self.collection(), "GET", "/posts?_page=1")
        #expect(only.fields.first("Link")?.contains("next") == false)
        #expect(only.fields.first("Link")?.contains("prev") == false)
    }

    @Test func readsOneAndAll() throws {
        let collection = try Self.collection()
        #expect(
            Self.ask(collection, "GET", "/posts/2").body
                == #"{"id":2,"title":"Two","views":30,"author":{"name":"Ben"}}"#
        )
        #expect(Self.ask(collection, "GET", "/profile").body == #"{"name":"Me"}"#)
        #expect(Self.ask(collection, "GET", "/").body.hasPrefix(#"{"posts":[{"id":1"#))
        for path in ["/posts/9", "/none", "/posts/1/title", "/profile/1"] {
            #expect(Self.ask(collection, "GET", path).status == 404, "\(path)")
        }
        #expect(Self.ask(collection, "GET", "/none").body.contains("/posts, /profile"))
    }

    @Test func createsReplacesMergesAndDeletes() throws {
        let collection = try Self.collection()
        let created = Self.ask(collection, "POST", "/posts", #"{"title":"Four"}"#)
        #expect((created.status, created.body) == (201, #"{"id":4,"title":"Four"}"#))
        #expect(created.fields.first("Location") == "/api/posts/4")
        #expect(Self.ask(collection, "GET", "/posts/4").body == created.body)
        let replaced = Self.ask(collection, "PUT", "/posts/4", #"{"id":99,"body":"x"}"#)
        #expect((replaced.status, replaced.body) == (200, #"{"id":4,"body":"x"}"#))
        let merged = Self.ask(collection, "PATCH", "/posts/4", #"{"body":null,"meta":{"a":1,"b":null}}"#)
        #expect(merged.body == #"{"id":4,"meta":{"a":1}}"#)
        let deleted = Self.ask(collection, "DELETE", "/posts/2")
        #expect((deleted.status, deleted.body) == (200, "{}"))
        #expect(try Self.ids(collection, "") == "134")
        #expect(Self.ask(collection, "GET", "/posts/4").body == merged.body)
        #expect(Self.ask(collection, "GET", "/posts/3").body.contains("Three"))
        #expect(Self.ask(collection, "PATCH", "/profile", #"{"age":3}"#).body == #"{"name":"Me","age":3}"#)
        collection.reset()
        #expect(try Self.ids(collection, "") == "123")
        #expect(Self.ask(collection, "GET", "/profile").body == #"{"name":"Me"}"#)
    }

    @Test(
        arguments: [
            ("PUT", "/posts/9", "{}", 404), ("PATCH", "/posts/9", "{}", 404), ("DELETE", "/posts/9", "", 404),
            ("POST", "/posts", "[1]", 400), ("POST", "/posts", "{", 400), ("POST", "/posts", #"{"id":2}"#, 409),
            ("DELETE", "/posts", "", 405), ("PUT", "/posts", "{}", 405), ("POST", "/posts/1", "{}", 405),
            ("POST", "/profile", "{}", 405), ("DELETE", "/profile", "", 405), ("POST", "/", "{}", 405),
            ("TRACE", "/posts", "", 405), ("TRACE", "/posts/1", "", 405), ("TRACE", "/none", "", 404),
            ("POST", "/posts", #"{"id":{}}"#, 400), ("POST", "/posts", #"{"id":""}"#, 400),
            ("POST", "/posts", #"{"id":true}"#, 400), ("POST", "/posts", #"{"id":4.0}"#, 400),
        ]
    )
    func refuses(method: String, path: String, body: String, status: Int) throws {
        let collection = try Self.collection()
        let answer = Self.ask(collection, method, path, body)
        #expect(answer.status == status)
        #expect((answer.fields.first("Allow") != nil) == (status == 405))
        // Nothing has changed.
        #expect(Self.ask(collection, "GET", "/").body == Self.ask(try Self.collection(), "GET", "/").body)
    }

    /// What `Allow` names is what is not refused with it.
    @Test(
        arguments: [
            ("/posts", "GET, HEAD, POST, OPTIONS"), ("/posts/1", "GET, HEAD, PUT, PATCH, DELETE, OPTIONS"),
            ("/profile", "GET, HEAD, PUT, PATCH, OPTIONS"), ("/", "GET, HEAD, OPTIONS"),
        ]
    )
    func saysWhatATargetTakes(path: String, methods: String) throws {
        let options = Self.ask(try Self.collection(), "OPTIONS", path)
        #expect((options.status, options.body) == (204, ""))
        #expect(options.fields.first("Allow") == methods)
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"] {
            let answer = Self.ask(try Self.collection(), method, path, "{}")
            #expect((answer.status == 405) == !methods.split(separator: ", ").contains(Substring(method)), "\(method)")
            if answer.status == 405 { #expect(answer.fields.first("Allow") == methods) }
        }
    }

    @Test func anIdThatIsTheHighestNumberIsFollowedByAFreeOne() throws {
        let collection = try Self.collection()
        #expect(Self.ask(collection, "POST", "/posts", #"{"id":9223372036854775807}"#).status == 201)
        #expect(Self.ask(collection, "POST", "/posts", "{}").body == #"{"id":4}"#)
        #expect(Self.ask(collection, "POST", "/posts", #"{"id":null}"#).body == #"{"id":5}"#)
    }

    @Test func changesOnlyWhatTheClientKnows() throws {
        let collection = try Self.collection()
        let tag = try #require(Self.ask(collection, "GET", "/posts/1").fields.first("ETag"))
        #expect(Self.ask(collection, "PATCH", "/posts/1", #"{"views":11}"#, ifMatch: "\"x\", \(tag)").status == 200)
        #expect(Self.ask(collection, "PATCH", "/posts/1", #"{"views":12}"#, ifMatch: tag).status == 412)
        #expect(Self.ask(collection, "DELETE", "/posts/1", ifMatch: tag).status == 412)
        #expect(Self.ask(collection, "DELETE", "/posts/1", ifMatch: "*").status == 200)
    }

    @Test func aListAloneIsTheService() throws {
        let collection = try Self.collection(#"[{"key":"a"},{"key":"b"}]"#, id: "key", .uuid)
        #expect(Self.ask(collection, "GET", "/").body == #"[{"key":"a"},{"key":"b"}]"#)
        #expect(Self.ask(collection, "GET", "").status == 200)
        #expect(Self.ask(collection, "GET", "/b").body == #"{"key":"b"}"#)
        let first = Self.ask(collection, "POST", "/", "{}", bits: 5)
        #expect(first.body.contains(#"{"key":""#))
        #expect(first.body.count == #"{"key":""}"#.count + 36)
        // The same bits again give another id, since that one is taken.
        let second = Self.ask(collection, "POST", "/", "{}", bits: 5)
        #expect(second.status == 201)
        #expect(second.body != first.body)
        #expect(Self.ask(collection, "POST", "/", #"{"key":"c"}"#).fields.first("Location") == "/api/c")
        #expect(Self.ask(collection, "DELETE", "/c").status == 200)
    }

    @Test(
        arguments: [
            ("{", "it is not JSON"), ("3", "neither a list"), (#"{"a":[{"id":1},{}]}"#, "'a': item 2 has no 'id'"),
            (#"[{"id":1},{"id":1}]"#, "two items have the id '1'"), (#"[{"id":1},3]"#, "item 2 has no 'id'"),
        ]
    )
    func refusesAFile(text: String, message: String) throws {
        let error = try #require(throws: CollectionFileError.self) { try Self.collection(text) }
        #expect(error.description.contains(message))
    }

    @Test func isBounded() throws {
        let collection = try Self.collection(#"{"a":[]}"#)
        let large = "{\"text\":\"\(String(repeating: "x", count: 4 << 20))\"}"
        for status in [201, 201, 201, 507] { #expect(Self.ask(collection, "POST", "/a", large).status == status) }
        #expect(Self.ask(collection, "DELETE", "/a/1").status == 200)
        #expect(Self.ask(collection, "POST", "/a", large).status == 201)
        let full = Self.ask(collection, "PATCH", "/a/2", "{\"more\":\(large)}")
        #expect(full.status == 507)
        #expect(full.body.contains("begin anew with 'drydock demo reset'"))
        #expect(Self.ask(collection, "PATCH", "/a/2", #"{"text":"short"}"#).status == 200)
    }

    @Test func manyAtOnceLoseNothing() async throws {
        let collection = try Self.collection(#"{"a":[]}"#)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask { for _ in 0..<250 { _ = Self.ask(collection, "POST", "/a", #"{"n":1}"#) } }
            }
        }
        let answer = Self.ask(collection, "GET", "/a?_limit=1")
        #expect(answer.fields.first("X-Total-Count") == "2000")
        #expect(Self.ask(collection, "GET", "/a/2000").status == 200)
    }
}
