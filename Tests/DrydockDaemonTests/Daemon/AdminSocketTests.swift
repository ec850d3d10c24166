// A socket of the admin API whose file somebody removes: commands are taken there again.

import EventLoop
import Foundation
import Logging
import ProxyServer
import TestSupport
import Testing

@testable import DrydockDaemon

@Suite(.timeLimit(.minutes(5))) struct AdminSocketTests {
    @Test func `a socket whose file was removed is made anew, with its permissions, as often as that happens`()
        async throws
    {
        let folder = try TemporaryFolder()
        let path = folder.file("admin/admin.sock")
        let file = try folder.write(
            "drydock.yaml",
            """
            listen: unix:\(folder.file("proxy.sock"))
            admin: { listen: "unix:\(path)", mode: "0600" }
            services: []
            """
        )
        let daemon = try await Daemon.start(.file(path: file), environment: [:]) { _ in
            Logger(label: "drydock") { _ in SwiftLogNoOpLogHandler() }
        }
        let manager = FileManager.default
        #expect(try RawClient(unix: path).exchange("/v1/status").status == 200)
        // With its folder, too.
        for removed in [path, folder.file("admin"), path] {
            try manager.removeItem(atPath: removed)
            #expect(await eventually { (try? RawClient(unix: path).exchange("/v1/status").status) == 200 })
            let mode = try manager.attributesOfItem(atPath: path)[.posixPermissions] as? Int
            #expect(mode == 0o600)
        }
        await daemon.stop()
        #expect(!manager.fileExists(atPath: path))
    }
}
