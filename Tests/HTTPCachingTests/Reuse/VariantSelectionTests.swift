// What it takes to choose among many variants: counted, since a request must not hold its loop.

import HTTPWire
import Testing

@testable import HTTPCaching

@Suite struct VariantSelectionTests {
    private static let vary = "Accept, Accept-Encoding, Accept-Language"

    private static func asking(_ value: String) -> RequestHead {
        request(.get, [("Accept", value), ("Accept-Encoding", value), ("Accept-Language", value)])
    }

    private static func variant(_ value: String) -> StoredHead {
        stored([("Vary", vary)], for: asking(value))
    }

    /// A list of so many bytes, in which one member tells it from others.
    private static func list(_ number: Int, bytes: Int) -> String {
        let start = "x\(number)"
        return start + String(repeating: ",a;q=0.5", count: (bytes - start.utf8.count) / 8)
    }

    @Test(arguments: [100, 1_000, 8 * 1024])
    func `each field of a request is normalised once, whatever there is`(bytes: Int) {
        let variants = (0..<32).map { Self.variant(Self.list($0, bytes: bytes)) }
        for value in [Self.list(7, bytes: bytes), Self.list(99, bytes: bytes)] {
            var selection = VariantSelection(Self.asking(value))
            let selected = variants.indices.filter { selection.selects(variants[$0]) }
            #expect(selected == (value.hasPrefix("x7") ? [7] : []))
            #expect(selection.normalised == 3)
        }
    }

    @Test func aStoredResponseKeepsWhatItsFieldsMean() throws {
        var head = Self.variant("b, a")
        let key = try #require(head.variantKey)
        var encoded: [UInt8] = []
        head.encode(into: &encoded)
        let decoded = try encoded.withUnsafeBytes { try StoredHead(decoding: $0) }
        #expect(decoded.variantKey == key)
        #expect(Self.variant("a, b").variantKey == key)
        #expect(stored().variantKey == nil)
        // With other fields it is another variant.
        head.varyFields = Self.variant("c").varyFields
        #expect(head.variantKey == nil)
        #expect(Caching.variantKey(head) == Caching.variantKey(Self.variant("c")))
        #expect(!Caching.selects(stored: head, request: Self.asking("a, b")))
        head.varyNames = []
        #expect(Caching.variantKey(head).isEmpty)
    }

    @Test func aResponseThatKeepsNothingIsComparedByItsBytesFirst() {
        var head = Self.variant("b, a")
        head.varyFields = Self.variant("a, b").varyFields
        var selection = VariantSelection(Self.asking("a, b"))
        #expect(selection.selects(head) && selection.normalised == 0)
        selection = VariantSelection(Self.asking("b, a"))
        #expect(selection.selects(head) && selection.normalised == 6)
    }

    @Test(arguments: ["Accept-Encoding", "Accept-Language", "Prefer"])
    func `a long value is compared as it stands`(field: String) {
        func selects(_ one: some StringProtocol, _ other: some StringProtocol) -> Bool {
            let head = stored([("Vary", field)], for: request(.get, [(field, String(one))]))
            return Caching.selects(stored: head, request: request(.get, [(field, String(other))]))
        }
        let start = String(repeating: "a,", count: Caching.normalisedLimit / 2)
        #expect(selects(start.dropLast(5) + ",b", start.dropLast(5) + ", b"))
        #expect(selects(start + "b,c", start + "b,c"))
        #expect(!selects(start + "b,c", start + "c,b"))
        #expect(!selects(start + "b,c", start + "b, c"))
        #expect(!selects(start + "b,c", "b,c"))
    }

    /// The key is part of the names of files, and kept beside each variant in memory.
    @Test func theKeyOfLongValuesIsShort() {
        #expect(Caching.variantKey(Self.variant(Self.list(1, bytes: 8 * 1024))).count < 200)
    }
}
