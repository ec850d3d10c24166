// Field lines: order, names without case, values byte for byte.

import HTTPWire
import Testing

@Suite("Fields")
struct FieldsTests {
    let fields = Fields([("Host", "a"), ("X-One", "1"), ("accept", "text/html"), ("ACCEPT", "*/*"), ("x-one", "2")])

    @Test("Names are compared without regard to case (RFC 9110 5.1)")
    func lookup() {
        #expect(fields.count == 5)
        #expect(
            fields.contains(.accept) && fields.contains("aCCept") && !fields.contains(.age) && !fields.contains("y")
        )
        #expect(fields.first(.accept) == "text/html")
        #expect(fields.all(.accept) == ["text/html", "*/*"])
        #expect(fields.all("X-ONE") == ["1", "2"])
        #expect(fields.combined(.accept) == "text/html, */*")
        #expect(fields.combined("x-ONE") == "1, 2")
        #expect(fields.combined(.age) == nil && fields.combined("y") == nil)
        #expect(fields.withFirst(.host) { $0.count } == 1)
        #expect(fields.present == FieldSet(.host, .accept, .other))
    }

    @Test("Set writes the canonical name, also where the value has the length of the one before")
    func overwrite() {
        var changed = Fields([("Content-Length", "10"), ("X", "y"), ("aGE", "7")])
        changed.set(.contentLength, "42")
        changed.set(.age, "8")
        #expect(changed.description == "Content-Length: 42\nX: y\nAge: 8")
        changed.set(.contentLength, "100")
        #expect(changed.description == "Content-Length: 100\nX: y\nAge: 8")
    }

    @Test("Lines that lie side by side are one run, without those that are left out")
    func runs() {
        func runs(_ fields: Fields, without omitted: KnownField = .other) -> [String] {
            var runs: [String] = []
            fields.forEachRun(without: omitted) { runs.append(String(decoding: $0, as: UTF8.self)) }
            return runs
        }
        #expect(runs(Fields()).isEmpty)
        #expect(runs(fields).count == 1)
        #expect(runs(fields, without: .host) == ["X-One: 1\r\naccept: text/html\r\nACCEPT: */*\r\nx-one: 2\r\n"])
        #expect(runs(fields, without: .accept) == ["Host: a\r\nX-One: 1\r\n", "x-one: 2\r\n"])
        var changed = fields
        changed.set("x-one", "3")
        #expect(runs(changed).joined() == "Host: a\r\nx-one: 3\r\naccept: text/html\r\nACCEPT: */*\r\n")
    }

    @Test("One value in memory is known again, and an equal one is only equal")
    func identity() {
        let same = fields
        #expect(same.sharesStorage(with: fields) && Fields().sharesStorage(with: Fields()))
        var changed = fields
        changed.set("x-one", "2")
        let copy = Fields(fields.lines.map { ($0.name, $0.value) })
        #expect(copy == fields && !copy.sharesStorage(with: fields) && !changed.sharesStorage(with: fields))
        var shorter = fields
        shorter.remove(.host)
        #expect(!shorter.sharesStorage(with: fields) && !Fields().sharesStorage(with: fields))
    }

    @Test(
        "A number is spelt by one line as it would be written here",
        arguments: [
            ([("Content-Length", "10")], true), ([("Content-Length", "0")], false),
            ([("Content-Length", "010")], false),
            ([("Content-Length", "1")], false), ([("Content-Length", "100")], false), ([("Content-Length", "")], false),
            ([("content-length", "10")], false), ([("Content-Length", "10"), ("Content-Length", "10")], false),
            ([("X", "10")], false), ([], false), ([("X", "y"), ("Content-Length", "10"), ("Age", "10")], true),
            ([("Content-Length", "a0")], false), ([("Content-Length", "+10")], false),
        ] as [([(String, String)], Bool)]
    )
    func spelling(lines: [(String, String)], isSpelt: Bool) {
        #expect(Fields(lines).hasOnly(.contentLength, equalTo: 10) == isSpelt)
    }

    @Test("Zero, and the largest number")
    func spellingLimits() {
        #expect(Fields([("Age", "0")]).hasOnly(.age, equalTo: 0) && !Fields([("Age", "00")]).hasOnly(.age, equalTo: 0))
        #expect(!Fields([("Age", "")]).hasOnly(.age, equalTo: 0))
        #expect(Fields([("Age", "18446744073709551615")]).hasOnly(.age, equalTo: .max))
        #expect(!Fields([("Age", "18446744073709551616")]).hasOnly(.age, equalTo: 0))
    }

    @Test("Set replaces all lines at the place of the first")
    func set() {
        var changed = fields
        changed.set("x-one", "3")
        changed.set(.accept, "none")
        changed.set(.age, "5")
        changed.set("Y", "6")
        #expect(changed.description == "Host: a\nx-one: 3\nAccept: none\nAge: 5\nY: 6")
    }

    @Test("Remove takes all lines and the known set follows")
    func remove() {
        var changed = fields
        changed.remove(.accept)
        #expect(!changed.contains(.accept) && !changed.present.contains(.accept))
        changed.remove("X-one")
        #expect(changed.description == "Host: a" && changed.present == FieldSet(.host))
        changed.removeAll { _, known in known == .host }
        #expect(changed.isEmpty && changed == Fields())
    }

    @Test("Many changes do not pile up bytes")
    func compaction() {
        var changed = fields
        for round in 0..<2000 { changed.set(.etag, "\"\(round)\"") }
        #expect(changed.first(.etag) == "\"1999\"")
        #expect(changed.count == 6 && changed.first("x-one") == "1")
        #expect(changed == Fields(changed.lines.map { ($0.name, $0.value) }))
    }

    @Test("Every byte a value may hold survives String and back")
    func lossless() {
        let value = ([0x09] + Array(0x20...0x7E) + Array(0x80...0xFF)).map { UInt8($0) }
        var raw = Fields()
        let inner = [0x61] + value + [0x61]
        bytes("X").withUnsafeBytes { name in inner.withUnsafeBytes { _ = raw.append(nameBytes: name, valueBytes: $0) } }
        let copy = Fields(raw.lines.map { ($0.name, $0.value) })
        #expect(copy == raw)
        copy.forEachLine { _, value, _ in #expect(Array(value) == inner) }
    }

    @Test("A String beyond U+00FF is written as UTF-8")
    func unicode() {
        Fields([("X", "é日")]).forEachLine { _, value, _ in #expect(Array(value) == Array("é日".utf8)) }
        Fields([("X", "é")]).forEachLine { _, value, _ in #expect(Array(value) == [0xE9]) }
    }

    @Test("A value cannot end its line, and a name is a token")
    func injection() {
        var fields = Fields([("X", " a\r\nSet-Cookie: b\0\u{7F} \t")])
        #expect(fields.first("X") == "a  Set-Cookie: b")
        #expect(fields.count == 1)
        for name in ["", "a b", "a:", "a\r\n", "é"] {
            let appended = fields.append(name, "1")
            #expect(!appended)
        }
        #expect(fields.count == 1)
    }

    @Test("Equality is of lines and bytes, not of history")
    func equality() {
        var first = Fields([("A", "1"), ("B", "2")])
        first.remove("A")
        #expect(first == Fields([("B", "2")]))
        #expect(first != Fields([("b", "2")]))
        #expect(Fields([("A", "1"), ("B", "2")]) != Fields([("B", "2"), ("A", "1")]))
    }
}
