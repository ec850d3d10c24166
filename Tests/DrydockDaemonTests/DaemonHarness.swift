// A whole daemon in the process of the tests, whose admin API is asked over its socket.

import Logging
import TestSupport

@testable import DrydockDaemon

/// A daemon with an admin socket in a folder of its own; ended by `run`.
final class DaemonHarness: Sendable {
    let daemon: DrydockDaemon.Daemon
    let folder: TemporaryFolder

    private init(_ text: String) async throws {
        folder = try TemporaryFolder()
        let file = try folder.write(
            "drydock.yaml",
            """
            listen: unix:\(folder.file("proxy.sock"))
            admin: unix:\(folder.file("admin.sock"))
            \(text)
            """
        )
        daemon = try await DrydockDaemon.Daemon.start(.file(path: file), environment: [:]) { _ in
            Logger(label: "drydock") { _ in SwiftLogNoOpLogHandler() }
        }
    }

    /// A client of the admin API.
    func client() throws -> RawClient { try RawClient(unix: folder.file("admin.sock")) }

    /// One request to the admin API over a connection of its own; blocks until it is answered.
    func ask(_ method: String, _ target: String, _ body: String? = nil) throws -> RawResponse {
        try client().exchange(method, target, body: body.map { Array($0.utf8) })
    }

    /// Runs `body` on a thread that may block, and ends the daemon after it.
    /// - Parameter text: the configuration, but for its addresses.
    static func run(_ text: String = "services: []", _ body: @escaping @Sendable (DaemonHarness) throws -> Void)
        async throws
    {
        let harness = try await DaemonHarness(text)
        let result = await withTaskExecutorPreference(BlockingExecutor.shared) { Result { try body(harness) } }
        await harness.daemon.stop()
        try result.get()
    }
}
