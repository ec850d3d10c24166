// The handler of the tests: what it answers is in the path of the target.

import CacheStore
import EventLoop
import Glibc
import HTTPWire
import ServiceCore
import TestSupport
import Upstream

@testable import ProxyServer

final class ScriptedHandler: ExchangeHandler {
    private let observations: Observations
    private let gate: Gate
    private let pool: IOPool
    private let client: UpstreamClient
    /// Whose answers those of the hot path are.
    private let hotRoute: ServiceRoute?
    private let pattern = Chunk(Pattern.bytes(0..<(2 << 20)))
    private let keptPattern = Chunk(Pattern.bytes(0..<(2 << 20)), isKept: true)

    init(on loop: isolated EventLoop, observations: Observations, gate: Gate, pool: IOPool) {
        self.observations = observations
        self.gate = gate
        self.pool = pool
        let text = "services: [{ name: hot, match: { prefix: /hot }, base_url: \"http://hot.test\" }]"
        hotRoute = try? compile(text).services.first
        client = UpstreamClient(on: loop, resolver: Resolver(pool: pool))
    }

    func shutdown() { client.shutdown() }

    /// `/hot/N`: N bytes of the pattern, on the hot path; `/kept/N`: of the pattern in a file of its own.
    func answerSynchronously(_ request: borrowing HotRequest, through sender: any HotSender) -> HotAnswer {
        let target = String(decoding: request.target, as: UTF8.self)
        let isKept = target.hasPrefix("/kept/")
        guard isKept || target.hasPrefix("/hot/"), let count = Int(target.dropFirst(isKept ? 6 : 5)) else {
            return .notMine
        }
        let prepared = Array("HTTP/1.1 200 OK\r\nContent-Length: \(count)\r\n".utf8)
        let age = Array("Age: 7\r\n".utf8)
        let status = Array("drydock; hit".utf8)
        let chunk = isKept ? keptPattern : pattern
        let body =
            request.method == .head
            ? .none : HotBody.memory(chunk.bytes.part(0..<count), in: chunk.file)
        return prepared.withUnsafeBytes { prepared in
            age.withUnsafeBytes { age in
                status.withUnsafeBytes { status in
                    sender.sendAtOnce(
                        prepared: prepared,
                        dynamic: age,
                        body: body,
                        owner: Unmanaged.passUnretained(chunk),
                        record: HotRecord(status: 200, route: HotRoute(hotRoute), cacheStatus: status)
                    )
                }
            }
        }
    }

    func answer(_ exchange: Exchange, on loop: isolated EventLoop) async {
        observations.seen.update { $0.targets.append(exchange.request.target) }
        if exchange.request.method == .connect { return await tunnel(exchange, on: loop) }
        let parts = exchange.request.target.split(separator: "/").map(String.init)
        let number = parts.count > 1 ? Int(parts[1]) ?? 0 : 0
        do {
            switch parts.first {
            case "fixed": try await send(exchange, number, .known(Int64(number)))
            case "chunked": try await send(exchange, number, .unknown)
            case "file": try await sendFile(exchange, number)
            case "count": try await countBody(exchange)
            case "echo": try await echo(exchange)
            case "gate": try await waitAtGate(exchange)
            case "wait": await waitForCancellation(exchange, on: loop)
            case "upgrade": await upgrade(exchange, port: UInt16(number), on: loop)
            case "silent": return
            default: try await odd(exchange, parts.first ?? "")
            }
        } catch {
            exchange.fail()
        }
    }

    // MARK: - Answers

    private func text(_ exchange: Exchange, _ text: String) async throws {
        exchange.outcome.route = "test"
        exchange.outcome.cacheStatus = "drydock; fwd=uri-miss"
        exchange.outcome.cache = .miss
        exchange.outcome.upstreamStatus = 200
        exchange.outcome.upstreamTime = 1_500_000
        exchange.sendHead(ResponseHead(status: 200, reason: "OK"), body: .known(Int64(text.utf8.count)))
        try await exchange.send(Array(text.utf8))
        exchange.finish()
    }

    /// Answers that end in some unusual way.
    private func odd(_ exchange: Exchange, _ name: String) async throws {
        switch name {
        case "short":
            exchange.sendHead(ResponseHead(status: 200), body: .known(100))
            try await exchange.send(Array("short".utf8))
            exchange.finish()
        case "cut":
            exchange.sendHead(ResponseHead(status: 200), body: .unknown)
            try await exchange.send(Array("partial".utf8))
            exchange.fail()
        case "reset":
            exchange.sendHead(ResponseHead(status: 200), body: .known(100))
            try await exchange.send(Array("half".utf8))
            exchange.abort(.reset)
        case "half":
            exchange.sendHead(ResponseHead(status: 200), body: .known(100))
            try await exchange.send(Array("half".utf8))
        case "excess":
            exchange.sendHead(ResponseHead(status: 200), body: .known(4))
            try await exchange.send(Array("fourmore".utf8))
            exchange.finish()
        case "interim":
            exchange.sendInterim(ResponseHead(status: 100))
            exchange.sendInterim(ResponseHead(status: 103, fields: Fields([("Link", "</a>; rel=preload")])))
            try await text(exchange, "final")
        case "empty", "none":
            exchange.sendHead(ResponseHead(status: name == "empty" ? 204 : 404), body: .none)
            exchange.finish()
        case "trailers":
            exchange.sendHead(ResponseHead(status: 200), body: .unknown)
            try await exchange.send(Array("body".utf8))
            exchange.finish(trailers: Fields([("Checksum", "abc")]))
        case "problem":
            exchange.problem(
                Problem(status: 502, title: "No \"origin\"", detail: "start\nit", proxyError: "connection_refused")
            )
        default: try await text(exchange, exchange.request.target)
        }
    }

