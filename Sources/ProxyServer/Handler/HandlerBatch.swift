// How an item of a batch is asked for: as if a client had sent it, by a path of this daemon, its own URL, or the URL of an origin.

import CacheStore
package import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import ServiceCore
import Upstream

extension ProxyHandler {
    /// Routes an item as its request would be routed; nobody is asked.
    /// - Throws: ``BatchRefusal`` with the refusal that the request would be answered with.
    func batchRoute(_ item: BatchItem, on loop: isolated EventLoop) throws(BatchRefusal) -> BatchRoute {
        let fields = try item.requestFields()
        do throws(Problem) {
            return try route(item, fields, on: loop)
        } catch {
            throw BatchRefusal("\(error.title): \(error.detail)")
        }
    }

    private func route(_ item: BatchItem, _ fields: Fields, on loop: isolated EventLoop) throws(Problem) -> BatchRoute {
        guard !["HEAD", "CONNECT", "TRACE"].contains(item.method) else {
            throw ExplainQuestion.bad("\(item.method) downloads nothing; leave the method out, or write GET")
        }
        var question = ExplainQuestion(url: item.url)
        question.method = item.method
        question.fields = fields.lines.map { ExplainQuestion.Field(name: $0.name, value: $0.value) }
        if let body = item.body { question.fields.append(.init(name: "Content-Length", value: "\(body.count)")) }
        var host = listenerName
        if let place = throughService(item.url) {
            question.url = place.target
            host = place.host ?? host
        }
        let (request, target, framing) = try parse(try question.bytes(host: host) { isListener($0) })
        try accept(request)
        guard UpgradeTunnel.wantedProtocols(request, framing) == nil else {
            throw ExplainQuestion.bad("a switch to another protocol downloads nothing; leave Upgrade out")
        }
        let head = Self.endToEnd(request)
        let isPlain = framing == .none || framing == .length(0)
        let origin = originFields(head, hasBody: !isPlain)
        switch target.form {
        case .absolute(let scheme, let authority, let path):
            return try forward(item, head, (scheme, authority, path), framing, origin, on: loop)
        case .origin(let target):
            guard let route = try service(for: request, target).route else { throw notRouted(target) }
            _ = try CrossOrigin.decide(request, route)
            let routed = RoutedRequest(
                route: route,
                head: head,
                rest: route.rest(target),
                originFields: origin,
                framing: framing
            )
            return try reverse(item, routed, on: loop)
        case .authority, .asterisk: throw notRouted(request.target)
        }
    }

    private func reverse(_ item: BatchItem, _ routed: RoutedRequest, on loop: isolated EventLoop) throws(Problem)
        -> BatchRoute
    {
        switch try step(routed) {
        case .store(var ask, let source):
            if !item.seed { ask.seed = nil }
            return .store(ask, source)
        case .post(let ask, let source): return .store(Self.question(ask, item.body ?? []), source)
        case .demo, .pass: break
        }
        let key = routed.route.key(rest: routed.rest, host: routed.head.fields.first(.host))
        return .other(key) { () async throws(BatchRefusal) in
            var routed = routed
            if routed.framing != .none { routed.body = item.body.map { BatchBody($0) } }
            do throws(Problem) {
                var answer = try await self.answer(routed, on: loop).answer
                routed.route.rewriting.apply(to: &answer.head.fields)
                return answer
            } catch {
                throw BatchRefusal("\(error.title): \(error.detail)")
            }
        }
    }

    private func forward(
        _ item: BatchItem,
        _ head: RequestHead,
        _ target: (scheme: String, authority: Authority, path: String),
        _ framing: BodyFraming,
        _ fields: Fields,
        on loop: isolated EventLoop
    ) throws(Problem) -> BatchRoute {
        let (forward, origin, service) = try forwardTarget(target.scheme, target.authority)
        let source = forwardSource(forward, origin, service)
        let posted = ask(forward, origin, target.path, head, originFields: fields)
        if Self.mayStorePost(head, framing, forward.request) {
            return .store(Self.question(posted, item.body ?? []), source)
        }
        var got = Self.get(posted, forward.request)
        if head.method == .get, framing == .none || framing == .length(0) {
            if !item.seed { got.seed = nil }
            return .store(got, source)
        }
        let (url, asked) = (origin.root + target.path, got)
        return .other(got.key) { () async throws(BatchRefusal) in
            let fetch = FetchRequest(
                method: head.method,
                path: target.path,
                fields: fields,
                framing: framing,
                body: framing == .none ? nil : item.body.map { BatchBody($0) }
            )
            var pass = PassAsk(fetch, asked, url: url) { _ in [] }
            pass.elsewhere = self.elsewhere([url], url, but: nil)
            return await self.core.pass(pass, from: source, on: loop)
        }
    }

    /// The target and, for a service that is found by its host, the Host under which a client reaches the URL of an origin through
    /// the service with the longest base URL that it begins with; nil where none has.
    private func throughService(_ url: String) -> (target: String, host: String?)? {
        guard url.contains("://") else { return nil }
        let url = CacheKey(service: "", url: String(url.prefix { $0 != "#" })).description
        var best: (base: String, route: ServiceRoute)?
        for route in plan.services {
            guard let base = route.plan.origin?.base, url.hasPrefix(base), base.count > best?.base.count ?? -1 else {
                continue
            }
            let rest = url.dropFirst(base.count)
            if rest.isEmpty || rest.hasPrefix("/") || rest.hasPrefix("?") { best = (base, route) }
        }
        guard let best else { return nil }
        let rest = url.dropFirst(best.base.count)
        let prefix = String(decoding: best.route.prefix, as: UTF8.self)
        let target = prefix + rest
        return (target.hasPrefix("/") ? target : "/" + target, best.route.host)
    }
}

/// The bytes of an item's body; loop-bound.
private final class BatchBody: RequestBodySource {
    private var left: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { left = bytes[...] }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        let count = min(buffer.count, left.count)
        guard count > 0 else { return .end }
        // The buffer is the transfer's for the length of this call.
        buffer.copyBytes(from: left.prefix(count))
        left = left.dropFirst(count)
        return .bytes(count)
    }
}

@available(*, unavailable) extension BatchBody: Sendable {}

extension Server {
    /// Routes the items of batches on whatever loop they run on.
    package var batchResolver: BatchResolver {
        { [contexts] item, loop throws(BatchRefusal) in
            guard let context = contexts.first(where: { $0.loop === loop })?.value(on: loop),
                let handler = context.handler(for: .proxy) as? ProxyHandler
            else { throw BatchRefusal("the daemon is ending; ask again when it is back") }
            return try handler.batchRoute(item, on: loop)
        }
    }
}
