// The traces of requests, for a collector of OpenTelemetry.

extension KeyTable {
    static let tracing = SectionDescriptor(
        name: "tracing",
        keys: [
            KeyDescriptor(
                "otlp",
                .collector,
                "The collector that gets the spans of traced requests, by OTLP over HTTP in JSON, at /v1/traces below this URL; without it, tracing is off."
            ),
            KeyDescriptor(
                "sample",
                .share,
                default: "1%",
                "The share of requests that are traced, of those without a valid traceparent; with one, its flag decides."
            ),
        ]
    )
}

/// Where the spans of requests are sent, and of how many requests.
package struct TracingConfiguration: Sendable, Equatable {
    /// The collector; nil if tracing is off. Default: nil.
    package var collector: OriginURL?
    /// The share of the requests that bring no decision of their own, 0...1.
    package var sample: Double
}

extension TracingConfiguration {
    package init() { self.init(SectionReader(nothingOf: KeyTable.tracing)) }

    init(_ reader: SectionReader) {
        if case .baseURL(.origin(let url))? = reader.leaf("otlp")?.scalar { collector = url }
        sample = reader.always { $0.share("sample") }
    }
}