    /// Pieces of 64 KiB of the pattern; notes how much was queued at most.
    private func send(_ exchange: Exchange, _ count: Int, _ length: AnswerLength) async throws {
        exchange.sendHead(ResponseHead(status: 200, reason: "OK"), body: length)
        var sent = 0
        while sent < count {
            let piece = min(65536, count - sent)
            let start = sent % (1 << 20)
            try await exchange.send(.bytes(pattern, start..<start + piece))
            sent += piece
            let (queued, total) = (exchange.queuedBytes, sent)
            observations.seen.update { seen in
                seen.mostQueued = max(seen.mostQueued, queued)
                seen.delivered = total
            }
        }
        exchange.finish()
    }

    private func sendFile(_ exchange: Exchange, _ count: Int) async throws {
        let folder = try TemporaryFolder()
        try folder.write("body", Pattern.bytes(0..<count))
        let file = try SharedFile.open(folder.file("body"), pool: pool)
        exchange.sendHead(ResponseHead(status: 200, reason: "OK"), body: .known(Int64(count)))
        try await exchange.send(.file(file, offset: 0, count: count))
        exchange.finish()
    }

    private func waitAtGate(_ exchange: Exchange) async throws {
        let gate = self.gate
        observations.seen.update { $0.waiting += 1 }
        _ = try await pool.run { gate.wait() }
        try await text(exchange, "opened")
    }

    /// `/wait` outlives the end of its client's side, `/wait/bound` does not.
    private func waitForCancellation(_ exchange: Exchange, on loop: isolated EventLoop) async {
        if exchange.request.target == "/wait/bound" { exchange.endWithClient() }
        observations.seen.update { $0.waiting += 1 }
        do {
            try await loop.sleep(nanoseconds: 600_000_000_000)
        } catch {
            let isGone = exchange.isClientGone
            observations.seen.update { $0.cancelled += isGone ? 1 : 0 }
        }
    }

    // MARK: - Request bodies

    private func countBody(_ exchange: Exchange) async throws {
        var count = 0
        do throws(RequestBodyError) {
            while let bytes = try await exchange.requestBody.next() { count += bytes.count }
        } catch {
            observations.seen.update { $0.bodyErrors.append(error) }
            if let problem = error.problem { exchange.problem(problem) }
            return
        }
        observations.seen.update { [count] in $0.bodies.append(count) }
        try await text(exchange, "\(count)")
    }

    private func echo(_ exchange: Exchange) async throws {
        exchange.sendHead(ResponseHead(status: 200, reason: "OK"), body: .unknown)
        while let bytes = try await exchange.requestBody.next(limit: 65536) { try await exchange.send(bytes) }
        exchange.finish()
    }

    // MARK: - Tunnels

    private func tunnel(_ exchange: Exchange, on loop: isolated EventLoop) async {
        guard case .authority(let authority) = exchange.target.form else { return }
        let rules: TargetRules = exchange.request.fields.contains("Strict") ? .noPrivate : .any
        let target = DialTarget(
            host: authority.host,
            port: authority.port ?? 443,
            rules: rules,
            timeout: 120_000_000_000
        )
        do throws(UpstreamError) {
            let addresses = try await client.dialler.addresses(of: target, on: loop)
            let remote = PlainTransport(try await client.dialler.connect(to: addresses, of: target, on: loop))
            exchange.sendHead(ResponseHead(status: 200, reason: "Connected"), body: .none)
            guard let client = exchange.detach() else { return remote.close(resets: false) }
            let timeout: UInt64? = exchange.request.fields.contains("Impatient") ? 100_000_000 : nil
            let traffic = await Tunnel(
                on: loop,
                in: exchange.context,
                client: client,
                remote: remote,
                timeout: timeout
            ).run()
            observations.seen.update { $0.delivered = traffic.sent }
        } catch {
            exchange.problem(Problem(error))
        }
    }

    private func upgrade(_ exchange: Exchange, port: UInt16, on loop: isolated EventLoop) async {
        let isImpatient = exchange.request.fields.contains("Impatient")
        let minutes: UInt64 = 120_000_000_000
        let request = UpstreamRequest(
            method: exchange.request.method,
            path: "/socket",
            fields: UpgradeTunnel.requestFields(exchange.request.fields),
            terms: UpstreamTerms(
                url: "http://127.0.0.1:\(port)",
                timeouts: Timeouts(connect: minutes, firstByte: isImpatient ? 100_000_000 : minutes, idle: minutes)
            ),
            isUpgrade: true
        )
        let upgrade = UpgradeTunnel(exchange, timeout: nil) { head in head.fields.append(.via, "1.1 test") }
        do throws(Problem) {
            try await upgrade.run(request, through: client, on: loop)
        } catch {
            exchange.problem(error)
        }
    }
}

@available(*, unavailable) extension ScriptedHandler: Sendable {}
