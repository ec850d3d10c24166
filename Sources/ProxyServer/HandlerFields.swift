// What of a request counts here, and what goes on to the origin (RFC 9110 section 7.6).

import EventLoop
import HTTPCaching
import HTTPWire

extension ProxyHandler {
    /// The request without the fields of the client's connection: what `Connection` names must not decide either,
    /// since the origin never sees it.
    static func endToEnd(_ request: RequestHead) -> RequestHead {
        var head = request
        head.fields = HopByHop.forwardable(request.fields, isRequest: true)
        return head
    }

    /// End-to-end fields with Via added and Max-Forwards counted down.
    /// - Parameter request: from ``endToEnd(_:)``.
    func originFields(_ request: RequestHead, hasBody: Bool) -> Fields {
        var fields = request.fields
        let via = via(request.version)
        // One copy, with room for what is added.
        fields.reserve(.via, via)
        fields.remove(.contentLength)
        // Without a body there is nothing to expect.
        if !hasBody { fields.remove(.expect) }
        // TE is of one connection, which has to say so (RFC 9110 section 10.1.4).
        if fields.contains(.te) { fields.set(.connection, "TE") }
        fields.appendMember(.via, via)
        if request.method == .options || request.method == .trace, let hops = Self.maxForwards(fields), hops > 0 {
            fields.set(.maxForwards, String(hops - 1))
        }
        return fields
    }

    /// 1*DIGIT; nil for anything else, which is ignored.
    static func maxForwards(_ fields: Fields) -> UInt? {
        guard let text = fields.first(.maxForwards), text.utf8.allSatisfy({ (48...57).contains($0) }) else {
            return nil
        }
        return UInt(text)
    }

    /// Whether the client expects something that is not known here (RFC 9110 section 10.1.1). HTTP/1.0 expects nothing.
    static func expectsTheUnknown(_ request: RequestHead) -> Bool {
        guard request.version == .http11, let text = request.fields.combined(.expect) else { return false }
        return text.split(separator: ",").contains {
            $0.filter { $0 != " " && $0 != "\t" }.lowercased() != "100-continue"
        }
    }

    /// Fields by which some origins choose an answer although neither the key nor Vary holds them; a request whose answer
    /// may be shared goes without (http-rules.md 24), unless they are in the key by configuration.
    static func withoutUnkeyed(_ fields: Fields, _ rules: KeyRules) -> Fields {
        var fields = fields
        fields.removeAll { name, known in
            if rules.names(name) { return false }
            if known == .forwarded || known == .xForwardedFor { return true }
            guard known == .other else { return false }
            return unkeyed.contains { text in
                let text = UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
                if text.last == UInt8(ascii: "-") {
                    return name.count > text.count && Self.isSame(name.prefix(text.count), text)
                }
                return Self.isSame(name[...], text)
            }
        }
        return fields
    }

    /// In lower case; one that ends in a hyphen is the beginning of a name.
    private static let unkeyed: [StaticString] = [
        "x-forwarded-", "x-original-url", "x-original-host", "x-rewrite-url", "x-host", "x-http-method-override",
        "x-http-method", "x-method-override",
    ]

    private static func isSame(_ name: Slice<UnsafeRawBufferPointer>, _ text: UnsafeRawBufferPointer) -> Bool {
        name.count == text.count && zip(name, text).allSatisfy { ($0 >= 65 && $0 <= 90 ? $0 | 32 : $0) == $1 }
    }

    /// The protocols that a request wants to switch to and that a tunnel can carry; nil where there is none, so that
    /// Upgrade is ignored (RFC 9110 section 7.8). HTTP/2 and TLS are for the next hop, and curl asks for h2c by itself.
    static func wantedProtocols(_ request: RequestHead, _ framing: BodyFraming) -> String? {
        guard request.version == .http11, framing == .none || framing == .length(0),
            let text = request.fields.combined(.upgrade),
            HopByHop.connectionOptions(request.fields).contains(where: {
                String(decoding: $0, as: UTF8.self).lowercased() == "upgrade"
            })
        else { return nil }
        let wanted = text.split(separator: ",").filter { member in
            let name = member.lowercased().filter { $0 != " " && $0 != "\t" }
            return !name.isEmpty && name != "h2c" && name != "h2" && !name.hasPrefix("http/") && !name.hasPrefix("tls/")
        }
        return wanted.isEmpty ? nil : wanted.joined(separator: ",")
    }
}
