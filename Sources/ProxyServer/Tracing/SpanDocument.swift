// Spans as a document of OTLP in JSON, as a collector takes it at /v1/traces.

package import ServiceCore

/// An ExportTraceServiceRequest: ids are hexadecimal, and numbers of 64 bits are texts.
package enum SpanDocument {
    /// The document of some spans.
    /// - Parameter instance: the name of the daemon.
    package static func bytes(of spans: [TraceSpan], instance: String) -> [UInt8] {
        var text = JSONText()
        text.beginObject()
        text.name("resourceSpans")
        text.beginArray()
        text.beginObject()
        text.name("resource")
        text.beginObject()
        write(
            [
                TraceSpan.Attribute("service.name", "drydock"),
                TraceSpan.Attribute("service.version", DrydockVersion.current),
                TraceSpan.Attribute("service.instance.id", instance),
            ],
            to: &text
        )
        text.endObject()
        text.name("scopeSpans")
        text.beginArray()
        text.beginObject()
        text.name("scope")
        text.beginObject()
        text.member("name", "drydock")
        text.member("version", DrydockVersion.current)
        text.endObject()
        text.name("spans")
        text.beginArray()
        for span in spans { write(span, to: &text) }
        text.endArray()
        text.endObject()
        text.endArray()
        text.endObject()
        text.endArray()
        text.endObject()
        return text.bytes
    }

    private static func write(_ span: TraceSpan, to text: inout JSONText) {
        text.beginObject()
        text.member("traceId", span.context.traceText)
        text.member("spanId", span.context.spanText)
        if let parent = span.parent { text.member("parentSpanId", TraceContext.text(parent)) }
        if let state = span.context.state { text.member("traceState", state) }
        text.member("flags", span.context.isSampled ? 1 : 0)
        text.member("name", span.name)
        text.member("kind", span.kind.rawValue)
        text.member("startTimeUnixNano", "\(span.start)")
        text.member("endTimeUnixNano", "\(span.end)")
        write(span.attributes, to: &text)
        if let error = span.error {
            text.name("status")
            text.beginObject()
            // STATUS_CODE_ERROR
            text.member("code", 2)
            if !error.isEmpty { text.member("message", error) }
            text.endObject()
        }
        text.endObject()
    }

    private static func write(_ attributes: [TraceSpan.Attribute], to text: inout JSONText) {
        text.name("attributes")
        text.beginArray()
        for attribute in attributes {
            text.beginObject()
            text.member("key", attribute.name)
            text.name("value")
            text.beginObject()
            switch attribute.value {
            case .text(let value): text.member("stringValue", value)
            case .number(let value): text.member("intValue", "\(value)")
            }
            text.endObject()
            text.endObject()
        }
        text.endArray()
    }
}
