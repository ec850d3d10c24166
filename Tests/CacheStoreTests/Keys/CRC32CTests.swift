// Checksums and digests against published values.

import StoreSupport
import Testing

@testable import CacheStore

@Suite struct CRC32CTests {
    @Test(
        arguments: [
            ("", 0), ("123456789", 0xE306_9283), ("The quick brown fox jumps over the lazy dog", 0x2262_0404),
        ] as [(String, UInt32)]
    )
    func `CRC32C has its published values, in pieces, too`(text: String, expected: UInt32) {
        let bytes = Array(text.utf8)
        #expect(bytes.withUnsafeBytes(CRC32C.of) == expected)
        for split in 0...bytes.count {
            var sum = CRC32C()
            Array(bytes[..<split]).withUnsafeBytes { sum.update($0) }
            Array(bytes[split...]).withUnsafeBytes { sum.update($0) }
            #expect(sum.value == expected)
        }
    }

    @Test func `blocks end every 256 KiB, however the bytes arrive`() {
        let bytes = pattern(600_000)
        var whole = BlockSums()
        bytes.withUnsafeBytes { whole.update($0) }
        #expect(whole.sums.count == 3)
        #expect(whole.sums[1] == Array(bytes[262_144..<524_288]).withUnsafeBytes(CRC32C.of))
        var pieces = BlockSums()
        for start in stride(from: 0, to: bytes.count, by: 7001) {
            Array(bytes[start..<min(bytes.count, start + 7001)]).withUnsafeBytes { pieces.update($0) }
        }
        #expect(pieces.sums == whole.sums)
    }

    /// The vectors of the reference implementation of SipHash-2-4 with 64 bits, for the key 00 01 ... 0f.
    @Test(
        arguments: [
            (0, 0x726F_DB47_DD0E_0E31), (1, 0x74F8_39C5_93DC_67FD), (8, 0x93F5_F579_9A93_2462),
            (15, 0xA129_CA61_49BE_45E5),
        ] as [(Int, UInt64)]
    )
    func `SipHash-2-4 has its published values`(length: Int, expected: UInt64) {
        var hash = SipHash<FullRounds>(0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908)
        (0..<length).map { UInt8($0) }.withUnsafeBytes { hash.add($0) }
        let found = hash.end()
        #expect(found == expected)
    }

    /// The vectors of the reference implementation of SipHash-2-4 with 128 bits, for the key 00 01 ... 0f.
    @Test(
        arguments: [
            (0, 0xe6a8_25ba_047f_81a3, 0x9302_55c7_1472_f66d),
            (1, 0x44af_996b_d8c1_87da, 0x45fc_229b_1159_7634),
        ] as [(Int, UInt64, UInt64)]
    )
    func `SipHash-2-4 with 128 bits has its published values`(length: Int, high: UInt64, low: UInt64) {
        let key = StoredFileNameKey(low: 0x0706_0504_0302_0100, high: 0x0f0e_0d0c_0b0a_0908)
        let digest = StoredFileName((0..<length).map { UInt8($0) }, key: key)
        #expect(digest.high == high)
        #expect(digest.low == low)
        #expect(StoredFileName(hex: digest.description) == digest)
    }
}
