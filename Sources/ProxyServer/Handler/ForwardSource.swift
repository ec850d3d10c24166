// The origin of a forward request, asked only after its name has been seen not to lead back to this daemon.

import DownloadCore
import EventLoop
import ServiceCore
import Upstream

/// Loop-bound; made for one request.
final class ForwardSource: FetchSource {
    private let source: OriginSource
    private let handler: ProxyHandler
    private let origin: OriginAddress
    private let rules: TargetRules

    init(_ source: OriginSource, handler: ProxyHandler, _ origin: OriginAddress, _ rules: TargetRules) {
        self.source = source
        self.handler = handler
        self.origin = origin
        self.rules = rules
    }

    func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle {
        // Without a listener on that port there is nothing to find out; the transfer resolves the name by itself.
        if handler.ownListeners.contains(where: { !$0.isUnix && $0.port == origin.effectivePort }) {
            do throws(UpstreamError) {
                let addresses = try await handler.resolver.resolve(
                    origin.host,
                    port: origin.effectivePort,
                    rules: rules
                )
                if handler.isOwn(addresses) { throw ProxyHandler.ownListener(origin.host) }
            } catch {
                throw .upstream(error)
            }
        }
        return try await source.start(request, sink: sink, on: loop)
    }
}

@available(*, unavailable) extension ForwardSource: Sendable {}
