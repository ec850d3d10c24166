// The articles for those who come from the three libraries: every feature that the library had to get has its row.

import Foundation
import Testing

@Suite struct ArticleTests {
    /// Of the 335 features of the three libraries, those that a program could not have, in whole or in part, when they were
    /// counted.
    private static let rows: [ClosedRange<Int>] = [
        1...17, 25...25, 34...35, 43...43, 50...50, 55...55, 58...58, 60...62, 64...65, 68...68, 71...71,
        73...75, 77...78, 90...90, 98...98, 105...105, 112...112, 118...118, 121...121, 124...124,
        126...126, 139...139, 144...146, 158...158, 160...160, 164...172, 174...178, 180...181, 184...186,
        188...189, 191...205, 207...210, 212...215, 217...228, 230...234, 236...258, 260...262, 265...265,
        267...268, 270...298, 300...304, 306...307, 309...321, 323...325, 328...328, 330...330,
    ]

    /// The cells of the rows of all tables, by article.
    private static func tables(_ article: String) throws -> [[String]] {
        let folder = URL(filePath: #filePath).appending(path: "../../../Sources/DrydockServices/DrydockServices.docc")
            .standardizedFileURL
        let text = try String(contentsOf: folder.appending(path: article), encoding: .utf8)
        return text.split(separator: "\n").filter { $0.hasPrefix("|") }.map { line in
            line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast()
                .map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }

    private static let articles = [
        "ComingFromDocker.md", "ComingFromTABResourceLoader.md", "ComingFromMMNetworkingKit.md",
    ]

    @Test func everyFeatureHasItsRow() throws {
        var found: [Int: Int] = [:]
        for article in Self.articles {
            for cells in try Self.tables(article) where cells.first != "row" {
                for number in (cells.first ?? "").split(separator: ",") {
                    guard let number = Int(number.trimmingCharacters(in: .whitespaces)) else { continue }
                    found[number, default: 0] += 1
                }
            }
        }
        let wanted = Self.rows.flatMap { Array($0) }
        #expect(wanted.count == 194)
        #expect(wanted.filter { found[$0] != 1 } == [], "each in one row")
        #expect(found.keys.filter { !wanted.contains($0) }.sorted() == [], "no others")
    }

    /// A row says what there was, what there is, and which test shows it, or why there is none.
    @Test(arguments: articles) func everyRowIsWhole(article: String) throws {
        let rows = try Self.tables(article)
        #expect(rows.count > 40)
        for cells in rows {
            #expect(cells.count == 4, "\(cells.prefix(2))")
            // A row that begins with … continues the one above it.
            guard let last = cells.last, cells.first != "row", !last.hasPrefix("---"),
                cells.first?.hasPrefix("…") != true
            else { continue }
            #expect(last.contains("Tests.") || last.hasPrefix("—"), "\(cells.prefix(2))")
        }
    }
}
