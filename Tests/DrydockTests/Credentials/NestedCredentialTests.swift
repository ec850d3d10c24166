// Closures about credentials that use the manager themselves: nobody waits for an answer that waits for him.

import Drydock
import Foundation
import HTTPTypes
import LibrarySupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct NestedCredentialTests {
    /// A manager that its own closures can reach.
    private final class Reach: Sendable {
        private let held = Monitor<DownloadManager?>(nil)

        var manager: DownloadManager? {
            get { held.read { $0 } }
            set { held.update { $0 = newValue } }
        }

        /// The body of a download, or the status of its refusal.
        func text(_ url: URL) async -> String {
            do throws(DownloadError) {
                return try await manager?.download(url).text ?? "no manager"
            } catch {
                guard case .unacceptableStatus(let result) = error else { return "\(error)" }
                return "\(result.head.status.code)"
            }
        }
    }

    /// `/token` is for everybody, all else for who has the token.
    private static func reply(_ request: OriginRequest) -> OriginReply {
        let shown = request.field("Authorization") ?? "nobody"
        if request.target == "/token" { return .answer(to: request, "good") }
        guard shown == "Bearer good" else { return .answer(401, to: request, "who are you?") }
        return .answer(to: request, "for \(shown)")
    }

    @Test func aClosureMayAskItsOwnOriginForTheToken() async throws {
        let reach = Reach()
        let address = Monitor<URL?>(nil)
        try await withManager {
            $0.credentials = [
                "http://127.0.0.1": .asking(first: .bearer("old")) { _ in
                    guard let url = address.read({ $0 }) else { return nil }
                    return .bearer(await reach.text(url))
                }
            ]
        } _: { request in
            Self.reply(request)
        } _: { manager, origin async throws in
            reach.manager = manager
            defer { reach.manager = nil }
            address.update { $0 = origin.url("/token") }
            #expect(try await manager.download(origin.url()).text == "for Bearer good")
            let token = origin.server.log.first { $0.target == "/token" }
            #expect(token != nil && token?.field("Authorization") == nil, "what was refused is not shown again")
        }
    }

    @Test("The 401 of a request within the closure is its result, also of the very download that waits")
    func refusalWithin() async throws {
        let (reach, asked) = (Reach(), Counter())
        let (address, found) = (Monitor<URL?>(nil), Monitor<[String]>([]))
        try await withManager {
            $0.credentials = [
                "http://127.0.0.1": .asking { _ in
                    asked.add()
                    guard let url = address.read({ $0 }) else { return nil }
                    // Tasks that the closure makes are within it, too.
                    async let one = reach.text(url)
                    let other = await Task { await reach.text(url) }.value
                    let texts = [await one, other]
                    found.update { $0 += texts }
                    return .bearer("good")
                }
            ]
        } _: { request in
            Self.reply(request)
        } _: { manager, origin async throws in
            reach.manager = manager
            defer { reach.manager = nil }
            address.update { $0 = origin.url() }
            #expect(try await manager.download(origin.url()).text == "for Bearer good")
            #expect(found.read { $0 } == ["401", "401"] && asked.value == 1)
            #expect(try await manager.download(origin.url("/b")).text == "for Bearer good")
        }
    }

    @Test("Two origins whose closures ask one another both get their answers", arguments: [false, true])
    func circle(atOnce: Bool) async throws {
        let (reach, thinking) = (Reach(), Counter())
        let servers = [Origin(try ScriptedOrigin(Self.reply)), Origin(try ScriptedOrigin(Self.reply))]
        let found = Monitor<[String]>([])
        let manager = makeManager(nil) { configuration in
            for (own, other) in [(servers[0], servers[1]), (servers[1], servers[0])] {
                configuration.credentials[own.server.url] = .asking { _ in
                    thinking.add()
                    // Both think before either asks.
                    if atOnce { _ = await eventually { thinking.value == 2 } }
                    let text = await reach.text(other.url("/inner"))
                    found.update { $0.append(text) }
                    return .bearer("good")
                }
            }
        }
        reach.manager = manager
        let first = Task { try await manager.download(servers[0].url()).text }
        if !atOnce { #expect(try await first.value == "for Bearer good") }
        #expect(try await manager.download(servers[1].url()).text == "for Bearer good")
        #expect(try await first.value == "for Bearer good")
        let texts = found.read { $0 }
        #expect(texts.count == 2)
        // At least one of the two was not waited for.
        #expect(texts.contains("401") && texts.allSatisfy { $0 == "401" || $0 == "for Bearer good" })
        reach.manager = nil
        await manager.close()
    }

    @Test func aClosureThatNeverAnswersHoldsUpNobodyElse() async throws {
        let (asked, gate) = (Counter(), Gate())
        defer { gate.open() }
        let other = Origin(try ScriptedOrigin { .answer(to: $0, "free") })
        try await withManager {
            $0.maximumFetches = 1
            $0.abandonment = .abort
            $0.credentials = [
                "http://127.0.0.1": .asking { _ in
                    asked.add()
                    _ = await eventually { gate.isOpened }
                    return nil
                }
            ]
        } _: { request in
            Self.reply(request)
        } _: { manager, origin async throws in
            let waiting = (0..<20).map { number in Task { try await manager.download(origin.url("/\(number)")) } }
            #expect(await origin.isAsked(20))
            #expect(await eventually { asked.value == 1 && manager.statistics.running == 0 })
            #expect(try await manager.download(other.url()).text == "free", "it has no place among those under way")
            for task in waiting { task.cancel() }
            for task in waiting {
                let failed = await failure { try await task.value }
                #expect(failed == .cancelled)
            }
            #expect(await eventually { manager.downloadCount == 0 })
        }
    }
}
