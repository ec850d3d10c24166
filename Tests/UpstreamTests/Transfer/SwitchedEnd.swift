// The end of a connection that was handed over after a 101: what a test writes and reads there.

import EventLoop
import TestSupport

@testable import Upstream

/// Takes a connection, and speaks over it.
final class SwitchedEnd: @unchecked Sendable {  // protected by the loop: only closures that it runs touch the transport
    private var transport: (any ByteTransport)?
    private let heard = Monitor((text: "", end: IOResult?.none))
    private lazy var listener = Listener(self)

    /// Told of readiness; held by the end.
    private final class Listener: IOHandler {
        unowned let end: SwitchedEnd
        init(_ end: SwitchedEnd) { self.end = end }
        func ready(_ readiness: IOReadiness) { end.read() }
    }

    func take(_ connection: SwitchedConnection) { transport = connection.take() }

    private func read() {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while let result = transport.map({ transport in buffer.withUnsafeMutableBytes { transport.read(into: $0) } }) {
            guard case .bytes(let count) = result else {
                if result != .wouldBlock {
                    transport?.watch([])
                    heard.update { $0.end = result }
                }
                return
            }
            let text = String(decoding: buffer[..<count], as: UTF8.self)
            heard.update { $0.text += text }
        }
    }

    private func begin(on rig: Rig, _ text: String) {
        rig.sync { [self] loop in
            transport?.begin(on: loop, listener)
            transport?.watch(.read)
            let bytes = Array(text.utf8)
            _ = bytes.withUnsafeBytes { transport?.write($0) }
            read()
        }
    }

    /// Writes a short text.
    /// - Parameter count: how many bytes are waited for; nil for as many as are written.
    /// - Returns: what comes.
    func exchange(_ text: String, waitingFor count: Int? = nil, on rig: Rig) -> String {
        begin(on: rig, text)
        heard.wait(120) { $0.text.utf8.count >= count ?? text.utf8.count || $0.end != nil }
        return heard.read { $0.text }
    }

    /// Writes a byte, and waits for the end.
    func end(on rig: Rig) -> IOResult? {
        begin(on: rig, ".")
        heard.wait(120) { $0.end != nil }
        return heard.read { $0.end }
    }

    func close(on rig: Rig) {
        rig.sync { [self] _ in
            transport?.close(resets: false)
            transport = nil
        }
    }
}
