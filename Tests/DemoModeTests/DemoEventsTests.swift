// Server-sent events: where a client that has seen some of them goes on.

import DemoMode
import Testing

@Suite struct DemoEventsTests {
    static func events(ids: [String?], rounds: Int? = nil) throws -> DemoEvents {
        let list = ids.map { DemoEvents.Event(id: $0, data: "x") }
        return try #require(DemoEvents(list, interval: 1, rounds: rounds))
    }

    /// Whatever a client says that it has seen, there is a next event, or the end.
    @Test(
        arguments: [
            (nil, 0), ("1", 1), ("7", 7), ("0", 0), ("-1", 0), ("x", 0), ("", 0),
            ("9223372036854775807", UInt64(Int64.max)),
            ("9223372036854775808", 0), ("18446744073709551614", 0), ("18446744073709551615", 0),
            ("18446744073709551616", 0),
        ] as [(String?, UInt64)]
    )
    func goesOnBehindWhatWasSeen(lastID: String?, position: UInt64) throws {
        let endless = try Self.events(ids: [nil, nil])
        #expect(endless.position(behind: lastID) == position)
        #expect(endless.bytes(at: position) == Array("id: \(position + 1)\ndata: x\n\n".utf8))
    }

    @Test func idsOfTheirOwnAreFoundInTheFirstRound() throws {
        let named = try Self.events(ids: ["a", "b", nil], rounds: 2)
        #expect(["a", "b", "3", "4", "6", "7"].map { named.position(behind: $0) } == [1, 2, 3, 0, 6, 0])
        #expect(named.isEnd(6) && !named.isEnd(5))
    }
}
