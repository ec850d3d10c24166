// The routes of a whole daemon: each has a path that the admin API names, and each of these has a route.

import HTTPWire
import Logging
import ProxyServer
import TestSupport
import Testing

@testable import DrydockDaemon

@Suite struct AdminPathTests {
    @Test("a daemon serves every path that is named, and no other; no method on a path twice")
    func everyPath() async throws {
        let folder = try TemporaryFolder()
        let file = try folder.write(
            "drydock.yaml",
            """
            listen: unix:\(folder.file("proxy.sock"))
            admin: unix:\(folder.file("admin.sock"))
            forward: { enabled: true }
            """
        )
        let daemon = try await Daemon.start(.file(path: file), environment: [:]) { _ in
            Logger(label: "drydock") { _ in SwiftLogNoOpLogHandler() }
        }
        let routes = daemon.adminRoutes
        await daemon.stop()
        #expect(Set(routes.map(\.path)) == Set(AdminPath.allCases))
        let names = routes.map { "\($0.method.name) \($0.path.rawValue)" }
        #expect(Set(names).count == names.count)
    }
}
