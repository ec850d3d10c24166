// What an item of a prefetch asks for: what clients to come will ask for.

import DownloadCore
import HTTPWire
import Testing

@Suite struct BatchItemTests {
    private static func lines(_ item: BatchItem) throws -> [String] {
        try item.requestFields().lines.map { "\($0.name): \($0.value)" }
    }

    @Test func anItemAsksAsClientsDo() throws {
        let item = BatchItem(url: "/a")
        #expect(try Self.lines(item).isEmpty)
        #expect(try Self.lines(item.asClientsAsk(codings: true)) == ["Accept: */*", "Accept-Encoding: gzip, br"])
        #expect(try Self.lines(item.asClientsAsk(codings: false)) == ["Accept: */*"])
        // What is written to a file is read by programs.
        #expect(try Self.lines(BatchItem(url: "/a", file: "a.json").asClientsAsk(codings: true)) == ["Accept: */*"])
    }

    @Test func whatAnItemBringsItselfStays() throws {
        let fields = [BatchItem.Field("accept", "text/html"), BatchItem.Field("Accept-encoding", "zstd")]
        let item = BatchItem(url: "/a", fields: fields, force: true)
        #expect(item.asClientsAsk(codings: true) == item)
        #expect(
            BatchItem(url: "/a", method: "POST").asClientsAsk(codings: true) == BatchItem(url: "/a", method: "POST")
        )
    }
}
