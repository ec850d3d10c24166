// Conditions: each clause by itself, several together, and what the differences say.

import HTTPWire
import Matching
import Testing
import Trees

@Suite struct RequestConditionTests {
    /// A pattern that the tests know to be one.
    static func pattern(_ text: String) -> Pattern {
        do { return try Pattern(text) } catch { preconditionFailure("\(error)") }
    }

    static func request(
        _ method: String = "GET",
        _ target: String = "/users/7?role=admin&role=owner&empty&a%20b=c+d",
        fields: [(String, String)] = [
            ("X-Tenant", "acme"), ("Cookie", "session=abc; theme=dark"), ("Cookie", "session=def"),
            ("Accept", "text/html"),
        ],
        body: String? = nil
    ) -> RequestParts {
        RequestParts(
            method: method,
            target: target,
            fields: Fields(fields),
            parameters: ["id": Array("7".utf8)],
            body: body.map { .whole(WholeBody(Array($0.utf8))) } ?? .unread
        )
    }

    /// Items of a query that no clause asks for are refused, however they are written, and named.
    @Test func onlyTheQueryThatIsAskedFor() {
        let clause = RequestClause.onlyQuery(["role", "a b", "empty"])
        #expect(clause.holds(Self.request()))
        #expect(clause.holds(Self.request("GET", "/a")) && clause.holds(Self.request("GET", "/a?")))
        #expect(!RequestClause.onlyQuery([]).holds(Self.request("GET", "/a?x")))
        let other = Self.request("GET", "/a?role=x&Role=y&%20=z")
        #expect(!clause.holds(other))
        #expect(clause.difference(other) == "query has 'Role', ' ', which the rule does not ask for")
        #expect(RequestCondition([clause]).distance(other) == 50)
    }

    @Test(
        arguments: [
            (TextTest.equals("a"), ["a"], true), (.equals("a"), ["b", "a"], true), (.equals("a"), ["A"], false),
            (.equals("a"), [], false), (.oneOf(["a", "b"]), ["c", "b"], true), (.oneOf([]), ["a"], false),
            (.contains("ell"), ["hello"], true), (.contains("elo"), ["hello"], false), (.contains(""), [""], true),
            (.matches(pattern("^h.*o$")), ["hello"], true), (.matches(pattern("^e")), ["hello"], false),
            (.present(true), [""], true), (.present(true), [], false), (.present(false), [], true),
            (.present(false), [""], false), (.not(.equals("a")), ["b"], true), (.not(.equals("a")), [], true),
            (.not(.equals("a")), ["b", "a"], false), (.all([.contains("a"), .not(.equals("a"))]), ["ab"], true),
            (.all([.contains("a"), .not(.equals("a"))]), ["a"], false), (.all([]), [], true),
        ] as [(TextTest, [String], Bool)]
    )
    func texts(test: TextTest, values: [String], holds: Bool) {
        #expect(test.holds(values, within: PatternTime()) == holds)
    }

    @Test(
        arguments: [
            (RequestClause.method(["GET", "HEAD"]), true), (.method(["POST"]), false),
            (.path(.equals("/users/7")), true), (.path(.matches(pattern("^/users/\\d+$"))), true),
            (.path(.contains("role")), false), (.parameter("id", .equals("7")), true),
            (.parameter("id", .equals("8")), false), (.parameter("name", .present(false)), true),
            (.query("role", .equals("admin")), true), (.query("role", .equals("owner")), true),
            (.query("role", .not(.equals("owner"))), false), (.query("empty", .equals("")), true),
            (.query("a b", .equals("c d")), true), (.query("none", .present(false)), true),
            (.query("Role", .present(true)), false), (.field("x-tenant", .equals("acme")), true),
            (.field("X-Tenant", .equals("other")), false), (.cookie("session", .equals("def")), true),
            (.cookie("theme", .equals("dark")), true), (.cookie("them", .present(true)), false),
            (.body(.text(.present(true))), false),
        ] as [(RequestClause, Bool)]
    )
    func clauses(clause: RequestClause, holds: Bool) {
        #expect(clause.holds(Self.request()) == holds)
    }

    static let document =
        #"{"user": {"name": "Ann", "age": 41.0, "tags": ["a", "b"]}, "items": [{"id": 1, "x": null}, {"id": 2}]}"#

    static func tree(_ text: String) -> ContentTree { (try? JSONReader.read(Array(text.utf8))) ?? .null }

