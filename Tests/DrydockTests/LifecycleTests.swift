// A manager in a group of services: it is open while the group runs, and closed when that has ended.

import Drydock
import DrydockLifecycle
import Foundation
import LibrarySupport
import Logging
import ServiceLifecycle
import TestSupport
import Testing

@Suite struct LifecycleTests {
    /// Downloads with the manager, and then ends the group.
    private struct Program: Service {
        let manager: DownloadManager
        let url: URL
        let texts: Monitor<[String]>

        func run() async throws {
            let text = try await manager.download(url).text
            texts.update { $0.append(text) }
        }
    }

    @Test("A group opens the manager, and closes it after the services that download") func group() async throws {
        let folder = try TemporaryFolder("drydock-lifecycle")
        let origin = Origin(try ScriptedOrigin { .answer(to: $0, "hello") })
        let (manager, texts) = (makeManager(folder), Monitor<[String]>([]))
        let program = Program(manager: manager, url: origin.url(), texts: texts)
        let group = ServiceGroup(
            configuration: .init(
                services: [
                    .init(service: manager),
                    .init(service: program, successTerminationBehavior: .gracefullyShutdownGroup),
                ],
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            )
        )
        try await group.run()
        #expect(texts.read { $0 } == ["hello"])
        #expect(await failure { try await manager.download(origin.url()) } == .closed)
        // The folder is free again, and has what has come.
        let next = makeManager(folder)
        #expect(try await next.download(origin.url()).outcome == .stillValid)
        await next.close()
    }

    @Test("A task that is cancelled closes the manager, too") func cancelled() async throws {
        let manager = makeManager()
        let running = Task { try await manager.run() }
        running.cancel()
        try await running.value
        #expect(await failure { try await manager.download(URL(string: "http://127.0.0.1:1/")!) } == .closed)
    }

    @Test("A manager that cannot be opened ends the group") func unavailable() async throws {
        let folder = try TemporaryFolder("drydock-lifecycle")
        try folder.write("store/mine", "mine")
        await #expect(throws: DownloadError.self) { try await makeManager(folder).run() }
    }
}
