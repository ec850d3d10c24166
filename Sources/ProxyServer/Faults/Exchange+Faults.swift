// What an exchange does for faults that are wanted: bytes without a frame, and waiting for what has gone out.

import CacheStore
import EventLoop

extension Exchange {
    /// Queues bytes as they are: in place of a head, behind a part of one, or behind the content. Afterwards the exchange
    /// ends by ``abort(_:)``.
    /// - Throws: `ClientGone` when nothing can be sent any more.
    func sendUnframed(_ piece: BodyPiece) throws(ClientGone) -> Bool {
        guard state == .open || state == .body, let carrier else { throw ClientGone() }
        state = .body
        carrier.sendUnframed(piece)
        guard let carrier = self.carrier else { throw ClientGone() }
        return carrier.queuedBytes <= OutputQueue.highWatermark
    }

    /// As ``sendUnframed(_:)``, of few bytes.
    func sendUnframed(_ text: String) {
        let bytes = Array(text.utf8)
        _ = try? sendUnframed(.bytes(Chunk(bytes), 0..<bytes.count))
    }

    /// Does nothing for a while, or, with nil, until the client ends its side or the daemon begins to end, which end any
    /// wait.
    func hold(_ nanoseconds: UInt64?, on loop: isolated EventLoop) async {
        endWithClient()
        atDrain { [weak self] in self?.task?.cancel() }
        repeat {
            do { try await loop.sleep(nanoseconds: nanoseconds ?? Self.day) } catch { return }
        } while nanoseconds == nil
    }

    private static let day: UInt64 = 86_400_000_000_000
}
