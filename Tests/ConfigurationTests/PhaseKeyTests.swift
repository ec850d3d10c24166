// Placeholders, fallbacks, expected content and clients that leave: what is taken over, inherited and refused.

import Content
import Policies
import Testing

@testable import Configuration

@Suite struct PhaseKeyTests {
    @Test func everythingIsTakenOver() throws {
        let folder = try Folder()
        for name in ["loading.png", "broken.png"] { try folder.write(name, "x") }
        let loaded = try folder.load(
            "defaults:\n  cache: { on_client_abort: abort, placeholder: { file: loading.png, after: 1s, status: 202 } }\n"
                + "forward:\n  cache: { fallback: { file: broken.png }, on_client_abort: finish-if 50% }\nservices:\n"
                + service(
                    "s",
                    "cache: { fallback: { file: ./broken.png, status: 404 } }",
                    "response: { expect: image }",
                    "endpoints:",
                    "  - { name: a, path: /a, cache: { placeholder: { file: none }, on_client_abort: finish } }",
                    "  - { name: b, path: /b, response: { expect: json-array }, cache: { placeholder: { file: broken.png } } }"
                )
        )
        let one = try #require(loaded.services.first)
        var placeholder = PlaceholderConfiguration(answer: StandInConfiguration(file: folder.path + "/loading.png"))
        placeholder.answer.status = 202
        placeholder.after = 1_000_000_000
        var fallback = StandInConfiguration(file: folder.path + "/broken.png")
        fallback.status = 404
        #expect(one.cache.placeholder == placeholder && one.cache.fallback == fallback)
        #expect(one.cache.onClientAbort == .abort && one.expect == .image)
        let (a, b) = (one.endpoints[0], one.endpoints[1])
        #expect(a.cache.placeholder == nil && a.cache.fallback == fallback && a.cache.onClientAbort == .finish)
        #expect(a.expect == .image && b.expect == .jsonArray)
        // A nearer one replaces all of the farther one.
        #expect(b.cache.placeholder?.answer.status == 200 && b.cache.placeholder?.after == 300_000_000)
        #expect(loaded.forward.cache.onClientAbort == .finishBeyond(0.5))
        #expect(loaded.forward.cache.fallback?.status == 200)
        for name in ["loading.png", "broken.png"] { #expect(loaded.files.contains(folder.path + "/" + name)) }
    }

    @Test(
        arguments: [
            ("cache: { placeholder: { after: 1s } }", "file"),
            ("cache: { placeholder: { file: missing.png } }", "missing.png does not exist"),
            ("cache: { fallback: { file: . } }", "is a folder"),
            ("cache: { fallback: { file: x.png, status: 204 } }", "a 204 has no body"),
            ("cache: { placeholder: { file: x.png, status: 304 } }", "a 304 has no body"),
            ("cache: { mode: none, placeholder: { file: x.png } }", "write placeholder: { file: none }"),
            ("cache: { on_client_abort: finish-if }", "it takes finish, abort or finish-if 50%"),
            ("cache: { on_client_abort: finish-if 50 }", "it takes finish, abort or finish-if 50%"),
            ("cache: { on_client_abort: never }", "it takes finish, abort or finish-if 50%"),
            ("response: { expect: picture }", "it takes any, json, json-object, json-array, plist, image"),
        ]
    )
    func whatIsWrongIsTold(_ line: String, _ part: String) throws {
        let folder = try Folder()
        try folder.write("x.png", "x")
        let errors = folder.errors("services:\n" + service("s", line))
        #expect(errors.count == 1 && errors[0].hasPrefix("main.yaml:5:"), "\(errors)")
        #expect(errors.first?.contains(part) == true, "\(errors)")
    }
}
