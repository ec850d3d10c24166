// The secret query items of services in front of another service: they are part of keys without their values, and are
// written only into the request for the origin.

import DownloadCore
import EventLoop

/// A secret query item that a service adds to its requests to another service.
package struct HiddenItem: Sendable, Equatable {
    package let service: String
    /// The item `name=value`, percent-encoded.
    package let text: String

    /// The line of the item in a cache key, without the value, because keys are shown and the value is secret.
    package var line: String { "query of \(service): \(text.prefix { $0 != "=" })" }
}

extension [HiddenItem] {
    package var texts: [String] { map(\.text) }

    /// The hidden items, with those that a service adds to a path.
    package func adding(_ query: QueryDefaults, of route: ServiceRoute, to path: String) -> [HiddenItem] {
        guard query.hasSecrets else { return self }
        return self
            + query.hidden(missingIn: path, behind: texts).map { HiddenItem(service: route.plan.name, text: $0) }
    }
}

/// An origin that is asked with the hidden items of the services in front of it. Made for one request; loop-bound.
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
        // An origin may repeat the items in a redirect.
        let query = request.path.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false).dropFirst()
        let items = Set((query.first ?? "").split(separator: "&"))
        request.path = QueryDefaults.adding(hidden.texts.filter { !items.contains($0[...]) }, to: request.path)
        return try await source.start(request, sink: sink, on: loop)
    }
}

@available(*, unavailable) extension HiddenQuerySource: Sendable {}
