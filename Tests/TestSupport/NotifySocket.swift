// The service manager's side of sd_notify: collects what a daemon says about itself.

import Foundation

/// A unix datagram socket with a thread that reads it.
package final class NotifySocket: Sendable {
    package let path: String
    private let lines = Monitor<[String]>([])
    private let descriptor: Int32

    package init(_ path: String) throws {
        self.path = path
        descriptor = try Sockets.bindDatagram(path)
        let (descriptor, lines) = (descriptor, lines)
        Threads.start("notify") {
            var buffer = [UInt8](repeating: 0, count: 4096)
            while true {
                let count = recv(descriptor, &buffer, buffer.count, 0)
                if count < 0, errno == EINTR { continue }
                if count <= 0 { break }
                let text = String(decoding: buffer[..<count], as: UTF8.self)
                if text == "END" { break }
                lines.update { $0 += text.split(separator: "\n").map(String.init) }
            }
            close(descriptor)
        }
    }

    deinit {
        // A datagram of our own ends the thread, which then closes the descriptor.
        let type = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let sender = socket(AF_UNIX, type, 0)
        _ = Sockets.sendDatagram(sender, to: path, Array("END".utf8))
        close(sender)
        unlink(path)
    }

    /// Every line so far: `READY=1`, `STATUS=...`, `RELOADING=1`, `MONOTONIC_USEC=...`, `STOPPING=1`.
    package var received: [String] { lines.read { $0 } }

    /// Blocks until `count` lines with this beginning have come; `false` when `seconds` (default 120) passed first.
    @discardableResult
    package func wait(for beginning: String, count: Int = 1, seconds: Double = 120) -> Bool {
        lines.wait(seconds) { $0.count { $0.hasPrefix(beginning) } >= count }
    }
}
