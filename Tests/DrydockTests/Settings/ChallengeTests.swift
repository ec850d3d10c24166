// Origins over TLS: whom a manager trusts, how it shows itself, and what a program decides about the rest.

import Drydock
import Foundation
import HTTPTypes
import LibrarySupport
import TestSupport
import Testing

@Suite struct ChallengeTests {
    private let folder: TemporaryFolder
    private let files: TLSFiles

    init() throws {
        folder = try TemporaryFolder("drydock-challenge")
        files = try TLSFiles(in: folder)
    }

    private typealias Ask = @Sendable (TLSChallenge) async -> TLSChallenge.Answer

    /// Runs a test with a manager and an origin over TLS that has a file `a.txt`.
    private func withOrigin(
        clientCertificates: Bool = false,
        configure change: (inout DownloadConfiguration) -> Void,
        _ test: (DownloadManager, NginxOrigin) async throws -> Void
    ) async throws {
        let origin = try NginxOrigin(tls: files, clientCertificates: clientCertificates)
        for name in ["a.txt", "b.txt"] { try origin.write(name, "over TLS") }
        let manager = makeManager(nil, change)
        do {
            try await test(manager, origin)
        } catch {
            await manager.close()
            throw error
        }
        await manager.close()
    }

    private func url(_ origin: NginxOrigin, _ name: String = "a.txt") throws -> URL {
        try #require(URL(string: "\(origin.url)/\(name)"))
    }

    private func authority(_ configuration: inout DownloadConfiguration) {
        configuration.tls.authorities = URL(fileURLWithPath: files.authority)
    }

    private func certificate() -> (certificate: URL, key: URL) {
        (URL(fileURLWithPath: files.clientCertificate), URL(fileURLWithPath: files.clientKey))
    }

    // MARK: - Settings

    @Test func anOriginIsVerifiedUnlessThatIsSwitchedOff() async throws {
        try await withOrigin(configure: { _ in }) { manager, origin async throws in
            let url = try url(origin)
            let error = await failure { try await manager.download(url) }
            #expect(error?.originKind == .untrusted)
            #expect(error?.description.contains("tls.authorities") == true)
        }
        try await withOrigin {
            $0.tls.verifies = false
        } _: { manager, origin async throws in
            #expect(try await manager.download(url(origin)).text == "over TLS")
        }
        try await withOrigin(configure: authority) { manager, origin async throws in
            #expect(try await manager.download(url(origin)).text == "over TLS")
        }
    }

    @Test func aPinnedKeyIsTheOnlyOne() async throws {
        let (right, wrong) = (try files.pin, try TLSFiles(in: folder, "other").pin)
        for (pins, isTrusted) in [([right], true), ([wrong, right], true), ([wrong], false)] {
            try await withOrigin {
                authority(&$0)
                $0.tls.pins = pins
            } _: { manager, origin async throws in
                let url = try url(origin)
                if isTrusted {
                    #expect(try await manager.download(url).text == "over TLS")
                } else {
                    let error = await failure { try await manager.download(url) }
                    #expect(error?.originKind == .untrusted)
                }
            }
        }
    }

    @Test func aCertificateOfOnesOwnIsShown() async throws {
        let own = certificate()
        try await withOrigin(clientCertificates: true) {
            authority(&$0)
            ($0.tls.certificate, $0.tls.key) = own
        } _: { manager, origin async throws in
            #expect(try await manager.download(url(origin)).text == "over TLS")
        }
    }

    // MARK: - Trust

    @Test(.timeLimit(.minutes(2))) func whatIsAskedWithinTheClosureIsNotAskedAbout() async throws {
        let (reach, asked) = (Monitor<(manager: DownloadManager?, url: URL?)>((nil, nil)), Counter())
        let found = Monitor<[OriginFailure.Kind?]>([])
        try await withOrigin {
            $0.tls.onChallenge = { _ in
                asked.add()
                guard case (let manager?, let url?) = reach.read({ $0 }) else { return .refuse }
                let error = await failure { try await manager.download(url) }
                found.update { $0.append(error?.originKind) }
                return .proceed
            }
        } _: { manager, origin async throws in
            let url = try url(origin)
            reach.update { $0 = (manager, url) }
            #expect(try await manager.download(url).text == "over TLS")
            #expect(found.read { $0 } == [.untrusted] && asked.value == 1)
            reach.update { $0 = (nil, nil) }
        }
    }

