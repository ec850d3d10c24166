// The fields of a request that are sent to the origin (RFC 9110 section 7.6), and the hops that it may take.

package import HTTPCaching
package import HTTPWire

/// Changes to a request before it is sent, as pure functions.
package enum OutgoingRequest {
    /// The request without the fields of the client's connection: the fields that `Connection` names must not have an
    /// effect either, because the origin never sees them.
    package static func endToEnd(_ request: RequestHead) -> RequestHead {
        var head = request
        head.fields = HopByHop.forwardable(request.fields, isRequest: true)
        return head
    }

    /// The end-to-end fields with Via added and Max-Forwards decremented.
    /// - Parameters:
    ///   - request: the result of ``endToEnd(_:)``.
    ///   - via: this daemon's entry in Via.
    package static func fields(_ request: RequestHead, hasBody: Bool, via: String) -> Fields {
        var fields = request.fields
        // The fields are copied once, with room for the added ones.
        fields.reserve(.via, via)
        fields.remove(.contentLength)
        // Expect announces a body, so that a request without one must not have it (RFC 9110 section 10.1.1).
        if !hasBody { fields.remove(.expect) }
        // TE belongs to one connection, which Connection has to say (RFC 9110 section 10.1.4).
        if fields.contains(.te) { fields.set(.connection, "TE") }
        fields.appendMember(.via, via)
        if request.method == .options, let hops = maxForwards(fields), hops > 0 {
            fields.set(.maxForwards, String(hops - 1))
        }
        return fields
    }

    /// The value of Max-Forwards (1*DIGIT); nil for any other value, which is ignored.
    package static func maxForwards(_ fields: Fields) -> UInt? {
        guard let text = fields.first(.maxForwards), text.utf8.allSatisfy({ (48...57).contains($0) }) else {
            return nil
        }
        return UInt(text)
    }

    /// Whether the client has an unknown expectation (RFC 9110 section 10.1.1); never for HTTP/1.0.
    package static func hasUnsupportedExpectation(_ request: RequestHead) -> Bool {
        guard request.version == .http11, let text = request.fields.combined(.expect) else { return false }
        return text.split(separator: ",").contains {
            $0.filter { $0 != " " && $0 != "\t" }.lowercased() != "100-continue"
        }
    }
}

/// The fields that are removed from a request whose answer may be shared, unless the configuration makes them part of
/// the key.
///
/// Names are compared without regard to case, and with `_` as `-`, because CGI, WSGI and Rack do not distinguish them.
package enum UnkeyedFields {
    /// The fields without the unkeyed ones.
    package static func removed(from fields: Fields, _ rules: KeyRules) -> Fields {
        var fields = fields
        fields.removeAll { name, known in
            if rules.names(name) { return false }
            if known == .forwarded || known == .xForwardedFor { return true }
            return known == .other && (contains(name) || rules.hasTwin(of: name))
        }
        return fields
    }

    /// Whether an unknown name is an unkeyed field, or the spelling of a known field with underscores instead of
    /// hyphens.
    static func contains(_ name: UnsafeRawBufferPointer) -> Bool {
        if name.count < byLength.count, byLength[name.count].contains(where: { isSame(name, $0) }) { return true }
        if prefixes.contains(where: { $0.utf8CodeUnitCount < name.count && isSame(name, $0) }) { return true }
        guard name.contains(UInt8(ascii: "_")) else { return false }
        // Accept_Language would determine the stored response of requests without Accept-Language.
        let twin = name.map { $0 == UInt8(ascii: "_") ? UInt8(ascii: "-") : $0 }
        return twin.withUnsafeBytes { KnownField.find($0) } != .other
    }

    /// Whether a name begins with a lower-case text, without regard to case.
    private static func isSame(_ name: UnsafeRawBufferPointer, _ text: StaticString) -> Bool {
        let text = UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
        return zip(name, text).allSatisfy { byte, wanted in
            byte == wanted || byte == UInt8(ascii: "_") && wanted == UInt8(ascii: "-")
                || (65...90).contains(byte) && byte | 32 == wanted
        }
    }

    /// The beginnings of names that are unkeyed fields.
    private static let prefixes: [StaticString] = [
        "x-forwarded-", "x-forward-", "x-forwarder-", "forwarded-", "x-original-", "x-originally-", "x-originating-",
        "x-orig-", "x-rewrite-", "x-real-", "x-remote-", "x-cluster-", "x-client-ip", "x-http-method", "x-http-host",
        "x-http-path", "cf-connecting-", "cloudfront-", "fastly-client", "fastly-orig-", "wl-proxy-",
        "x-envoy-original-",
        "x-middleware-", "x-invoke-", "http-x-", "x-geoip-",
    ]

    /// The names of unkeyed fields, by their length.
    private static let byLength: [[StaticString]] = {
        // Fields with the client's address, as proxies add them.
        let addresses: [StaticString] = [
            "x-client-ip", "x-clientip", "client-ip", "true-client-ip", "real-ip", "remote-addr", "remote-host",
            "remote-user", "x-ip", "x-ip-trail", "x-custom-ip-authorization", "x-proxyuser-ip", "proxy-client-ip",
            "http-client-ip", "incap-client-ip", "x-azure-clientip", "x-azure-socketip", "x-envoy-external-address",
            "cf-ipcountry", "cf-visitor", "cf-pseudo-ipv4", "akamai-origin-hop", "x-forwarded",
        ]
        // Where, as the client is said to have asked.
        let hosts: [StaticString] = [
            "x-host", "x-host-override", "x-backend-host", "x-proxy-host", "proxy-host", "x-server-name",
            "x-server-port", "server-name", "server-port", "host-name", "http-host", "x-scheme", "x-url-scheme",
            "x-proto", "x-protocol", "x-https", "x-ssl", "https", "front-end-https", "ssl-offloaded", "fastly-ssl",
            "x-arr-ssl", "x-nfsn-https", "x-orchestra-scheme",
        ]
        // Fields with the target of the client's request.
        let targets: [StaticString] = [
            "x-request-uri", "x-request-url", "request-uri", "x-proxy-url", "x-cf-url", "x-override-url",
            "x-http-destinationurl", "x-waws-unencoded-url", "unencoded-url", "x-ning-request-uri",
            "orig-path-info", "path-info", "path-translated", "script-name", "x-script-name", "query-string",
            "x-accel-mapping", "x-sendfile-type", "x-base-url", "x-base-path", "x-now-route-matches",
            "x-matched-path", "x-teamsite-preremap", "surrogate-capability", "x-ua-device",
        ]
        // Fields with the method of the client's request.
        let methods: [StaticString] = [
            "x-http-method", "x-method-override", "x-ajax-real-method", "real-method", "request-method",
        ]
        let all = addresses + hosts + targets + methods
        var table = [[StaticString]](repeating: [], count: (all.map(\.utf8CodeUnitCount).max() ?? 0) + 1)
        for name in all { table[name.utf8CodeUnitCount].append(name) }
        return table
    }()
}