    @Test(
        arguments: [
            (["user", "name"], TreeTest.equals(.string("Ann")), true), (["user", "age"], .equals(.number("41")), true),
            (["user", "age"], .equals(.string("41")), false), (["items", "1", "id"], .equals(.number("2")), true),
            (["items", "2", "id"], .present(false), true), (["items", "0", "x"], .equals(.null), true),
            (["items", "x"], .present(true), false), (["user", "name"], .matches(pattern("^A")), true),
            (["user"], .matches(pattern("A")), false), (["user", "name"], .contains(.string("nn")), true),
            (["user", "tags"], .contains(.string("b")), true), (["user", "tags"], .contains(.string("c")), false),
            (["user"], .contains(tree(#"{"tags": ["b"], "age": 41}"#)), true),
            (["user"], .contains(tree(#"{"tags": ["b", "c"]}"#)), false),
            (["items"], .contains(tree(#"[{"id": 2}]"#)), true), (["items"], .contains(tree(#"{"id": 3}"#)), false),
            (["user", "name"], .oneOf([.string("Bob"), .string("Ann")]), true),
            (["user", "name"], .not(.equals(.string("Ann"))), false), (["nobody"], .not(.equals(.string("Ann"))), true),
            (
                [],
                .equals(
                    tree(
                        #"{"items": [{"x": null, "id": 1}, {"id": 2.0}], "user": {"tags": ["a", "b"], "age": 41, "name": "Ann"}}"#
                    )
                ), true
            ),
            ([], .equals(tree(#"{"user": {}}"#)), false), ([], .contains(tree(#"{"user": {}}"#)), true),
        ] as [([String], TreeTest, Bool)]
    )
    func documents(path: [String], test: TreeTest, holds: Bool) {
        let clause = RequestClause.body(.json(path, test))
        #expect(clause.holds(Self.request(body: Self.document)) == holds)
    }

    @Test func otherBodies() {
        let form = Self.request(body: "name=Ann+B&name=C&x")
        #expect(RequestClause.body(.form("name", .equals("Ann B"))).holds(form))
        #expect(RequestClause.body(.form("x", .present(true))).holds(form))
        #expect(!RequestClause.body(.form("y", .present(true))).holds(form))
        #expect(RequestClause.body(.text(.contains("Ann+B"))).holds(form))
        #expect(RequestClause.body(.text(.matches(Self.pattern("^name=.*x$")))).holds(form))
        // What is no JSON has no values, and fails the opposite of a test, too.
        #expect(!RequestClause.body(.json(["name"], .not(.equals(.string("Ann"))))).holds(form))
        var long = form
        long.body = .tooLong
        #expect(!RequestClause.body(.text(.present(true))).holds(long))
    }

    @Test func allClausesMustHoldAndTheDifferencesSayWhichDoNot() {
        let condition = RequestCondition([
            .method(["POST", "PUT"]), .query("role", .equals("admin")), .field("X-Tenant", .not(.equals("acme"))),
            .cookie("theme", .oneOf(["light", "grey"])), .path(.matches(Self.pattern("^/orders"))),
            .parameter("id", .present(false)), .query("page", .contains("2")),
        ])
        #expect(!condition.holds(Self.request()))
        #expect(
            condition.differences(Self.request()) == [
                "method is 'GET', not 'POST' or 'PUT'", "fields.X-Tenant is 'acme', not anything but 'acme'",
                "cookies.theme is not what the rule asks for",
                "path is '/users/7', not a text with a match of ^/orders", "params.id is '7', not missing",
                "query.page is missing, not a text with '2' in it",
            ]
        )
        #expect(RequestCondition().holds(Self.request()) && RequestCondition().differences(Self.request()).isEmpty)
    }

    /// What a rule wants of a credential is a secret of the rule's, and what a request brought one of its sender's: the
    /// answer, the log and `explain` tell neither.
    @Test(
        arguments: [
            (.field("Authorization", .equals("Bearer s3cret")), "fields.Authorization is not what the rule asks for"),
            (.field("X-Api-Key", .matches(pattern("s3cret"))), "fields.X-Api-Key is missing"),
            (.cookie("theme", .not(.equals("dark"))), "cookies.theme is not what the rule asks for"),
            (.cookie("session", .present(false)), "cookies.session is there, and has to be missing"),
            (.query("access_token", .equals("s3cret")), "query.access_token is not what the rule asks for"),
            (.body(.json(["user", "password"], .equals(.string("s3cret")))), "body.json.user.password is missing"),
            (.body(.json(["token"], .equals(.string("s3cret")))), "body.json.token is not what the rule asks for"),
            (.body(.json([], .contains(tree(#"{"password": "s3cret"}"#)))), "body is not what the rule asks for"),
            (.body(.json([], .equals(tree("1")))), "body is not what the rule asks for"),
            (.body(.form("client_secret", .equals("s3cret"))), "body.form.client_secret is missing"),
            (.body(.text(.contains("password=s3cret"))), "body.text is not what the rule asks for"),
        ] as [(RequestClause, String)]
    )
    func secretsAreNotTold(clause: RequestClause, said: String) {
        let request = Self.request(
            "POST",
            "/?access_token=mine",
            fields: [("Authorization", "Bearer mine"), ("Cookie", "session=mine; theme=dark")],
            body: #"{"token": "mine"}"#
        )
        #expect(RequestCondition([clause]).differences(request) == [said])
    }

    /// Numbers of 64 bits that a Double takes for one.
    @Test(
        arguments: [
            ("9007199254740993", "9007199254740992", false), ("9007199254740993", "9007199254740993.0", true),
            ("1e2", "100", true), ("0.1", "1e-1", true), ("-0", "0", true), ("1e400", "1e401", false),
            ("1", "-1", false),
        ]
    )
    func numbersAreComparedExactly(number: String, other: String, isSame: Bool) {
        let clause = RequestClause.body(.json(["id"], .equals(.number(other))))
        #expect(clause.holds(Self.request(body: "{\"id\": \(number)}")) == isSame)
    }

    @Test func aRuleForGETIsOneForHEAD() {
        #expect(RequestClause.method(["GET"]).holds(Self.request("HEAD")))
        #expect(!RequestClause.method(["HEAD"]).holds(Self.request("GET")))
        #expect(!RequestClause.method(["POST"]).holds(Self.request("HEAD")))
    }

    /// A form of thousands of values does not get a pattern's whole time for each of them, and neither does the reason.
    @Test func allValuesOfARequestShareOneTime() {
        let body = (0..<4000).map { "a=\(String(repeating: "a", count: 40))\($0)!" }.joined(separator: "&")
        let request = Self.request("POST", "/", body: body)
        let condition = RequestCondition([.body(.form("a", .matches(Self.pattern("^(a+)+$"))))])
        let before = Pattern.threadTime()
        #expect(!condition.holds(request))
        #expect(condition.distance(request) > 0 && condition.differences(request).count == 1)
        // 50 ms for the patterns, and what it takes to read the form; thousands of times that without.
        #expect(Pattern.threadTime() - before < 5_000_000_000)
    }

    /// From the nearest to the farthest of a request for `/users/7`.
    @Test func aConditionIsTheNearerTheMoreTheRequestIsLikeIt() {
        let conditions = [
            [RequestClause.method(["GET"])], [.cookie("theme", .equals("dart"))],
            [.path(.equals("/users/8"))], [.method(["POST"])],
            [.path(.equals("/users/7")), .query("page", .present(true))],
            [.path(.matches(Self.pattern("^/orders/")))], [.path(.equals("/tpl")), .method(["GET"])],
            [.path(.equals("/tpl")), .method(["POST"])],
        ]
        let distances = conditions.map { RequestCondition($0).distance(Self.request()) }
        #expect(distances.first == 0)
        #expect(distances == distances.sorted() && Set(distances).count == distances.count, "\(distances)")
        // A body that is there is nearer than none.
        let body = RequestCondition([.body(.text(.equals("x")))])
        #expect(body.distance(Self.request(body: "y")) < body.distance(Self.request(body: "")))
        #expect(body.distance(Self.request()) == body.distance(Self.request(body: "")))
    }

    @Test(
        arguments: [
            ("", "", 0), ("a", "", 100), ("a", "b", 100), ("/users", "/users", 0), ("/users", "/usres", 33),
            ("abc", "abcd", 25), ("aa", "aaa", 33), ("aaa", "aa", 33), ("xay", "xby", 33),
        ]
    )
    func textsDifferBetweenTheirEnds(one: String, other: String, share: Int) {
        #expect(TextDistance.between(one.utf8, other.utf8) == share)
    }

    @Test func differencesOfBodiesSayWhatWasFound() {
        let condition = RequestCondition([
            .body(.json(["user", "name"], .equals(.string("Bob")))),
            .body(.json(["items", "0", "id"], .present(false))),
            .body(.form("a", .equals("b"))), .body(.text(.contains("zzz"))),
        ])
        #expect(condition.needsBody)
        #expect(
            condition.differences(Self.request(body: Self.document)) == [
                "body.json.user.name is \"Ann\", not \"Bob\"", "body.json.items.0.id is 1, not missing",
                "body.form.a is missing, not 'b'", "body.text is not a text with 'zzz' in it",
            ]
        )
        #expect(
            condition.differences(Self.request()).first == "body.json.user.name needs the body"
        )
    }
}
