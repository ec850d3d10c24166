// Secret query items on their way through services that stand in front of another: told apart in keys, and written only
// where a request goes out.

import DownloadCore
import EventLoop

/// A secret query item that a service adds to what it asks of another one.
package struct HiddenItem: Sendable, Equatable {
    package let service: String
    /// `name=value`, percent-encoded.
    package let text: String

    /// Its line in a cache key, without the value: keys are shown, and the value is secret.
    package var line: String { "query of \(service): \(text.prefix { $0 != "=" })" }
}

extension [HiddenItem] {
    package var texts: [String] { map(\.text) }

    /// These and what a service adds to a path behind them.
    package func adding(_ query: QueryDefaults, of route: ServiceRoute, to path: String) -> [HiddenItem] {
        guard query.hasSecrets else { return self }
        return self
            + query.hidden(missingIn: path, behind: texts).map { HiddenItem(service: route.plan.name, text: $0) }
    }
}

/// An origin that is asked with the hidden items of the services in front; made for one request, loop-bound.
final class HiddenQuerySource: FetchSource {
    private let source: any FetchSource
    private let hidden: [HiddenItem]

    init(_ source: any FetchSource, _ hidden: [HiddenItem]) {
        self.source = source
        self.hidden = hidden
    }

    func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle {
        var request = request
        // An origin may repeat them in a redirect.
        let query = request.path.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false).dropFirst()
        let items = Set((query.first ?? "").split(separator: "&"))
        request.path = QueryDefaults.adding(hidden.texts.filter { !items.contains($0[...]) }, to: request.path)
        return try await source.start(request, sink: sink, on: loop)
    }
}

@available(*, unavailable) extension HiddenQuerySource: Sendable {}
