// What a body is, told from its bytes: formats by their beginnings, JSON as a whole, content codings taken off.

import HTTPWire
import Policies
import TestSupport
import Testing

@testable import Content

@Suite struct ContentInspectionTests {
    /// The verdict of a body that comes in pieces of a size.
    private static func verdict(
        _ expectation: ContentExpectation,
        _ body: [UInt8],
        coding: String = "",
        pieces size: Int = 1 << 20,
        limit: Int = ContentInspection.limit
    ) -> String? {
        let inspection = ContentInspection(
            expectation,
            Fields(coding.isEmpty ? [] : [("Content-Encoding", coding)]),
            limit: limit
        )
        for start in stride(from: 0, to: body.count, by: size) {
            let piece = Array(body[start..<min(body.count, start + size)])
            piece.withUnsafeBytes { _ = inspection.push($0) }
        }
        return inspection.finish()
    }

    @Test("every coding comes off, whatever the pieces", arguments: [1, 2, 3, 7, 1000])
    func codings(_ size: Int) {
        for (coding, body) in Coded.jsonBy {
            #expect(Self.verdict(.jsonObject, body, coding: coding, pieces: size) == nil, "\(coding)")
            #expect(Self.verdict(.jsonArray, body, coding: coding, pieces: size)?.hasPrefix("begins with \"{") == true)
            let cut = Self.verdict(.json, Array(body.dropLast()), coding: coding, pieces: size)
            #expect(cut != nil, "\(coding): cut short")
        }
        for (coding, body) in Coded.pngBy {
            #expect(Self.verdict(.image, body, coding: coding, pieces: size) == nil, "\(coding)")
        }
        for (coding, body) in Coded.htmlBy {
            for expectation in ContentExpectation.allCases where expectation != .anything {
                let found = Self.verdict(expectation, body, coding: coding, pieces: size)
                #expect(found?.hasPrefix("begins with \"<") == true, "\(coding) \(expectation): \(found ?? "-")")
            }
            #expect(Self.verdict(.anything, body, coding: coding, pieces: size) == nil)
        }
    }

    @Test("codings in a row come off in the order in which they were put on, the last one first")
    func severalCodings() {
        // The gzip of a gzip, by hand: one stored block.
        let inner = Coded.jsonBy[2].1
        var outer: [UInt8] = [0x78, 0x01, 0x01, UInt8(inner.count), 0, ~UInt8(inner.count), 0xFF] + inner
        var (low, high): (UInt32, UInt32) = (1, 0)
        for byte in inner {
            low = (low + UInt32(byte)) % 65521
            high = (high + low) % 65521
        }
        outer += [UInt8(high >> 8), UInt8(high & 255), UInt8(low >> 8), UInt8(low & 255)]
        #expect(Self.verdict(.json, outer, coding: "gzip, deflate") == nil)
        #expect(Self.verdict(.json, outer, coding: "deflate, gzip") == "does not decode as its Content-Encoding says")
    }

    @Test("gzip may have several members, and nothing else behind its end")
    func members() {
        let gzip = Coded.jsonBy[2].1
        for size in [1, 5, 1000] {
            #expect(Self.verdict(.json, gzip + gzip, coding: "gzip", pieces: size) == "is not well-formed JSON text")
            let spoilt = Self.verdict(.json, gzip + [0x41, 0x42, 0x43], coding: "gzip", pieces: size)
            #expect(spoilt == "does not decode as its Content-Encoding says")
            let more = Self.verdict(.json, Coded.jsonBy[1].1 + [0x41], coding: "br", pieces: size)
            #expect(more == "does not decode as its Content-Encoding says")
        }
    }

    @Test("codings in a row are bounded, so that a head cannot take memory and stack at will", arguments: [4, 5, 1600])
    func manyCodings(_ count: Int) {
        let coding = Array(repeating: "gzip", count: count).joined(separator: ",")
        let found = Self.verdict(.json, Coded.jsonBy[2].1, coding: coding)
        #expect(found?.contains("cannot be looked into") == (count > 4), "\(found ?? "-")")
        let identity = Array(repeating: "identity", count: count).joined(separator: ",")
        #expect(Self.verdict(.json, Coded.json, coding: identity) == nil)
    }

