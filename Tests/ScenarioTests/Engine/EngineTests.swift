// The engine against the daemon: a script that is wrong fails where it is wrong, and says what came instead.

import TestSupport
import Testing

extension Scenarios.Scripted {
    /// The refresh behind the last step begins when its answer has been read.
    private static let refreshed =
        "  origin /s\n    Cache-Control: max-age=10, stale-while-revalidate=60\n    body s\n  get /s\n"
        + "  asked\n    GET /s\n  clock 20s\n  get /s\n"

    /// A script whose last step is wrong, the line that must be named, and a part of what must be said.
    static let wrong: [(script: String, line: Int, says: String)] = [
        ("  get /\n    404", 8, "status\n  expected 404\n  got 200"),
        ("  get /none\n    404", 7, "no answer for: [\"GET /none\"]"),
        ("  get /\n    body two", 8, "expected “two” (3 bytes)\n  got “one” (3 bytes)"),
        ("  get /\n    body -", 8, "got “one”"),
        ("  get /\n    body ~ two", 8, "got “one”"),
        ("  post /p", 7, "no answer for: [\"POST /p\"]"),
        (
            "  get /\n  asked\n    GET /\n      body x", 9,
            "received the body\n  expected “x” (1 bytes)\n  got “” (0 bytes)"
        ),
        ("  get /\n    body pattern 0..<3", 8, "got 3 bytes, not of the pattern"),
        ("  get /\n    ETag: \"2\"", 8, "expected “\"2\"”\n  got “\"1\"”"),
        ("  get /\n    ETag: -", 8, "expected no such field"),
        ("  get /\n    X: ~", 8, "got no such field"),
        ("  get /\n    ETag: ~ 2", 8, "expected something with “2”"),
        ("  get /\n    ETag: !~ 1", 8, "expected nothing with “1”"),
        ("  get /\n    end cut", 8, "expected a body that is cut"),
        ("  get /\n    interim 103", 8, "expected 103\n  got none"),
        ("  get /\n    trailer X: 1", 8, "got no such field"),
        ("  get /\n    reason Fine", 8, "expected Fine"),
        ("  get /\n  asked nothing", 8, "expected []\n  got [\"GET /\"]"),
        ("  get /\n  asked\n    HEAD /", 8, "expected [\"HEAD /\"]\n  got [\"GET /\"]"),
        ("  get /\n  asked\n    GET /\n      Via: -", 10, "asked Via\n  expected no such field"),
        ("  get /\n  clock 61s\n  get /\n    Age: 61", 10, "expected “61”\n  got “0”"),
        (refreshed + "  asked nothing", 15, "expected []\n  got [\"GET /s\"]"),
        (refreshed, 14, "after its last “asked” the origin was asked\n  got [\"GET /s\"]"),
        ("  explain /\n    > Bad@Name: x\n    !~ two", 7, "explain failed"),
        ("  release /", 7, "nothing of the origin's script waits"),
        ("  finish A", 7, "A was not started"),
        ("  start A GET /", 1, "A was started and never finished"),
        ("  origin /\n    404\n  get /new", 9, "no answer for"),
        ("  origin /cut\n    cut 2\n    body four\n  get /cut", 10, "end\n  expected a complete body"),
        ("  origin /e\n    interim 103\n    close\n  get /e", 10, "interim\n  expected 0\n  got [103]"),
        ("  origin /d\n    500\n  get /d", 9, "status\n  expected 200, as nothing is said\n  got 500"),
    ]

    @Test func aWrongScriptFailsWhereItIsWrong() throws {
        let fleet = try #require(Fleet.current)
        for (script, line, says) in Self.wrong {
            let start =
                "scenario wrong\n  origin /\n    Cache-Control: max-age=60\n    ETag: \"1\"\n    body one\n  settle\n"
            let parser = ScriptParser(file: "wrong", text: start + script + "\n")
            #expect(parser.errors.isEmpty, "\(script)\n\(parser.errors)")
            let failures = try fleet.run(try #require(parser.scenarios.first))
            #expect(Set(failures.map(\.way)) == Set(ScriptFiles.ways), "\(script)\n\(failures)")
            for failure in failures {
                #expect(failure.position == ScriptPosition(file: "wrong", line: line), "\(script)\n\(failure)")
            }
            #expect(failures.contains { $0.message.contains(says) }, "\(script)\n\(failures)")
        }
    }

    @Test func theOriginByAnotherNameTakesForwardMode() throws {
        let fleet = try #require(Fleet.current)
        let text =
            "scenario name\n  origin /\n    body one\n  get //localhost/\n  asked\n    GET /\n      Host: ~ localhost:\n"
        let scenario = try #require(ScriptParser(file: "name", text: text).scenarios.first)
        let failures = try fleet.run(scenario)
        #expect(failures.map(\.way) == ScriptFiles.ways.filter { $0.mode == .reverse }, "\(failures)")
        for failure in failures { #expect(failure.message.contains("takes “only forward”")) }
    }

    @Test func aDaemonThatEndedIsStartedAnew() throws {
        let fleet = try #require(Fleet.current)
        let text = "scenario own\n  own daemon\n  origin /\n    body one\n  get /\n    body one\n"
        let scenario = try #require(ScriptParser(file: "own", text: text).scenarios.first)
        for _ in 0..<2 { #expect(try fleet.run(scenario).isEmpty) }
    }
}
