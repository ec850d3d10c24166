// Name resolution: never on a loop, once per name, remembered within bounds, and judged by the target rules.

import EventLoop
import HTTPWire
import LoopSupport
import Synchronization
import TestSupport
import Testing

@testable import Upstream

@Suite struct ResolverTests {
    private static func address(_ host: String, _ port: UInt16) -> SocketAddress? {
        SocketAddress(numericHost: host, port: port)
    }

    private static func addresses(_ hosts: String...) -> Resolver.Lookup {
        { _, port in .addresses(hosts.compactMap { address($0, port) }) }
    }

    @Test(arguments: Carriage.allCases)
    func `a slow name server holds up its own requests, and no loop`(carriage: Carriage) throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "x") }
        let gate = Gate()
        let rig = try Rig(by: carriage) { _, port in
            gate.wait()
            return .addresses([Self.address("127.0.0.1", port)].compactMap { $0 })
        }
        defer { rig.close() }
        let (slow, _) = rig.start(UpstreamRequest(url: "http://slow.test:\(origin.port)/slow"))
        for _ in 0..<20 { #expect(rig.get("\(origin.url)/fast").isFinished) }
        #expect(slow.read { !$0.isOver })
        gate.open()
        #expect(slow.wait(120) { $0.isFinished })
        #expect(origin.requests(target: "/slow") == 1)
    }

    @Test(arguments: Carriage.allCases)
    func `libcurl gets its addresses from Drydock, and only from it`(carriage: Carriage) throws {
        let origin = try ScriptedOrigin { .answer(to: $0, $0.field("Host") ?? "") }
        let questions = Counter()
        let rig = try Rig(by: carriage) { _, port in
            questions.add()
            return .addresses([Self.address("127.0.0.1", port)].compactMap { $0 })
        }
        defer { rig.close() }
        // No name server knows these names.
        for _ in 0..<5 {
            #expect(rig.get("http://Name.Test:\(origin.port)/").text == "name.test:\(origin.port)")
        }
        #expect(questions.value == 1)
        #expect(rig.get("http://name.test.:\(origin.port)/").isFinished)
        #expect(questions.value == 2)
    }

    @Test(arguments: Carriage.allCases)
    func `the second address is tried where the first refuses`(carriage: Carriage) throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "x") }
        let rig = try Rig(by: carriage, lookup: Self.addresses("127.0.0.2", "127.0.0.1"))
        defer { rig.close() }
        // The origin listens on 127.0.0.1 alone.
        #expect(rig.get("http://two.test:\(origin.port)/").isFinished)
    }

    @Test(arguments: ["0x7f.0.0.1", "2130706433", "127.1", "0177.0.0.1", "127.0.0.1"], Carriage.allCases)
    func `numeric hosts in every spelling are addresses`(host: String, carriage: Carriage) throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "x") }
        let rig = try Rig(by: carriage) { _, _ in .notFound }
        defer { rig.close() }
        #expect(rig.get("http://\(host):\(origin.port)/").text == "x")
        let forward = UpstreamRequest(url: "http://\(host):\(origin.port)/", target: .noPrivate)
        let heard = rig.run(forward)
        #expect(heard.error?.kind == .addressRefused)
        #expect(heard.error?.proxyStatus == "destination_ip_prohibited")
        #expect(origin.requests() == 1)
    }

    @Test(arguments: [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "::1", "::",
        "fe80::1", "fc00::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "224.0.0.1", "255.255.255.255",
    ])
    func `forward mode goes to no internal address, whatever the name`(address: String) async throws {
        let pool = try IOPool(threads: 1)
        defer { pool.stop() }
        let resolver = Resolver(pool: pool, lookup: Self.addresses(address))
        await #expect(throws: UpstreamError.self) {
            try await resolver.resolve("inside.test", port: 80, rules: .noPrivate)
        }
        let named = try await resolver.resolve("inside.test", port: 80, rules: .any)
        #expect(named.count == 1)
        let literal = address.contains(":") ? "[\(address)]" : address
        let known = resolver.known(literal, port: 80, rules: .noPrivate)
        #expect((try? known?.get()) == nil && known != nil)
    }

    @Test func `of mixed addresses the internal ones are left out`() async throws {
        let pool = try IOPool(threads: 1)
        defer { pool.stop() }
        let resolver = Resolver(pool: pool, lookup: Self.addresses("127.0.0.1", "192.0.2.7", "10.0.0.1"))
        let allowed = try await resolver.resolve("mixed.test", port: 81, rules: .noPrivate)
        #expect(allowed.map(\.description) == ["192.0.2.7:81"])
    }

    @Test(arguments: Carriage.allCases)
    func `a connection made under other rules is not used, and the refusal is no answer`(carriage: Carriage) throws {
        let origin = try ScriptedOrigin { .answer(to: $0, "secret") }
        // The second answer is an address that no packet reaches: it stands for the internet.
        let answers = Counter()
        let rig = try Rig(by: carriage, lifetime: 0) { _, port in
            answers.add()
            return .addresses([Self.address(answers.value == 1 ? "127.0.0.1" : "2001:db8::1", port)].compactMap { $0 })
        }
        defer { rig.close() }
        let url = "http://rebind.test:\(origin.port)/"
        #expect(rig.get(url).text == "secret")
        let timeouts = Timeouts(connect: 300_000_000)
        let heard = rig.run(UpstreamRequest(url: url, timeouts: timeouts, target: .noPrivate))
        #expect(heard.error != nil)
        #expect(heard.bodyLength == 0)
        #expect(origin.requests() == 1)
    }

    @Test func `one question serves all who ask, and its answer those who ask later`() async throws {
        let pool = try IOPool(threads: 1)
        defer { pool.stop() }
        let gate = Gate()
        let asked = Counter()
        let resolver = Resolver(pool: pool) { _, port in
            asked.add()
            gate.wait()
            return .addresses([Self.address("127.0.0.9", port)].compactMap { $0 })
        }
        let answers = Counter()
        for _ in 0..<10 {
            _ = resolver.ask("ONE.test", port: 80, rules: .any) { if (try? $0.get()) != nil { answers.add() } }
        }
        gate.open()
        #expect(answers.wait(for: 10))
        let later = try await resolver.resolve("one.TEST", port: 80, rules: .any)
        #expect(later.first?.host == "127.0.0.9")
        #expect(asked.value == 1)
    }

    @Test func `failures are remembered for a shorter while, and expire`() async throws {
        let pool = try IOPool(threads: 1)
        defer { pool.stop() }
        let asked = Counter()
        let kept = Resolver(pool: pool, lifetime: 0, failureLifetime: 3_600_000_000_000) { _, _ in
            asked.add()
            return .notFound
        }
        for _ in 0..<3 {
            let error = await #expect(throws: UpstreamError.self) {
                try await kept.resolve("none.test", port: 80, rules: .any)
            }
            #expect(error?.kind == .nameNotFound)
            #expect(error?.proxyStatus == "dns_error")
        }
        #expect(asked.value == 1)
        let forgetful = Resolver(pool: pool, failureLifetime: 0) { _, _ in
            asked.add()
            return .failed("no name server")
        }
        for _ in 0..<3 {
            let error = await #expect(throws: UpstreamError.self) {
                try await forgetful.resolve("none.test", port: 80, rules: .any)
            }
            #expect(error?.kind == .resolver)
            #expect(error?.detail.contains("no name server") == true)
        }
        #expect(asked.value == 4)
    }

    @Test func `questions at once and answers remembered are bounded`() async throws {
        let pool = try IOPool(threads: 1)
        defer { pool.stop() }
        let gate = Gate()
        let resolver = Resolver(pool: pool, capacity: 4) { _, port in
            gate.wait()
            return .addresses([Self.address("127.0.0.1", port)].compactMap { $0 })
        }
        let refused = Counter()
        let answered = Counter()
        for number in 0..<10 {
            _ = resolver.ask("n\(number).test", port: 80, rules: .any) { result in
                if case .success = result { answered.add() } else { refused.add() }
            }
        }
        #expect(refused.value == 6)
        gate.open()
        #expect(answered.wait(for: 4))
        for number in 0..<100 { _ = try await resolver.resolve("m\(number).test", port: 80, rules: .any) }
        let known = (0..<100).filter { resolver.known("m\($0).test", port: 80, rules: .any) != nil }
        #expect(known.count <= 4)
        #expect(known.last == 99)
    }

    @Test func `whoever leaves a question hears nothing, and harms nobody`() async throws {
        let pool = try IOPool(threads: 1)
        let gate = Gate()
        let resolver = Resolver(pool: pool) { _, port in
            gate.wait()
            return .addresses([Self.address("127.0.0.1", port)].compactMap { $0 })
        }
        let answers = (0..<3).map { _ in Counter() }
        let questions = answers.map { answer in
            resolver.ask("slow.test", port: 80, rules: .any) { if (try? $0.get()) != nil { answer.add() } }
        }
        #expect(resolver.waiterCount == 3)
        questions[0].leave()
        questions[0].leave()
        questions[2].leave()
        #expect(resolver.waiterCount == 1)
        gate.open()
        #expect(answers[1].wait(for: 1))
        #expect(answers.map(\.value) == [0, 1, 0])
        #expect(resolver.waiterCount == 0)
        // The answer has been remembered, and leaving is too late to matter.
        questions[1].leave()
        #expect(resolver.known("slow.test", port: 80, rules: .any) != nil)
        pool.stop()
    }

    @Test(arguments: Carriage.allCases)
    func `a transfer that ends while its name is asked for leaves no waiter`(carriage: Carriage) throws {
        let gate = Gate()
        let rig = try Rig(by: carriage) { _, _ in
            gate.wait()
            return .notFound
        }
        defer {
            gate.open()
            rig.close()
        }
        let timeouts = Timeouts(connect: 30_000_000)
        let heard = rig.run(UpstreamRequest(url: "http://slow.test/", timeouts: timeouts))
        #expect(heard.error?.kind == .timeout(.resolve))
        let (_, number) = rig.start(UpstreamRequest(url: "http://slow.test/"))
        #expect(rig.resolver.waiterCount == 1)
        rig.with(number) { $0.cancel() }
        #expect(rig.resolver.waiterCount == 0)
    }

    @Test(arguments: Carriage.allCases)
    func `a dial that ends while its name is asked for leaves no waiter`(carriage: Carriage) async throws {
        let gate = Gate()
        let rig = try Rig(by: carriage) { _, _ in
            gate.wait()
            return .notFound
        }
        defer {
            gate.open()
            rig.close()
        }
        let target = DialTarget(host: "slow.test", port: 80, rules: .any, timeout: 30_000_000)
        let ended = await rig.lookUp(target).value
        #expect(ended == .timeout(.resolve))
        #expect(rig.resolver.waiterCount == 0)
        let patient = await rig.lookUp(DialTarget(host: "slow.test", port: 80, rules: .any, timeout: nil))
        #expect(await eventually { rig.resolver.waiterCount == 1 })
        patient.cancel()
        #expect(await patient.value == .cancelled)
        #expect(rig.resolver.waiterCount == 0)
    }

    @Test func `the system knows localhost`() async throws {
        let pool = try IOPool(threads: 1)
        defer { pool.stop() }
        let found = try await Resolver(pool: pool).resolve("localhost", port: 8080, rules: .any)
        #expect(found.allSatisfy { $0.isLoopback && $0.port == 8080 })
        #expect(!found.isEmpty)
    }
}

extension Resolver {
    /// The same for a test that can wait.
    fileprivate func resolve(
        _ host: String,
        port: UInt16,
        rules: TargetRules
    ) async throws(UpstreamError) -> [SocketAddress] {
        // Handed over under a lock: ThreadSanitizer sees no hand-over of a continuation that is resumed before its wait.
        let answer = Monitor<Result<[SocketAddress], UpstreamError>?>(nil)
        await withCheckedContinuation { waiter in
            _ = ask(host, port: port, rules: rules) { result in
                answer.update { $0 = result }
                waiter.resume()
            }
        }
        return try answer.read { $0 ?? .success([]) }.get()
    }
}

extension Rig {
    /// Asks the client's dialler for the addresses of a target, up to its first wait: why it got none.
    fileprivate func lookUp(_ target: DialTarget) async -> Task<UpstreamError.Kind?, Never> {
        await begin(on: loop) { [inside] loop in
            guard let client = inside.client else { return nil }
            do throws(UpstreamError) {
                _ = try await client.dialler.addresses(of: target, on: loop)
                return nil
            } catch {
                return error.kind
            }
        }
    }
}
