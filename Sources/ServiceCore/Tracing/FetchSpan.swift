// The span of a fetch.

import DownloadCore
import HTTPWire

/// The span of one fetch, or of one attempt to repeat it, from its beginning to its end. Loop-bound; a fetch that is given
/// up ends it by dropping it.
final class FetchSpan {
    let open: OpenSpan
    /// The status of the answer; nil before there is one.
    var status: Int?
    private let method: Method
    private let path: String
    private let call: ServiceCall
    private let repetition: Int
    private var isEnded = false

    /// - Parameters:
    ///   - request: what is asked, before secret items are added.
    ///   - call: the call that asks.
    ///   - repetition: how often the fetch was begun before.
    init(_ open: OpenSpan, _ request: FetchRequest, _ call: ServiceCall, repetition: Int = 0) {
        self.open = open
        method = request.method
        path = request.path
        self.call = call
        self.repetition = repetition
    }

    deinit { end(error: "given up") }

    /// Ends the span, once.
    /// - Parameter error: why there was no whole answer; nil if there was one.
    func end(error: String?) {
        guard !isEnded else { return }
        isEnded = true
        let isRefused = status.map { $0 >= 400 } ?? false
        open.end(
            repetition > 0 ? "retry" : method.traceName,
            .client,
            attributes(failed: error != nil),
            error: error ?? (isRefused ? "" : nil)
        )
    }

    private func attributes(failed: Bool) -> [TraceSpan.Attribute] {
        let route = call.match.route
        var attributes = [
            TraceSpan.Attribute("http.request.method", method.traceName),
            TraceSpan.Attribute("url.full", ShownQuery.text(call.asked + path, route.rewriting.secrets)),
            TraceSpan.Attribute("drydock.service", route.label),
        ]
        if !call.match.endpoint.name.isEmpty { attributes.append(.init("drydock.endpoint", call.match.endpoint.name)) }
        if let origin = call.match.origin {
            attributes.append(.init("server.address", origin.host))
            attributes.append(.init("server.port", Int(origin.effectivePort)))
        }
        if repetition > 0 { attributes.append(.init("http.request.resend_count", repetition)) }
        if let status { attributes.append(.init("http.response.status_code", status)) }
        if failed || status.map({ $0 >= 400 }) == true {
            attributes.append(.init("error.type", status.map { "\($0)" } ?? "_OTHER"))
        }
        return attributes
    }
}

@available(*, unavailable) extension FetchSpan: Sendable {}
