// Groups of calls: what is taken over, and what is refused.

import Policies
import Testing

@testable import Configuration

@Suite struct GroupKeyTests {
    private let service =
        "services: [{ name: s, match: { prefix: /s }, base_url: 'http://a.example', endpoints: "
        + "[{ name: user, method: PUT, path: '/users/:id/x' }, { name: files, path: '/files/*' }, { name: root, path: / }] }]\n"

    @Test func everythingIsTakenOver() throws {
        let folder = try Folder()
        let loaded = try folder.load(
            service + """
                groups:
                  - name: g
                    every: 1h
                    at_start: true
                    calls:
                      - { service: s, path: /login, body: "{}", take: { token: body.a.token, code: status } }
                      - { service: s, endpoint: user, params: { id: "a/$(token)" }, query: { q: 1 }, headers: { X-A: "$(token)" }, when: { value: code, is: 200 } }
                      - { service: s, endpoint: root, when: { value: code, is_not: 200 } }
                  - { name: empty, mode: concurrent, on_error: cancel }

                """
        )
        var login = GroupCallConfiguration(service: "s", method: "POST", path: PlaceholderText("/login"))
        login.body = PlaceholderText("{}")
        login.take = ["token": .body(["a", "token"]), "code": .status]
        var user = GroupCallConfiguration(service: "s", method: "PUT", path: PlaceholderText("/users/a%2F$(token)/x"))
        user.path = PlaceholderText([
            .text("/"), .text("users"), .text("/"), .text("a%2F"), .value("token"), .text("/"), .text("x"),
        ])
        user.query = [.init(name: "q", value: PlaceholderText("1"))]
        user.headers = [.init(name: "X-A", value: PlaceholderText("$(token)"))]
        user.condition = ValueCondition(name: "code", text: "200", wantsEqual: true)
        var root = GroupCallConfiguration(service: "s", method: "GET", path: PlaceholderText("/"))
        root.condition = ValueCondition(name: "code", text: "200", wantsEqual: false)
        let first = try #require(loaded.groups.first)
        #expect(first.name == "g" && first.mode == .serial && first.onError == .stop)
        #expect(first.schedule?.every == 3_600_000_000_000 && first.schedule?.atStart == true)
        #expect(first.calls == [login, user, root])
        let empty = loaded.groups[1]
        #expect(empty.mode == .concurrent && empty.onError == .cancel && empty.calls.isEmpty && empty.schedule == nil)
    }

    @Test(
        arguments: [
            ("service: t, path: /a", "does not exist"), ("service: s", "give one of them"),
            ("service: s, path: /a, endpoint: root", "give one of them"), ("service: s, path: a", "is not a path"),
            ("service: s, endpoint: usr", "did you mean 'user'"), ("service: s, endpoint: user", "parameter 'id'"),
            ("service: s, endpoint: files", "ends with '*'"),
            ("service: s, endpoint: root, params: { a: b }", "has no parameter 'a'"),
            ("service: s, path: /a, params: { a: b }", "is for 'endpoint'"),
            ("service: s, endpoint: root, method: PUT", "remove 'method'"),
            ("service: s, path: /a, take: { t: token }", "write body.KEY"),
            ("service: s, path: /a, take: { 't t': status }", "is not a name"),
            ("service: s, path: '/$(t)'", "no earlier call takes a value 't'"),
            ("service: s, path: /a, take: { t: status }, headers: { A: $(t) }", "no earlier call takes"),
            ("service: s, path: /a, when: { value: t, is: a }", "no earlier call takes"),
            ("service: s, path: /a, when: { value: t }", "either 'is' or 'is_not'"),
            ("service: s, path: /a, when: { value: t, is: a, is_not: b }", "either 'is' or 'is_not'"),
        ]
    )
    func refusals(call: String, words: String) throws {
        let found = errors(service + "groups: [{ name: g, calls: [{ \(call) }] }]\n")
        #expect(found.count == 1 && found[0].contains(words), "\(found)")
    }

    @Test(
        arguments: [
            ("{ name: g, every: 1ms }", "write 1s or more"),
            ("{ name: g }, { name: g }", "earlier group"), ("{ name: g, on_error: cancel-rest }", "cancel"),
            ("{ name: g, mode: concurrent, calls: [{ service: s, path: /a, take: { t: status } }] }", "begin together"),
        ]
    )
    func refusalsOfGroups(groups: String, words: String) throws {
        let found = errors(service + "groups: [\(groups)]\n")
        #expect(found.count == 1 && found[0].contains(words), "\(found)")
    }
}
