// The Range field: what is read, what is ignored, and what a length makes of it (RFC 9110 section 14).

import HTTPWire
import Testing

@testable import HTTPCaching

private func parse(_ values: String...) -> ByteRanges? { ByteRanges.parse(Fields(values.map { ("Range", $0) })) }

@Suite("Range fields")
struct RangeRequestTests {
    @Test(
        "RFC 9110 14.1.2: what is read",
        arguments: [
            ("bytes=0-0", "bytes=0-0"), ("bytes=0-", "bytes=0-"), ("bytes=-1", "bytes=-1"), ("bytes=-0", "bytes=-0"),
            ("BYTES=1-2", "bytes=1-2"), ("bytes=1-2,4-5", "bytes=1-2,4-5"), ("bytes=1-2 ,\t4-5", "bytes=1-2,4-5"),
            ("bytes=1-2,,4-5,", "bytes=1-2,4-5"), ("bytes=,1-2", "bytes=1-2"), ("bytes=007-08", "bytes=7-8"),
            ("bytes=0-9223372036854775806", "bytes=0-9223372036854775806"),
            // http-rules.md 28: what is too large is as large as can be.
            ("bytes=9223372036854775808-", "bytes=9223372036854775807-"),
            ("bytes=0-99999999999999999999", "bytes=0-9223372036854775807"),
            ("bytes=-18446744073709551617", "bytes=-9223372036854775807"),
            ("bytes=18446744073709551616-18446744073709551617", "bytes=9223372036854775807-9223372036854775807"),
        ]
    )
    func read(_ field: String, _ expected: String) { #expect(parse(field)?.value == expected) }

    @Test(
        "RFC 9110 14.2: what is ignored",
        arguments: [
            "", "bytes", "bytes=", "bytes=,", "bytes= 0-1", "bytes =0-1", "bytes=-", "bytes=--1", "bytes=1", "bytes=a-",
            "bytes=0-a", "bytes=0-1-2", "bytes=+0-1", "bytes=0-+1", "bytes=0 -1", "bytes=0- 1", "bytes=2-1",
            "bytes=0-1,5-4", "bytes=0-1,x", "bytes=0-1;2-3", "bytes=0x0-1", "bytes=1.0-2", "items=0-1", "byte=0-1",
            "bytes=20000000000000000000-10000000000000000000", "none", "0-1", "bytes:0-1",
        ]
    )
    func ignored(_ field: String) { #expect(parse(field) == nil) }

    @Test("no Range, or two of them, count for nothing")
    func lines() {
        #expect(ByteRanges.parse(Fields()) == nil)
        #expect(parse("bytes=0-1", "bytes=0-1") == nil)
    }

    @Test("http-rules.md 29: sixteen ranges are taken, seventeen are not", arguments: [1, 2, 15, 16, 17, 1000])
    func tooMany(_ count: Int) {
        let ranges = parse("bytes=" + (0..<count).map { "\($0 * 10)-\($0 * 10 + 1)" }.joined(separator: ","))
        #expect(ranges?.specs.count == (count <= 16 ? count : nil))
        #expect(ByteRanges.limit == 16)
    }

    @Test(
        "RFC 9110 14.1.2: what ten bytes have of it",
        arguments: [
            ("0-0", [0..<1]), ("0-9", [0..<10]), ("0-10", [0..<10]), ("0-", [0..<10]), ("9-", [9..<10]),
            ("9-9", [9..<10]), ("10-", []), ("10-10", []), ("-1", [9..<10]), ("-10", [0..<10]), ("-11", [0..<10]),
            ("-0", []), ("5-99999999999999999999", [5..<10]), ("99999999999999999999-", []),
            ("-99999999999999999999", [0..<10]), ("0-9223372036854775807", [0..<10]),
            // Several, in the order of the request.
            ("8-9,0-1", [8..<10, 0..<2]), ("0-1,10-,-2", [0..<2, 8..<10]), ("10-,20-", []),
            // Those that overlap or touch are one, where the first stood.
            ("0-3,2-5", [0..<6]), ("0-1,2-3", [0..<4]), ("0-1,3-4", [0..<2, 3..<5]), ("2-3,0-1", [0..<4]),
            ("0-0,0-0", [0..<1]), ("0-1,8-9,2-7", [0..<10]), ("6-7,0-1,3-4,1-3", [6..<8, 0..<5]),
            ("0-,0-", [0..<10]), ("4-5,0-9", [0..<10]),
        ] as [(String, [Range<Int64>])]
    )
    func resolved(_ set: String, _ expected: [Range<Int64>]) throws {
        #expect(try #require(parse("bytes=" + set)).resolved(length: 10) == expected)
    }

    @Test("nothing can be had of nothing", arguments: ["0-", "0-0", "-0", "-5", "1-2"])
    func empty(_ set: String) throws { #expect(try #require(parse("bytes=" + set)).resolved(length: 0).isEmpty) }

    @Test("ranges of any request lie within the length, apart from each other, and hold what was asked for")
    func random() throws {
        var numbers = SeededGenerator(seed: 14)
        for _ in 0..<2000 {
            let length = Int64.random(in: 0...30, using: &numbers)
            var wanted: Set<Int64> = []
            let members = (0..<Int.random(in: 1...16, using: &numbers)).map { _ -> String in
                let first = Int64.random(in: 0...35, using: &numbers)
                let last = first + Int64.random(in: 0...5, using: &numbers)
                switch Int.random(in: 0...2, using: &numbers) {
                case 0:
                    wanted.formUnion((first...last).filter { $0 < length })
                    return "\(first)-\(last)"
                case 1:
                    wanted.formUnion((0..<length).filter { $0 >= first })
                    return "\(first)-"
                default:
                    wanted.formUnion((0..<length).filter { $0 >= length - first })
                    return "-\(first)"
                }
            }
            let ranges = try #require(parse("bytes=" + members.joined(separator: ","))).resolved(length: length)
            #expect(Set(ranges.flatMap { Array($0) }) == wanted)
            let sorted = ranges.sorted { $0.lowerBound < $1.lowerBound }
            #expect(sorted.allSatisfy { !$0.isEmpty })
            #expect(zip(sorted, sorted.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound })
        }
    }
}
