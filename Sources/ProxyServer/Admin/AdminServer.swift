// The admin API: HTTP and JSON on a listener of its own, never on the proxy's port.

import AdminAPI
package import EventLoop
import HTTPWire
import ServiceCore

/// Answers the admin API on one loop; loop-bound.
package final class AdminHandler: ExchangeHandler {
    /// Bytes of a stream that wait for the client before more are made.
    private static let streamWindow = 16 << 10
    /// Nanoseconds for which the end of a stream waits for a client that does not read.
    private static let streamGrace: UInt64 = 1_000_000_000

    private let routes: [AdminRoute]

    /// - Parameter routes: in the order in which a 404 lists their paths.
    package init(routes: [AdminRoute]) { self.routes = routes }

    package func answerSynchronously(_ request: borrowing HotRequest, through sender: any HotSender) -> HotAnswer {
        .notMine
    }

    package func answer(_ exchange: Exchange, on loop: isolated EventLoop) async {
        do throws(Problem) {
            try Self.check(exchange.request.fields, listener: exchange.listener)
            guard case .origin(let target) = exchange.target.form else { throw notFound(exchange.request.target) }
            let (path, members) = AdminQuery.split(target)
            let (route, places) = try route(exchange.request.method, path)
            var request = AdminRequest(pathParameters: places, queryItems: members)
            if route.bodyLimit > 0 { request.body = try await body(of: exchange, limit: route.bodyLimit) }
            let answer = try await route.perform(request)
            let fields = Fields([("Content-Type", answer.type), ("Cache-Control", "no-store")])
            let head = ResponseHead(
                status: answer.status,
                reason: ReasonPhrase.reason(answer.status),
                fields: fields
            )
            if let stream = answer.stream { return await Self.send(stream, head, exchange, on: loop) }
            exchange.sendHead(head, body: .known(Int64(answer.body.count)))
            do throws(ClientGone) { try await exchange.send(answer.body) } catch { return }
            exchange.finish()
        } catch {
            exchange.problem(error)
        }
    }

    /// Sends a body as it comes, chunked. What the client does not read waits in the stream, which bounds it.
    private static func send(
        _ stream: any AdminStream,
        _ head: ResponseHead,
        _ exchange: Exchange,
        on loop: isolated EventLoop
    ) async {
        defer { stream.close() }
        // A client that only listens sends nothing, so that its leaving is seen by the end of its side alone.
        exchange.endWithClient()
        exchange.sendHead(head, body: .unknown)
        guard exchange.request.method != .head else { return exchange.finish() }
        while let bytes = await stream.next() {
            exchange.queue(bytes)
            do throws(ClientGone) { try await exchange.waitForRoom(atMost: streamWindow) } catch { return }
        }
        // The daemon is ending, and does not wait for somebody who has not read for a while.
        let timer = LoopTimer(on: loop) { exchange.abort(.reset) }
        timer.start(after: streamGrace)
        defer { timer.cancel() }
        do throws(ClientGone) { try await exchange.waitForRoom(atMost: 0) } catch { return }
        exchange.finish()
    }

    private func route(_ method: HTTPWire.Method, _ path: String) throws(Problem) -> (AdminRoute, [String]) {
        let found = routes.compactMap { route in route.path.places(in: path).map { (route, $0) } }
        guard !found.isEmpty else { throw notFound(path) }
        guard let match = found.first(where: { $0.0.answers(method) }) else {
            throw Self.notAllowed(path, found.map(\.0.allowed).joined(separator: ", "))
        }
        return match
    }

    private func body(of exchange: Exchange, limit: Int) async throws(Problem) -> [UInt8] {
        var bytes: [UInt8] = []
        while let next = try await part(of: exchange.requestBody) {
            bytes += next
            guard bytes.count <= limit else {
                let detail = "\(exchange.request.target) takes at most \(limit) bytes; send less, in several requests"
                throw Problem(status: 413, title: ReasonPhrase.reason(413), detail: detail)
            }
        }
        return bytes
    }

    private func part(of body: RequestBody) async throws(Problem) -> [UInt8]? {
        do throws(RequestBodyError) {
            return try await body.next()
        } catch {
            throw error.problem ?? Problem(status: 400, title: "Client gone", detail: "send the whole body")
        }
    }

    // MARK: - Refusals

    /// On TCP any page in a browser could reach the API: Host must be loopback or the listen address, and a foreign
    /// Origin is refused (http-rules.md 41). A unix socket has its permissions.
    static func check(_ fields: Fields, listener: ListenerInfo) throws(Problem) {
        guard !listener.address.isUnix else { return }
        let host = fields.first(.host).flatMap { Authority.parse($0) }
        guard let host, HostRules(names: [], listeners: [listener.address]).allows(host) else {
            throw Problem(
                status: 403,
                title: "Host not allowed",
                detail: "the admin API answers for loopback names and its listen address only; use one of them as Host"
            )
        }
        for origin in fields.all(.origin) where !OriginRules.isSameSite(origin: origin, host: host) {
            throw Problem(
                status: 403,
                title: "Origin not allowed",
                detail: "web pages may not use the admin API; use the drydock command"
            )
        }
    }

    private func notFound(_ path: String) -> Problem {
        var paths: [AdminPath] = []
        for route in routes where !paths.contains(route.path) { paths.append(route.path) }
        let list = paths.map(\.rawValue).joined(separator: ", ")
        return Problem(
            status: 404,
            title: "Not found",
            detail: "\(path) is not part of the admin API; there are \(list)"
        )
    }

    private static func notAllowed(_ path: String, _ allowed: String) -> Problem {
        Problem(
            status: 405,
            title: "Method not allowed",
            detail: "\(path) takes \(allowed)",
            fields: Fields([("Allow", allowed)])
        )
    }
}

@available(*, unavailable) extension AdminHandler: Sendable {}
