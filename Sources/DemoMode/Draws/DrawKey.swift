// The key of a draw and the mixing functions for it: the same bytes give the same numbers on every machine, for ever.

/// The digest of a rule and a request key: it selects the counter in `DrawOrdinals` and the random numbers of a draw.
///
/// The digest is FNV-1a with 64 bits over `le64(count of name) name le64(count of request) request`, put through
/// SplitMix64's finaliser. The counts keep ("ab", "c") and ("a", "bc") apart. Two keys that collide share their
/// ordinals and their draws, which costs only their independence.
package struct DrawKey: Hashable, Sendable {
    package let digest: UInt64

    /// Makes the key with this digest.
    init(digest: UInt64) { self.digest = digest }

    /// - Parameters:
    ///   - rule: the name of the endpoint or service.
    ///   - request: the bytes that distinguish requests, such as method, path and query.
    package init(rule: String, request: UnsafeRawBufferPointer) {
        self.init(RuleDigest(rule), request: request)
    }

    /// Makes the key with a rule's name that was digested before.
    package init(_ rule: RuleDigest, request: UnsafeRawBufferPointer) {
        var hash = rule.hash
        hash.add(UInt64(request.count))
        for byte in request { hash.add(byte) }
        digest = mix(hash.value)
    }

    /// Makes the key of a request that is given as an array.
    package init(rule: String, request: [UInt8]) {
        self = request.withUnsafeBytes { DrawKey(rule: rule, request: $0) }
    }
}

/// The digest of a rule's name, which is the start of its keys; kept to be used for many draws.
package struct RuleDigest: Sendable {
    fileprivate var hash = FNV1a()

    package init(_ name: String) {
        hash.add(UInt64(name.utf8.count))
        for byte in name.utf8 { hash.add(byte) }
    }
}

/// The streams of a draw's random numbers; each is separate, so that one never predicts another.
enum DrawStream: UInt64 {
    case latency = 0x6c61_7465_6e63_7921
    case outcome = 0x6f75_7463_6f6d_6521
    case choice = 0x6368_6f69_6365_7321
    case retryAfter = 0x7265_7472_7961_6674
    case content = 0x636f_6e74_656e_7421
    case misbehaviour = 0x6d69_7362_6568_6176
}

/// The random numbers of one draw.
///
/// `point` is element `ordinal` of the SplitMix64 sequence that starts at `mix(digest ^ mix(seed))`; a stream's
/// number is `mix(point ^ stream)`.
struct DrawNumbers {
    private let point: UInt64

    init(seed: UInt64, key: DrawKey, ordinal: UInt64) {
        let start = mix(key.digest ^ mix(seed &+ goldenGamma))
        point = mix(start &+ (ordinal &+ 1) &* goldenGamma)
    }

    /// The number of a stream as 64 uniform bits.
    func bits(_ stream: DrawStream) -> UInt64 {
        mix(point ^ stream.rawValue)
    }

    /// The number of a stream, uniform in 0 ..< 1, in steps of 2^-53.
    func unit(_ stream: DrawStream) -> Double {
        Double(bits(stream) >> 11) * 0x1p-53
    }

    /// The number at element `index` of a stream that has several, uniform in 0 ..< 1.
    func unit(_ stream: DrawStream, _ index: UInt64) -> Double {
        Double(mix(bits(stream) &+ index &* goldenGamma) >> 11) * 0x1p-53
    }

    /// The number of a stream, uniform in the closed range: the high half of bits × count, which is even to within
    /// 2^-64 × count.
    func uniform(in range: ClosedRange<UInt64>, _ stream: DrawStream) -> UInt64 {
        let (count, overflow) = (range.upperBound - range.lowerBound).addingReportingOverflow(1)
        guard !overflow else { return bits(stream) }
        return range.lowerBound + bits(stream).multipliedFullWidth(by: count).high
    }
}

/// 2^64 divided by the golden ratio, odd: SplitMix64's step.
let goldenGamma: UInt64 = 0x9e37_79b9_7f4a_7c15

/// SplitMix64's finaliser: a bijection in which every input bit moves every output bit.
func mix(_ value: UInt64) -> UInt64 {
    var z = value
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
}

/// A hash of 64 bits; different bytes have equal hashes only by accident.
func fingerprint(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
    var hash = FNV1a()
    for byte in bytes { hash.add(byte) }
    return mix(hash.value)
}

private struct FNV1a {
    private(set) var value: UInt64 = 0xcbf2_9ce4_8422_2325

    mutating func add(_ byte: UInt8) {
        value = (value ^ UInt64(byte)) &* 0x100_0000_01b3
    }

    mutating func add(_ number: UInt64) {
        for shift in stride(from: 0, to: 64, by: 8) { add(UInt8(truncatingIfNeeded: number >> UInt64(shift))) }
    }
}
