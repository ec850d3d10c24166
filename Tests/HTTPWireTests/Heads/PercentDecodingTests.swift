// Percent-encoding decoded to the end, against a decoder that decodes once until nothing changes any more.

import HTTPWire
import TestSupport
import Testing

@Suite struct PercentDecodingTests {
    @Test(
        arguments: [
            ("", ""), ("a", "a"), ("%2e", "."), ("%2E", "."), ("%252e", "."), ("%25252e", "."), ("%25%32%65", "."),
            ("%%32%65", "."), ("%2%65", "."), ("%%%33%32%65", "."), ("%", "%"), ("%2", "%2"), ("%zz", "%zz"),
            ("%25", "%"), ("%25z", "%z"), ("%2525", "%"), ("a%2", "a%2"), ("%%", "%%"), ("%%2", "%%2"),
            ("%2%2%65", "%2."), ("%4%31%", "A%"),
        ]
    )
    func `an encoding is decoded however it came about`(text: String, settled: String) {
        #expect(PercentDecoding.settled(bytes(text)) == bytes(settled))
    }

    @Test func everyTextSettlesWhereDecodingAgainAndAgainDoes() {
        var random = SplitMix(seed: 20_26)
        let letters = bytes("%%%%23456eEfFaA/.z")
        for _ in 0..<Thoroughness.attempts(40_000) {
            let text = (0..<Int.random(in: 0..<24, using: &random)).map { _ in
                letters[Int.random(in: letters.indices, using: &random)]
            }
            var repeated = text
            while case let next = PercentDecoding.once(repeated), next != repeated { repeated = next }
            #expect(PercentDecoding.settled(text) == repeated, "\(String(decoding: text, as: UTF8.self))")
        }
    }

    @Test func eachByteKnowsWhereItBegan() {
        let text = bytes("a%2%65b%%32%65c")
        var (settled, starts) = ([UInt8](repeating: 0, count: text.count), [Int](repeating: 0, count: text.count))
        let count = settled.withUnsafeMutableBufferPointer { settled in
            starts.withUnsafeMutableBufferPointer { starts in
                text.withUnsafeBytes { PercentDecoding.settle($0, into: settled, starts: starts) }
            }
        }
        #expect(settled[..<count] == bytes("a.b.c")[...])
        #expect(starts[..<count] == [0, 1, 6, 7, 14])
    }
}
