// The origin that the target of a request names, asked only after its name has been seen not to lead back to this daemon.

internal import DownloadCore
internal import EventLoop
internal import HTTPWire
internal import Upstream

/// Loop-bound; made for one request.
final class ForwardSource: FetchSource {
    private let source: OriginSource
    private let origin: OriginAddress
    private let target: TargetRules
    private let listeners: OwnListeners

    init(_ source: OriginSource, _ origin: OriginAddress, _ target: TargetRules, _ listeners: OwnListeners) {
        self.source = source
        self.origin = origin
        self.target = target
        self.listeners = listeners
    }

    func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle {
        // Without a listener on that port there is nothing to find out; the transfer resolves the name by itself.
        if listeners.mayBeOwn(port: origin.effectivePort) {
            do throws(UpstreamError) {
                _ = try await listeners.resolve(origin.host, port: origin.effectivePort, rules: target)
            } catch {
                throw .upstream(error)
            }
        }
        return try await source.start(request, sink: sink, on: loop)
    }
}

@available(*, unavailable) extension ForwardSource: Sendable {}
