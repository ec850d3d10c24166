// Requests that a daemon has begun and not answered yet, and how a test knows that it has.

import Foundation
import TestSupport
import Testing

extension Daemon {
    /// Sends a GET on each of so many new connections, and returns when the daemon has begun all of them.
    ///
    /// It counts the bytes that it reads from clients, and each loop tells its count between two turns: what has been
    /// counted has been begun. Nobody else may ask the daemon meanwhile.
    func begin(
        _ target: String,
        count: Int = 1,
        fields: [(String, String)] = [],
        at location: SourceLocation = #_sourceLocation
    ) throws -> [RawClient] {
        let clients = try (0..<count).map { _ in try client() }
        let text =
            "GET \(target) HTTP/1.1\r\nHost: localhost\r\n"
            + fields.map { "\($0.0): \($0.1)\r\n" }.joined() + "\r\n"
        try waitUntilRead(count * text.utf8.count, at: location) { for client in clients { try client.send(text) } }
        return clients
    }

    /// Runs `send`, and returns when the daemon has read so many bytes from clients since, and has begun what they ask.
    func waitUntilRead(
        _ count: Int,
        at location: SourceLocation = #_sourceLocation,
        after send: () throws -> Void
    ) throws {
        let name = "drydock_received_bytes_total"
        let first = try metric(name)
        let before = try metric(name)
        // The question for the count is counted as well.
        let question = before - first
        try send()
        var questions = 0
        let isRead = try eventually {
            questions += 1
            return try metric(name) - before - questions * question >= count
        }
        #expect(isRead, "the daemon has not read what was sent", sourceLocation: location)
    }
}
