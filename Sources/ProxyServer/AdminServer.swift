// The admin API: HTTP and JSON on a listener of its own, never on the proxy's port.

package import EventLoop
internal import Foundation
import HTTPWire

/// Answers the admin API on one loop; loop-bound.
package final class AdminHandler: ExchangeHandler {
    private let actions: any AdminActions

    package init(actions: any AdminActions) { self.actions = actions }

    package func answerAtOnce(_ request: borrowing HotRequest, on connection: Connection) -> Bool { false }

    package func answer(_ exchange: Exchange, on loop: isolated EventLoop) async {
        do throws(Problem) {
            try Self.check(exchange.request.fields, listener: exchange.listener)
            guard case .origin(let target) = exchange.target.form else { throw Self.notFound(exchange.request.target) }
            let (path, members) = AdminQuery.split(target)
            let route = try Self.route(path)
            guard exchange.request.method == route.method || exchange.request.method == .head && route.method == .get
            else { throw Self.notAllowed(path, route.method) }
            let answer = try await perform(route, members)
            let fields = Fields([("Content-Type", answer.type), ("Cache-Control", "no-store")])
            let head = ResponseHead(
                status: answer.status,
                reason: StatusText.reason(answer.status),
                fields: fields
            )
            exchange.sendHead(head, body: .known(Int64(answer.body.count)))
            do throws(ClientGone) { try await exchange.send(answer.body) } catch { return }
            exchange.finish()
        } catch {
            exchange.problem(error)
        }
    }

    // MARK: - Routes

    private enum Route {
        case status, entries, explain, reload, offline, clock, metrics, health, readiness

        var method: HTTPWire.Method {
            switch self {
            case .reload, .offline, .clock: .post
            default: .get
            }
        }
    }

    private struct Answer {
        var status = 200
        var type = "application/json"
        var body: [UInt8]
    }

    private static func route(_ path: String) throws(Problem) -> Route {
        switch path {
        case "/v1/status": .status
        case "/v1/entries": .entries
        case "/v1/explain": .explain
        case "/v1/reload": .reload
        case "/v1/offline": .offline
        case "/v1/clock": .clock
        case "/metrics": .metrics
        case "/healthz": .health
        case "/readyz": .readiness
        default: throw notFound(path)
        }
    }

    private func perform(_ route: Route, _ members: AdminQuery.Members) async throws(Problem) -> Answer {
        // Of duplicates the last counts.
        let query = Dictionary(members.map { ($0.name, $0.value) }) { $1 }
        switch route {
        case .status: return Answer(body: try Self.json(await actions.status()))
        case .entries: return Answer(body: try Self.json(await actions.entries(try AdminQuery.entries(query))))
        case .explain:
            let explanation = try await actions.explain(try ExplainQuestion(members: members))
            guard query["as"] == "text" else { return Answer(body: try Self.json(explanation)) }
            return Answer(type: "text/plain; charset=utf-8", body: Array(explanation.text.utf8))
        case .reload:
            let result = await actions.reload()
            return Answer(status: result.isReloaded ? 200 : 422, body: try Self.json(result))
        case .offline: return Answer(body: try Self.json(await actions.setOffline(try AdminQuery.offline(query))))
        case .clock: return Answer(body: try Self.json(await actions.moveClock(try ClockMove(query: query))))
        case .metrics:
            let text = await actions.metricsText()
            return Answer(type: "text/plain; version=0.0.4; charset=utf-8", body: Array(text.utf8))
        case .health: return Answer(type: "text/plain", body: Array("ok\n".utf8))
        case .readiness:
            let isReady = actions.isReady
            return Answer(
                status: isReady ? 200 : 503,
                type: "text/plain",
                body: Array((isReady ? "ready\n" : "not ready\n").utf8)
            )
        }
    }

    private static func json(_ value: some Encodable) throws(Problem) -> [UInt8] {
        do {
            return try AdminJSON.encode(value)
        } catch {
            throw Problem(status: 500, title: "Encoding failed", detail: "\(error)")
        }
    }

    // MARK: - Refusals

    /// On TCP any page in a browser could reach the API: Host must be loopback or the listen address, and a foreign
    /// Origin is refused (http-rules.md 41). A unix socket has its permissions.
    static func check(_ fields: Fields, listener: ListenerFacts) throws(Problem) {
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

    private static func notFound(_ path: String) -> Problem {
        Problem(
            status: 404,
            title: "Not found",
            detail: "\(path) is not part of the admin API; "
                + "there are /v1/status, /v1/entries, /v1/explain, /v1/reload, /v1/offline, /v1/clock, /metrics, /healthz and /readyz"
        )
    }

    private static func notAllowed(_ path: String, _ method: HTTPWire.Method) -> Problem {
        let allowed = method == .get ? "GET, HEAD" : method.name
        return Problem(
            status: 405,
            title: "Method not allowed",
            detail: "\(path) takes \(allowed)",
            fields: Fields([("Allow", allowed)])
        )
    }
}

@available(*, unavailable) extension AdminHandler: Sendable {}

/// The documents of the admin API as JSON: names in snake_case, members sorted.
package enum AdminJSON {
    /// One document with a newline at its end.
    package static func encode(_ value: some Encodable) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.keyEncodingStrategy = .convertToSnakeCase
        return Array(try encoder.encode(value)) + [0x0A]
    }

    /// - Throws: `DecodingError` where the bytes are no such document.
    package static func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) throws -> Value {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(type, from: Data(bytes))
    }
}

/// The query of an admin request.
enum AdminQuery {
    typealias Members = [(name: String, value: String)]

    /// The path, and the query's members, percent-decoded.
    static func split(_ target: String) -> (path: String, members: Members) {
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let members = (parts.count > 1 ? parts[1].split(separator: "&") : []).map { member in
            let pair = member.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return (name: decode(pair[0]), value: pair.count > 1 ? decode(pair[1]) : "")
        }
        return (String(parts[0]), members)
    }

    static func entries(_ query: [String: String]) throws(Problem) -> AdminEntryQuery {
        var result = AdminEntryQuery()
        for (name, value) in query {
            switch name {
            case "prefix": result.prefix = value
            case "after": result.after = value
            case "limit":
                guard let limit = Int(value), 1...1000 ~= limit else {
                    throw bad("limit is \(value); give a number from 1 to 1000")
                }
                result.limit = limit
            default: throw bad("\(name) is not known; there are prefix, limit and after")
            }
        }
        return result
    }

    /// `on` or `off`.
    static func offline(_ query: [String: String]) throws(Problem) -> Bool {
        guard query.count == 1, let word = query.first, word.value.isEmpty, word.key == "on" || word.key == "off" else {
            throw bad("give either on or off")
        }
        return word.key == "on"
    }

    private static func bad(_ detail: String) -> Problem {
        Problem(status: 400, title: "Bad query", detail: detail)
    }

    /// A malformed escape stays as it is.
    private static func decode(_ text: Substring) -> String { text.removingPercentEncoding ?? String(text) }
}
