// The journal and `drydock verify`, as a test suite uses them.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(2))) struct JournalOfRequests {
        static func daemon(journal: String) throws -> Daemon {
            let home = try DaemonHome()
            try home.folder.write("demo/order.json", #"{"id": 1}"#)
            return try Daemon(
                DaemonSettings(
                    """
                    \(journal)
                    services:
                      - name: shop
                        match: { prefix: /shop }
                        demo: { enabled: true, files: \(home.folder.file("demo")) }
                        endpoints:
                          - { name: order, method: POST, path: /orders, demo: { status: 201 } }
                    """
                ),
                at: home
            )
        }

        private static func verify(_ daemon: Daemon, _ arguments: String...) throws -> ShellResult {
            try daemon.command(["verify"] + arguments)
        }

        @Test func aTestVerifiesWhatCame() throws {
            let daemon = try Self.daemon(journal: "journal: 1MiB")
            for sku in ["A-1", "B-2"] {
                let body = Array(#"{"sku": "\#(sku)", "count": 1}"#.utf8)
                let fields = [("Authorization", "Bearer s3cret"), ("Content-Type", "application/json")]
                #expect(try daemon.exchange("POST", "/shop/orders?page=1", fields: fields, body: body).status == 201)
            }
            let twice = try Self.verify(daemon, "POST /shop/orders", "--times", "2", "--query", "page=1")
            #expect(twice.end == .exited(0) && twice.output == "ok: POST /shop/orders: 2 came, exactly 2 expected\n")
            let second = try Self.verify(daemon, "/shop/*", "--body-json", #"{"sku": "B-2"}"#, "--times", "1")
            #expect(second.end == .exited(0))
            #expect(try Self.verify(daemon, "GET /shop/orders", "--never").end == .exited(0))
            #expect(try Self.verify(daemon, "/shop/orders", "--at-most", "2", "--since", "5m").end == .exited(0))
            let wrong = try Self.verify(daemon, "POST /shop/orders", "--body-json", #"{"sku": "C-3"}"#)
            #expect(wrong.end == .exited(1))
            #expect(wrong.errors.contains("0 came, at least 1 expected"))
            #expect(wrong.errors.contains(#"the body's .sku is "B-2""#))
            let hidden = try Self.verify(daemon, "/shop/orders", "--field", "Authorization: Bearer s3cret")
            #expect(hidden.end == .exited(1) && hidden.errors.contains("journal.redact"))
            #expect(try Self.verify(daemon, "orders").end == .exited(2))
            let listed = try daemon.command(["journal"])
            #expect(listed.output.split(separator: "\n").count == 2)
            #expect(listed.output.contains("POST /shop/orders?page=1 201 demo"))
            let whole = try daemon.command(["journal", "--json", "--limit", "1"])
            #expect(whole.output.contains(#""value":"***""#) && !whole.output.contains("s3cret"))
            #expect(whole.output.contains("B-2") && !whole.output.contains("A-1"))
            #expect(try daemon.command(["journal", "--clear"]).output == "2 entries removed\n")
            #expect(try Self.verify(daemon, "/shop/orders", "--never").end == .exited(0))
        }

        @Test func withoutOneNothingIsVerified() throws {
            let daemon = try Self.daemon(journal: "journal: off")
            _ = try daemon.exchange("POST", "/shop/orders", body: [])
            for arguments in [["journal"], ["journal", "--clear"], ["verify", "/shop/orders", "--never"]] {
                let result = try daemon.command(arguments)
                #expect(result.end == .exited(1) && result.errors.contains("write journal: 16MiB, and reload"))
            }
        }

        @Test func aJournalThatHasDroppedEntriesProvesNoAbsence() throws {
            let daemon = try Self.daemon(journal: "journal: { size: 256KiB, bodies: 64KiB }")
            _ = try daemon.exchange("POST", "/shop/orders?first", body: [])
            let body = [UInt8](repeating: 0x61, count: 60_000)
            for _ in 0..<6 { _ = try daemon.exchange("POST", "/shop/orders", body: body) }
            let never = try Self.verify(daemon, "/shop/nothing", "--never")
            #expect(never.end == .exited(1) && never.errors.contains("the journal has dropped"))
            #expect(try daemon.metric("drydock_journal_dropped_entries") > 0)
            #expect(try daemon.metric("drydock_journal_bytes") <= 256 << 10)
        }
    }
}
