// What a client that keeps its connection has to know: whether it is idle, and whether a body is awaited.

import Foundation

extension RawClient {
    /// Whether bytes have come that no response has taken.
    package var hasUnreadBytes: Bool { filled > start }

    /// Whether the server has neither closed the connection nor sent anything unasked.
    package var isIdle: Bool {
        guard descriptor >= 0, !hasUnreadBytes else { return false }
        var byte: UInt8 = 0
        let count = recv(descriptor, &byte, 1, Int32(truncatingIfNeeded: MSG_PEEK | MSG_DONTWAIT))
        return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)
    }

    /// Waits, after a head with `Expect: 100-continue`, for 100 (then true) or for a final head (then false).
    ///
    /// What was read here is part of the next ``readHead(method:)``.
    package func isToldToContinue() throws -> Bool {
        while true {
            let head = try readOneHead()
            early.append(head)
            if head.status == 100 { return true }
            if head.status >= 200 { return false }
        }
    }
}
