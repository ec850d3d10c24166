// Spans in the JSON of OTLP, as a decoder of the protocol's messages reads it.

import Foundation
import Testing

@testable import ProxyServer
@testable import ServiceCore

@Suite struct SpanDocumentTests {
    @Test func aDocumentHasTheResourceAndTheSpans() throws {
        let context = TraceContext(trace: (1, 0xAB), span: 0xC, isSampled: true, state: "a=b")
        let whole = TraceSpan(
            context,
            parent: nil,
            name: "GET",
            kind: .server,
            start: 1_700_000_000_123_456_789,
            end: 2
        )
        let step = TraceSpan(
            context.child(),
            parent: 0xC,
            name: "look-up \"x\"",
            kind: .internal,
            start: 3,
            end: 4,
            attributes: [.init("drydock.lookup", "fetch"), .init("http.response.status_code", 502)],
            error: "no answer"
        )
        let data = Data(SpanDocument.bytes(of: [whole, step], instance: "drydock-1"))
        let document = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        let resource = try #require((document["resourceSpans"] as? [[String: Any]])?.first)
        let described = try #require((resource["resource"] as? [String: Any])?["attributes"] as? [NSDictionary])
        #expect(
            described == [
                ["key": "service.name", "value": ["stringValue": "drydock"]],
                ["key": "service.version", "value": ["stringValue": DrydockVersion.current]],
                ["key": "service.instance.id", "value": ["stringValue": "drydock-1"]],
            ]
        )
        let scope = try #require((resource["scopeSpans"] as? [[String: Any]])?.first)
        let spans = try #require(scope["spans"] as? [NSDictionary])
        #expect(
            spans == [
                [
                    "traceId": "000000000000000100000000000000ab", "spanId": "000000000000000c", "traceState": "a=b",
                    "flags": 1, "name": "GET", "kind": 2, "startTimeUnixNano": "1700000000123456789",
                    "endTimeUnixNano": "2", "attributes": [NSDictionary](),
                ],
                [
                    "traceId": "000000000000000100000000000000ab", "spanId": step.context.spanText,
                    "parentSpanId": "000000000000000c", "traceState": "a=b", "flags": 1, "name": "look-up \"x\"",
                    "kind": 1, "startTimeUnixNano": "3", "endTimeUnixNano": "4",
                    "attributes": [
                        ["key": "drydock.lookup", "value": ["stringValue": "fetch"]],
                        ["key": "http.response.status_code", "value": ["intValue": "502"]],
                    ],
                    "status": ["code": 2, "message": "no answer"],
                ],
            ]
        )
    }
}
