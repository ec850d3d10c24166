// Which fields of a request go on to the origin (RFC 9110 section 7.6), and how far it may go.

package import HTTPCaching
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

/// The fields that are removed from a request whose answer may be shared (Documentation/guide/caching.md),
/// unless the configuration has them in the key.
///
/// Names are compared without regard to case, and with `_` as `-`: CGI, WSGI and Rack know no difference.
package enum UnkeyedFields {
    /// `fields` without them.
    package static func removed(from fields: Fields, _ rules: KeyRules) -> Fields {
        var fields = fields
        fields.removeAll { name, known in
            if rules.names(name) { return false }
            if known == .forwarded || known == .xForwardedFor { return true }
            return known == .other && (contains(name) || rules.hasTwin(of: name))
        }
        return fields
    }

    /// Whether a name that is not known here is one of them, or stands for one that is known with
    /// an underscore for a hyphen.
    static func contains(_ name: UnsafeRawBufferPointer) -> Bool {
        if name.count < byLength.count, byLength[name.count].contains(where: { isSame(name, $0) }) { return true }
        if prefixes.contains(where: { $0.utf8CodeUnitCount < name.count && isSame(name, $0) }) { return true }
        guard name.contains(UInt8(ascii: "_")) else { return false }
        // Accept_Language would choose what is stored for requests without Accept-Language.
        let twin = name.map { $0 == UInt8(ascii: "_") ? UInt8(ascii: "-") : $0 }
        return twin.withUnsafeBytes { KnownField.find($0) } != .other
    }

    /// Whether a name begins with a text in lower case.
    private static func isSame(_ name: UnsafeRawBufferPointer, _ text: StaticString) -> Bool {
        let text = UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
        return zip(name, text).allSatisfy { byte, wanted in
            byte == wanted || byte == UInt8(ascii: "_") && wanted == UInt8(ascii: "-")
                || (65...90).contains(byte) && byte | 32 == wanted
        }
    }

    /// How the names of some begin.
    private static let prefixes: [StaticString] = [
        "x-forwarded-", "x-forward-", "x-forwarder-", "forwarded-", "x-original-", "x-originally-", "x-originating-",
        "x-orig-", "x-rewrite-", "x-real-", "x-remote-", "x-cluster-", "x-client-ip", "x-http-method", "x-http-host",
        "x-http-path", "cf-connecting-", "cloudfront-", "fastly-client", "fastly-orig-", "wl-proxy-",
        "x-envoy-original-",
        "x-middleware-", "x-invoke-", "http-x-", "x-geoip-",
    ]

    /// By the length of the name.
    private static let byLength: [[StaticString]] = {
        // The client's address, as proxies add it.
        let addresses: [StaticString] = [
            "x-client-ip", "x-clientip", "client-ip", "true-client-ip", "real-ip", "remote-addr", "remote-host",
            "remote-user", "x-ip", "x-ip-trail", "x-custom-ip-authorization", "x-proxyuser-ip", "proxy-client-ip",
            "http-client-ip", "incap-client-ip", "x-azure-clientip", "x-azure-socketip", "x-envoy-external-address",
            "cf-ipcountry", "cf-visitor", "cf-pseudo-ipv4", "akamai-origin-hop", "x-forwarded",
        ]
        // Where, as the client is said to have asked.
        let places: [StaticString] = [
            "x-host", "x-host-override", "x-backend-host", "x-proxy-host", "proxy-host", "x-server-name",
            "x-server-port", "server-name", "server-port", "host-name", "http-host", "x-scheme", "x-url-scheme",
            "x-proto", "x-protocol", "x-https", "x-ssl", "https", "front-end-https", "ssl-offloaded", "fastly-ssl",
            "x-arr-ssl", "x-nfsn-https", "x-orchestra-scheme",
        ]
        // For what.
        let targets: [StaticString] = [
            "x-request-uri", "x-request-url", "request-uri", "x-proxy-url", "x-cf-url", "x-override-url",
            "x-http-destinationurl", "x-waws-unencoded-url", "unencoded-url", "x-ning-request-uri",
            "orig-path-info", "path-info", "path-translated", "script-name", "x-script-name", "query-string",
            "x-accel-mapping", "x-sendfile-type", "x-base-url", "x-base-path", "x-now-route-matches",
            "x-matched-path", "x-teamsite-preremap", "surrogate-capability", "x-ua-device",
        ]
        // How.
        let methods: [StaticString] = [
            "x-http-method", "x-method-override", "x-ajax-real-method", "real-method", "request-method",
        ]
        let all = addresses + places + targets + methods
        var table = [[StaticString]](repeating: [], count: (all.map(\.utf8CodeUnitCount).max() ?? 0) + 1)
        for name in all { table[name.utf8CodeUnitCount].append(name) }
        return table
    }()
}
