// What of a request goes on to the origin (RFC 9110 section 7.6), and what in it says how far it may go.

import HTTPCaching
package import HTTPWire

/// Pure functions of a request.
package enum OutgoingRequest {
    /// The request without the fields of the client's connection: what `Connection` names must not decide either,
    /// since the origin never sees it.
    package static func endToEnd(_ request: RequestHead) -> RequestHead {
        var head = request
        head.fields = HopByHop.forwardable(request.fields, isRequest: true)
        return head
    }

    /// End-to-end fields with Via added and Max-Forwards counted down.
    /// - Parameters:
    ///   - request: from ``endToEnd(_:)``.
    ///   - via: the entry of this daemon.
    package static func fields(_ request: RequestHead, hasBody: Bool, via: String) -> Fields {
        var fields = request.fields
        // One copy, with room for what is added.
        fields.reserve(.via, via)
        fields.remove(.contentLength)
        // Expect announces a body; a request without one must not have it (RFC 9110 section 10.1.1).
        if !hasBody { fields.remove(.expect) }
        // TE is of one connection, which has to say so (RFC 9110 section 10.1.4).
        if fields.contains(.te) { fields.set(.connection, "TE") }
        fields.appendMember(.via, via)
        if request.method == .options, let hops = maxForwards(fields), hops > 0 {
            fields.set(.maxForwards, String(hops - 1))
        }
        return fields
    }

    /// 1*DIGIT; nil for anything else, which is ignored.
    package static func maxForwards(_ fields: Fields) -> UInt? {
        guard let text = fields.first(.maxForwards), text.utf8.allSatisfy({ (48...57).contains($0) }) else {
            return nil
        }
        return UInt(text)
    }

    /// Whether the client expects something that is not known here (RFC 9110 section 10.1.1). HTTP/1.0 expects nothing.
    package static func hasUnsupportedExpectation(_ request: RequestHead) -> Bool {
        guard request.version == .http11, let text = request.fields.combined(.expect) else { return false }
        return text.split(separator: ",").contains {
            $0.filter { $0 != " " && $0 != "\t" }.lowercased() != "100-continue"
        }
    }
}
