// Seeded fuzzing: whatever the bytes, there is a tree within its limits or an error within the text.

import Testing
import YAML

@Suite struct FuzzTests {
    static let corpus = [
        "a: b\nc:\n  - d\n  - { e: 'f', g: \"h\\x41\\n\" }\n", "- |\n  a\n   b\n- >+\n  c\n\n- 'x''y'\n",
        "a: &x [b, *x]\nc: &y { d: e }\nf: *y\ng: [*y, *y]\n", "? [a, b]\n: {c: d}\n",
        "%YAML 1.1\n---\n!!map {a: !b c}\n...\n",
        "--- a\n--- b\n", "a\u{85}b: c\u{2028}d: e\r\nf: g\rh: \u{1F600}\n", "<<: {a: b}\nc: d # e\n",
        "- - - a\n    - b\n",
    ].map { Array($0.utf8) }
    static let pieces = [
        "\n", " ", "  ", "\t", ":", ": ", "- ", "[", "]", "{", "}", ",", "'", "\"", "#", "|", ">", "&a ", "*a", "*x",
        "!", "!!x ", "%",
        "@", "---\n", "...\n", "? ", "\\", "<<: ", "\0", "\u{FEFF}", "\u{85}", "\u{2028}", "\r", "\\u12", "~", "\u{7}",
    ].map { Array($0.utf8) }
    static let limits = Limits(levels: 4, values: 20)

    @Test(arguments: [1, 2] as [UInt64])
    func mutations(seed: UInt64) throws {
        var random = SplitMix(state: seed)
        var (trees, kinds) = (0, [YAMLError.Kind: Int]())
        for round in 0..<8000 {
            let bytes = Self.mutated(using: &random)
            let text = String(decoding: bytes, as: UTF8.self)
            do throws(YAMLError) {
                guard let root = try Node.read(bytes, limits: Self.limits) else { continue }
                let (values, levels) = root.extent
                let fits = values <= Self.limits.values && levels <= Self.limits.levels
                #expect(fits, "seed \(seed) round \(round): \(text.debugDescription)")
                trees += 1
            } catch {
                // libyaml ends a last line that nothing ends.
                let lines = text.unicodeScalars.count(where: \.endsLine) + 2
                let isWithin =
                    (1...lines).contains(error.mark.line) && (1...bytes.count + 1).contains(error.mark.column)
                #expect(isWithin, "seed \(seed) round \(round), \(error): \(text.debugDescription)")
                #expect(!error.problem.isEmpty)
                kinds[error.kind, default: 0] += 1
            }
        }
        // All sides have to be visited for this to mean something.
        #expect(trees > 800)
        for kind in [
            .character, .token, .structure, .unknownAlias, .secondDocument, .tooManyValues, .tooManyLevels,
        ] as [YAMLError.Kind] {
            #expect(kinds[kind, default: 0] > 10, "\(kind)")
        }
        #expect(kinds[.memory] == nil)
    }

    /// Every text of the corpus, cut off at every byte.
    @Test func everyCut() {
        for bytes in Self.corpus { for end in bytes.indices { _ = tree(Array(bytes[..<end])) } }
    }

    private static func mutated(using random: inout SplitMix) -> [UInt8] {
        var bytes = corpus.randomElement(using: &random) ?? []
        for _ in 0..<Int.random(in: 1...4, using: &random) {
            let start = Int.random(in: 0...bytes.count, using: &random)
            let end = min(bytes.count, start + Int.random(in: 1...12, using: &random))
            switch Int.random(in: 0..<6, using: &random) {
            case 0: bytes.insert(contentsOf: pieces.randomElement(using: &random) ?? [], at: start)
            case 1: bytes.removeSubrange(start..<end)
            case 2: bytes.insert(contentsOf: Array(bytes[start..<end]), at: end)
            case 3 where start < bytes.count: bytes[start] = UInt8.random(in: 0...255, using: &random)
            case 4:
                let count = Int.random(in: 1...20, using: &random)
                let piece = ["[", "*x, ", "a, ", "- "].randomElement(using: &random) ?? ""
                bytes.insert(contentsOf: Array(String(repeating: piece, count: count).utf8), at: start)
            default:
                let other = corpus.randomElement(using: &random) ?? []
                bytes = Array(bytes[..<start]) + other.suffix(Int.random(in: 0...80, using: &random))
            }
        }
        return bytes
    }
}

/// A small generator with good mixing: the same run every time, on every machine.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
