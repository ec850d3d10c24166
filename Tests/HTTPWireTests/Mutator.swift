// Seeded changes to known bytes: the same run every time, on every machine.

/// A small generator with good mixing (SplitMix64).
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// Makes inputs by changing members of a corpus.
struct Mutator {
    let corpus: [[UInt8]]
    var random: SplitMix

    private static let bytesOfInterest: [UInt8] = [
        0x0D, 0x0A, 0x20, 0x09, 0x3A, 0x2C, 0x3B, 0x00, 0x0B, 0x1F, 0x7F, 0x80, 0xA0, 0xFF, 0x30, 0x39, 0x2B, 0x2D,
        0x23, 0x2A, 0x2F, 0x40, 0x5B, 0x5D, 0x61, 0x78,
    ]
    private static let phrases = [
        "\r\n", "\r\n\r\n", "\n", "\r", " ", "Content-Length: 5\r\n", "Content-Length: 0\r\n", "content-length:5",
        "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: gzip\r\n", "Host: a\r\n", "Host: b:80\r\n", "X: y\r\n",
        "Connection: close\r\n", "Expect: 100-continue\r\n", " HTTP/1.1\r\n", "HTTP/1.0", "0\r\n\r\n", "5\r\nhello\r\n",
        "http://a", ";ext=1", "ffffffffffffffff", "chunked, ",
    ].map { bytes($0) }

    init(corpus: [String], seed: UInt64) {
        self.corpus = corpus.map { bytes($0) }.filter { $0.count < 600 }
        random = SplitMix(seed: seed)
    }

    /// A member of the corpus with one to four changes.
    mutating func next() -> [UInt8] {
        var input = pick(corpus)
        for _ in 0..<Int.random(in: 1...4, using: &random) { change(&input) }
        return input
    }

    /// Sorted offsets at which to cut `count` bytes.
    mutating func cuts(_ count: Int) -> [Int] {
        (0..<Int.random(in: 1...4, using: &random)).map { _ in Int.random(in: 0...count, using: &random) }.sorted()
    }

    private mutating func change(_ input: inout [UInt8]) {
        let index = Int.random(in: 0...input.count, using: &random)
        let end = min(input.count, index + Int.random(in: 1...12, using: &random))
        switch Int.random(in: 0..<7, using: &random) {
        case 0 where index < input.count: input[index] = pick(Self.bytesOfInterest)
        case 1 where index < input.count: input[index] = UInt8.random(in: 0...255, using: &random)
        case 2: input.insert(pick(Self.bytesOfInterest), at: index)
        case 3: input.removeSubrange(index..<end)
        case 4: input.insert(contentsOf: Array(input[index..<end]), at: index)
        case 5: input.insert(contentsOf: pick(Self.phrases), at: index)
        default: input = Array(input[..<index]) + pick(corpus).suffix(Int.random(in: 0...80, using: &random))
        }
    }

    private mutating func pick<T>(_ choices: [T]) -> T { choices[Int.random(in: 0..<choices.count, using: &random)] }
}
