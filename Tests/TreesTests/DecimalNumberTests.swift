// Decimal numbers: their order, which no rounding changes, and what is none.

import Testing
import Trees

@Suite struct DecimalNumberTests {
    /// From the least to the greatest; those of one row are equal.
    static let rows = [
        ["-1e9999999999999999999"], ["-12.5", "-125e-1"], ["-12", "-12.0"], ["-1e-400"],
        ["0", "-0", "0.000", "0e9", "+0"],
        ["1e-400"], ["0.099"], ["0.1", "1E-1", "00.10"], ["1", "1.0", "10e-1", "001"], ["9.99"], ["10", "1e1", "1e+1"],
        ["9007199254740992"], ["9007199254740993", "9007199254740993.000"], ["18446744073709551615"],
        ["18446744073709551616"], ["1e400", "10e399"], ["1e401"],
    ]

    @Test func orderOfAllPairs() throws {
        for (index, row) in Self.rows.enumerated() {
            for (other, others) in Self.rows.enumerated() {
                for text in row {
                    for next in others {
                        let (left, right) = (try #require(DecimalNumber(text)), try #require(DecimalNumber(next)))
                        #expect((left < right) == (index < other), "\(text) \(next)")
                        #expect((left == right) == (index == other), "\(text) \(next)")
                    }
                }
            }
        }
    }

    @Test(arguments: ["", "-", ".", "1.", ".", "1e", "1e+", "0x10", "1 ", " 1", "1,5", "NaN", "inf", "1e1.5", "--1"])
    func othersAreNone(text: String) {
        #expect(DecimalNumber(text) == nil)
    }
}
