// Where two documents differ, and that no value is told.

import Testing

@testable import Trees

private func json(_ text: String) throws -> ContentTree { try JSONReader.read(Array(text.utf8)) }

@Suite struct TreeDifferenceTests {
    @Test(arguments: [
        ("1", "1", []), ("1", "2", ["the document has changed"]),
        ("{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", []),
        ("1", "\"1\"", ["the document was a number and is a string"]),
        (#"{"user":{"name":"Ann"}}"#, #"{"user":{"name":"Bob"}}"#, ["user.name has changed"]),
        (#"{"a":1,"b":2}"#, #"{"b":2,"c":3}"#, ["a is missing", "c is new"]),
        (#"{"a":[1,2,3]}"#, #"{"a":[1,5]}"#, ["a[1] has changed", "a[2] is missing"]),
        ("[[1],{}]", "[[1,2],{},null]", ["[0][1] is new", "[2] is new"]),
        (#"{"a":null}"#, #"{"a":[]}"#, ["a was null and is an array"]),
        (#"{"a":{}}"#, #"{"a":true}"#, ["a was an object and is a boolean"]),
        (#"{"a b":{"":1}}"#, #"{"a b":{"":2}}"#, [#"["a b"][""] has changed"#]),
        ("1.0", "1", ["the document has changed"]),
    ])
    func texts(old: String, new: String, texts: [String]) throws {
        let found = TreeDifferences(from: try json(old), to: try json(new))
        #expect(found.texts == texts && !found.isCut)
    }

    @Test("as many are told as are wanted, and that there are more", arguments: [0, 1, 3, 4, 5])
    func bounds(limit: Int) throws {
        let found = TreeDifferences(from: try json("[1,2,3]"), to: try json("[2,3,4,5]"), atMost: limit)
        #expect(found.texts.count == min(limit, 4))
        #expect(found.isCut == (limit < 4))
    }

    @Test("no text has a value, however it differs")
    func values() throws {
        let documents = ["\"hush\"", "{\"a\":\"hush\"}", "{\"a\":\"hush2\"}", "[\"hush\"]", "[{\"a\":[\"hush\"]}]"]
        for old in documents {
            for new in documents {
                let found = TreeDifferences(from: try json(old), to: try json(new))
                #expect(!found.texts.joined().contains("hush"))
                #expect(found.texts.isEmpty == (old == new))
            }
        }
    }
}