    @Test func theProgramIsAskedOnceForAllWhoWait() async throws {
        let asked = Monitor<[TLSChallenge]>([])
        let gate = Gate()
        try await withOrigin {
            $0.tls.onChallenge = { challenge in
                asked.update { $0.append(challenge) }
                _ = await eventually { gate.isOpened }
                return .proceed
            }
        } _: { manager, origin async throws in
            let urls = try ["a.txt", "b.txt", "a.txt", "b.txt"].map { try url(origin, $0) }
            try await withThrowingTaskGroup(of: String.self) { group in
                for url in urls { group.addTask { try await manager.download(url).text } }
                #expect(await eventually { asked.read { $0.count } == 1 && manager.statistics.requests >= 2 })
                #expect(await eventually { manager.statistics.running == 0 }, "who thinks takes nobody's place")
                gate.open()
                for try await text in group { #expect(text == "over TLS") }
            }
            let options = DownloadOptions(cachePolicy: .reload)
            #expect(try await manager.download(urls[0], options: options).text == "over TLS")
            let challenges = asked.read { $0 }
            #expect(challenges.count == 1)
            let challenge = try #require(challenges.first)
            #expect(challenge.origin == origin.url)
            #expect(challenge.reason == .unknownAuthority)
            #expect(challenge.pin == (try files.pin))
            #expect(challenge.certificates.count == 1)
            #expect(challenge.detail.contains(origin.authority))
        }
    }

    @Test func whatIsRefusedIsRefusedForGood() async throws {
        let asked = Counter()
        try await withOrigin {
            $0.tls.onChallenge = { _ in
                asked.add()
                return .refuse
            }
        } _: { manager, origin async throws in
            for name in ["a.txt", "b.txt"] {
                let url = try url(origin, name)
                let error = await failure { try await manager.download(url) }
                #expect(error?.originKind == .untrusted)
            }
            #expect(asked.value == 1)
            #expect(origin.log.isEmpty)
        }
    }

    @Test func anotherKeyIsAnotherQuestion() async throws {
        let asked = Monitor<[String]>([])
        let other = try TLSFiles(in: folder, "other")
        let pins = [try files.pin, try other.pin]
        try await withOrigin {
            $0.lifetime = .zero
            $0.tls.onChallenge = { challenge in
                asked.update { $0.append(challenge.pin) }
                return challenge.pin == pins[0] ? .proceed : .refuse
            }
        } _: { manager, origin async throws in
            let url = try url(origin)
            #expect(try await manager.download(url, options: .init(cachePolicy: .bypass)).text == "over TLS")
            origin.stop()
            for (name, source) in [("server.pem", other.certificate), ("server.key", other.key)] {
                try Shell.must("cp", [source, "\(files.folder)/\(name)"])
            }
            try origin.start()
            let error = await failure { try await manager.download(url, options: .init(cachePolicy: .bypass)) }
            #expect(error?.originKind == .untrusted)
            #expect(asked.read { $0 } == pins)
        }
    }

    @Test func whatVerifiesIsNoQuestion() async throws {
        let asked = Counter()
        try await withOrigin {
            authority(&$0)
            $0.tls.onChallenge = { _ in
                asked.add()
                return .proceed
            }
        } _: { manager, origin async throws in
            #expect(try await manager.download(url(origin)).text == "over TLS")
            #expect(asked.value == 0)
        }
    }

    @Test func aKeyThatIsNotPinnedIsNoQuestion() async throws {
        let asked = Counter()
        let wrong = try TLSFiles(in: folder, "other").pin
        try await withOrigin {
            $0.tls.pins = [wrong]
            $0.tls.onChallenge = { _ in
                asked.add()
                return .proceed
            }
        } _: { manager, origin async throws in
            let url = try url(origin)
            let error = await failure { try await manager.download(url) }
            #expect(error?.originKind == .untrusted)
            #expect(asked.value == 0)
        }
    }

    @Test func whoHasLeftDoesNotWaitForTheProgram() async throws {
        let (asked, gate) = (Counter(), Gate())
        try await withOrigin {
            $0.abandonment = .abort
            $0.tls.onChallenge = { _ in
                asked.add()
                _ = await eventually { gate.isOpened }
                return .proceed
            }
        } _: { manager, origin async throws in
            let (url, other) = (try url(origin), try url(origin, "b.txt"))
            let leaving = Task { try await manager.download(url) }
            let staying = Task { try await manager.download(other) }
            #expect(await eventually { asked.value == 1 })
            leaving.cancel()
            let failed = await failure { try await leaving.value }
            #expect(failed == .cancelled)
            gate.open()
            #expect(try await staying.value.text == "over TLS")
            #expect(asked.value == 1)
        }
    }

    @Test func theEndOfAManagerDoesNotWaitForTheProgram() async throws {
        let (asked, gate) = (Counter(), Gate())
        defer { gate.open() }
        try await withOrigin {
            $0.tls.onChallenge = { _ in
                asked.add()
                _ = await eventually { gate.isOpened }
                return .proceed
            }
        } _: { manager, origin async throws in
            let url = try url(origin)
            let waiting = Task { try await manager.download(url) }
            #expect(await eventually { asked.value == 1 })
            await manager.close()
            let failed = await failure { try await waiting.value }
            #expect(failed == .cancelled)
        }
    }

    // MARK: - Certificates of the program's own

    @Test func anOriginMayAskForACertificate() async throws {
        let asked = Monitor<[TLSChallenge.Reason]>([])
        let own = certificate()
        try await withOrigin(clientCertificates: true) {
            authority(&$0)
            $0.tls.onChallenge = { challenge in
                asked.update { $0.append(challenge.reason) }
                return .present(certificate: own.certificate, key: own.key)
            }
        } _: { manager, origin async throws in
            for name in ["a.txt", "b.txt"] {
                #expect(try await manager.download(url(origin, name)).text == "over TLS")
            }
            #expect(asked.read { $0 } == [.wantsCertificate])
            #expect(origin.log.count == 2, "nothing was sent before the program had its say")
        }
    }

    @Test func anOriginMayNeedBoth() async throws {
        let asked = Monitor<[TLSChallenge.Reason]>([])
        let own = certificate()
        try await withOrigin(clientCertificates: true) {
            $0.tls.onChallenge = { challenge in
                asked.update { $0.append(challenge.reason) }
                return challenge.reason == .wantsCertificate
                    ? .present(certificate: own.certificate, key: own.key) : .proceed
            }
        } _: { manager, origin async throws in
            #expect(try await manager.download(url(origin)).text == "over TLS")
            #expect(asked.read { $0 } == [.unknownAuthority, .wantsCertificate])
        }
    }

    @Test(arguments: [TLSChallenge.Answer.proceed, .refuse])
    func anOriginThatAsksMayGetNone(answer: TLSChallenge.Answer) async throws {
        try await withOrigin(clientCertificates: true) {
            authority(&$0)
            $0.tls.onChallenge = { _ in answer }
        } _: { manager, origin async throws in
            let url = try url(origin)
            let error = await failure { try await manager.download(url) }
            if answer == .proceed {
                guard case .unacceptableStatus(let result) = error else {
                    Issue.record("\(error as Any)")
                    return
                }
                #expect(result.head.status.code == 400, "that is what this origin says then")
            } else {
                #expect(error?.originKind == .untrusted)
                #expect(origin.log.isEmpty)
            }
        }
    }

    @Test func aCertificateIsNoAnswerToAnotherQuestion() async throws {
        let own = certificate()
        try await withOrigin {
            $0.tls.onChallenge = { _ in .present(certificate: own.certificate, key: own.key) }
        } _: { manager, origin async throws in
            let url = try url(origin)
            let error = await failure { try await manager.download(url) }
            #expect(error?.originKind == .untrusted)
        }
    }

    @Test(.timeLimit(.minutes(2))) func closuresThatWaitForOneAnotherComeToAnEnd() async throws {
        let other = try NginxOrigin(tls: files)
        try other.write("a.txt", "over TLS")
        let reach = Monitor<(manager: DownloadManager?, urls: [URL])>((nil, []))
        let begun = Counter()
        try await withOrigin {
            $0.tls.onChallenge = { challenge in
                begun.add()
                _ = await eventually { begun.value == 2 }
                let (manager, urls) = reach.read { $0 }
                if let manager, let url = urls.first(where: { !$0.absoluteString.hasPrefix(challenge.origin) }) {
                    _ = try? await manager.download(url)
                }
                return .proceed
            }
        } _: { manager, origin async throws in
            let urls = [try url(origin), try url(other)]
            reach.update { $0 = (manager, urls) }
            async let first = manager.download(urls[0]).text
            async let second = manager.download(urls[1]).text
            #expect(try await [first, second] == ["over TLS", "over TLS"])
            #expect(begun.value == 2)
            reach.update { $0 = (nil, []) }
        }
    }
}