    @Test("a coding that is not known cannot be looked into")
    func unknownCoding() {
        let found = Self.verdict(.image, Coded.png, coding: "zstd")
        #expect(found == "is coded as \"zstd\", which cannot be looked into")
        #expect(Self.verdict(.image, Coded.png, coding: "gzip") == "does not decode as its Content-Encoding says")
    }

    @Test("spoilt bytes never hang or pass", arguments: 0..<200)
    func spoilt(_ seed: Int) {
        for (coding, body) in Coded.jsonBy.dropFirst() {
            var body = body
            // Every byte of every coding is spoilt once in these rounds.
            let index = seed % body.count
            body[index] ^= UInt8(1 + seed / body.count)
            let found = Self.verdict(.json, body, coding: coding, pieces: 1 + seed % 9)
            // What still decodes to JSON is JSON: the deflate data alone has no checksum.
            if let found { #expect(!found.isEmpty) }
        }
        #expect(Self.verdict(.json, Array(repeating: 0x5B, count: seed * 100 + 1)) != nil)
    }

    @Test(
        "JSON texts",
        arguments: [
            "{}", "[]", " [ ] ", "{\"a\":{}}", "[1,-0,0.5,1e9,1E+2,-1.25e-3]", "\"\\u00e9\\n\\\"\"", "true", " false\n",
            "null",
            "0", "-12", "1.5e3", "[[[[]]],{\"\":[null,true,false]}]", "\"\u{e9}\u{20ac}\u{1f600}\"", "\u{feff}{}",
            "{\"a\":1,\"a\":2}", "\t\r\n[ 1 , 2 ]\r\n",
        ]
    )
    func json(_ text: String) {
        for size in [1, 2, 100] { #expect(Self.verdict(.json, Array(text.utf8), pieces: size) == nil) }
    }

    @Test(
        "no JSON texts",
        arguments: [
            "", " ", "{", "]", "[1,]", "{\"a\"}", "{\"a\":}", "{a:1}", "{\"a\":1,}", "[1 2]", "01", "-", "1.", ".5",
            "1e", "+1",
            "tru", "truee", "nul", "\"a", "\"\\x\"", "\"\\u12g4\"", "\"a\nb\"", "[1}", "{]", "{} {}", "1 2", "'a'",
            "[1],",
            "NaN", "<html>", "\u{feff}", "{\"a\":1}}", "/* */ {}",
        ]
    )
    func noJSON(_ text: String) {
        for size in [1, 2, 100] { #expect(Self.verdict(.json, Array(text.utf8), pieces: size) != nil) }
    }

    @Test(
        "text that is not UTF-8 is no JSON",
        arguments: [
            [0x22, 0xE9, 0x22], [0x22, 0xC0, 0x80, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22],
            [0x22, 0xF5, 0x80, 0x80, 0x80, 0x22],
            [0x22, 0xE2, 0x82, 0x22], [0x22, 0x80, 0x22], [0xEF, 0xBB, 0x7B, 0x7D], [0xFF, 0xFE, 0x7B, 0x00],
        ] as [[UInt8]]
    )
    func noUTF8(_ text: [UInt8]) { #expect(Self.verdict(.json, text) != nil) }

    @Test("the outermost value counts")
    func roots() {
        #expect(Self.verdict(.jsonObject, Array("{}".utf8)) == nil)
        #expect(Self.verdict(.jsonArray, Array("[]".utf8)) == nil)
        #expect(Self.verdict(.jsonObject, Array("[]".utf8)) == "begins with \"[]\"")
        #expect(Self.verdict(.jsonArray, Array("null".utf8)) == "begins with \"null\"")
    }

    @Test("depth is bounded, and so is what is read of a long text")
    func bounds() {
        let deep = Array(repeating: UInt8(ascii: "["), count: JSONScanner.depthLimit)
        let closing = Array(repeating: UInt8(ascii: "]"), count: JSONScanner.depthLimit)
        #expect(Self.verdict(.json, deep + closing) == nil)
        #expect(Self.verdict(.json, [UInt8(ascii: "[")] + deep + closing) == "is not well-formed JSON text")
        let long = [UInt8(ascii: "[")] + Array(repeating: UInt8(ascii: " "), count: 999)
        for size in [1, 7, 5000] {
            let behind = Self.verdict(.json, long + Array("<".utf8), pieces: size, limit: 1000)
            #expect(behind == nil, "behind the limit nobody looks")
            let before = Self.verdict(.json, Array(long.dropLast(2)) + Array("<".utf8), pieces: size, limit: 1000)
            #expect(before == "is not well-formed JSON text")
        }
    }

    @Test(
        "images by their first bytes",
        arguments: [
            [0xFF, 0xD8, 0xFF, 0xE0], Array("GIF89a".utf8), Array("GIF87a\u{1}".utf8),
            Array("RIFF".utf8) + [1, 2, 3, 4] + Array("WEBPVP8 ".utf8), Array("BM".utf8) + [9, 9, 9, 9, 0, 0, 0, 0],
            [0, 0, 1, 0, 1], [0x49, 0x49, 0x2A, 0], [0x4D, 0x4D, 0, 0x2A], [0, 0, 0, 0x20] + Array("ftypavif".utf8),
            [0, 0, 0, 0x18] + Array("ftypheic".utf8), [0xFF, 0x0A, 1], Array("<svg xmlns='x'/>".utf8),
            Array("<?xml version='1.0'?>\n<!-- <svg -->\n<!DOCTYPE svg [<!ENTITY a 'b>'>]>\n<s:svg>".utf8),
            [0xEF, 0xBB, 0xBF] + Array("\n<svg>".utf8), Coded.png,
        ] as [[UInt8]]
    )
    func images(_ body: [UInt8]) {
        for size in [1, 3, 100] { #expect(Self.verdict(.image, body, pieces: size) == nil) }
    }

    @Test(
        "no images",
        arguments: [
            Array("RIFF".utf8) + [1, 2, 3, 4] + Array("WAVEfmt ".utf8), Array("BMW is a maker of cars".utf8),
            Array("<html>".utf8), Array("<svgx>".utf8), Array("<!DOCTYPE html><svg>".utf8) + Array("</svg".utf8),
            Array("<?xml".utf8), Array("GIF88a".utf8), [0, 0, 0, 0x20] + Array("ftypmp42".utf8), [0x89, 0x50], [],
            Array("{\"error\":1}".utf8), Array("%PDF-1.7".utf8),
            Array("<!--".utf8) + Array(repeating: 0x20, count: 70_000) + Array("--><svg>".utf8),
        ] as [[UInt8]]
    )
    func noImages(_ body: [UInt8]) {
        // A document type before an svg element says nothing of HTML that holds one, so that is an image for us.
        let isSVG = body.starts(with: Array("<!DOCTYPE html><svg>".utf8))
        for size in body.count < 100 ? [1, 3, 1000] : [1000, 100_000] {
            #expect((Self.verdict(.image, body, pieces: size) == nil) == isSVG)
        }
    }

    @Test("property lists")
    func propertyLists() {
        let xml =
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"x\">\n"
        for body in ["bplist00\u{1}", xml + "<plist version=\"1.0\">", "<plist>"] {
            #expect(Self.verdict(.propertyList, Array(body.utf8)) == nil)
        }
        for body in ["bplist", xml, "<html>", "{ a = b; }", xml + "<plis"] {
            #expect(Self.verdict(.propertyList, Array(body.utf8)) != nil)
        }
    }

    @Test("a small body that decodes to a gigantic one is looked into no further than the limit")
    func bomb() {
        // A bracket, 32 MiB of spaces and a "<", in gzip three times.
        let body = bytes(
            hex: "1f8b080000000000020393efe660000126e6b77715fd9d0225d81e3c563c30e7e4b3674ffcd20d27aef8a4ce23f69fe1a8df"
                + "a15737744a8492c5deb02c4fe33a7a76e341b68b0e4b0bee8ad61ddd797eb25fdde3ddb5ef57da5f77520cabb3df75f4b1f6"
                + "ebf265dd579fc6aa828cee8c96fbd5f061d2f6f56eeb813c8757f7565d8d28615c7b7787b9003b5040e5fde74735f5461b6a"
                + "f3ed3a9981fc49e5772acffcdbdd50fa2f5818227f2c0164cc94ee83204a63facd3a83058545563bffe6d9cafc8c66646068"
                + "9834e3fefcdcb6eb862d3fd835a65d9768a86760000025f19c84d8000000"
        )
        #expect(Self.verdict(.json, body, coding: "gzip, gzip, gzip") == nil)
        #expect(Self.verdict(.jsonObject, body, coding: "gzip, gzip, gzip")?.hasPrefix("begins with \"[") == true)
    }
}
