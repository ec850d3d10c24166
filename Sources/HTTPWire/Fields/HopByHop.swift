// The fields that end at this hop (RFC 9110 section 7.6.1), and those that a Connection field must not remove.

public enum HopByHop {
    /// The fields that are always for this connection only, whatever `Connection` says.
    public static let always = FieldSet(
        .connection,
        .keepAlive,
        .proxyConnection,
        .te,
        .trailer,
        .transferEncoding,
        .upgrade,
        .proxyAuthenticate,
        .proxyAuthorization
    )

    /// The fields that `Connection` cannot remove: a client could otherwise remove those by which the origin or the
    /// cache decides.
    public static let protected = FieldSet(
        .host,
        .contentLength,
        .transferEncoding,
        .authorization,
        .cacheControl,
        .cookie,
        .age
    )

    /// The fields to forward: without those of this connection, and without those that `Connection` names, except
    /// protected ones.
    ///
    /// `Proxy` of a request is always removed. `TE: trailers` of a request stays, if that is all TE says; the sender
    /// has to name TE in its own Connection field.
    public static func forwardable(_ fields: Fields, isRequest: Bool) -> Fields {
        // Most Connection fields name no field that would not be removed anyway.
        let named = saysKeepAliveOnly(fields) ? [] : connectionOptions(fields)
        let keepsTE = isRequest && asksForTrailersOnly(fields)
        var result = fields
        result.removeAll { name, known in
            if known == .te { return !keepsTE }
            if always.contains(known) { return true }
            if known == .other, name.equalsIgnoringCase(authenticationInfo) { return true }
            if known == .other, isRequest, name.equalsIgnoringCase(proxy) { return true }
            if named.isEmpty || protected.contains(known) && known != .other { return false }
            return named.contains { $0.withUnsafeBytes { name.equalsIgnoringCase($0) } }
        }
        return result
    }

    /// Not a field of HTTP: CGI makes HTTP_PROXY from it, by which programs choose the proxy for their own requests.
    private static let proxy: StaticString = "Proxy"

    /// A hop-by-hop field like those of ``always`` (RFC 9110 section 11.7.3); no other rule reads it.
    private static let authenticationInfo: StaticString = "Proxy-Authentication-Info"

    /// Whether there is a line named Proxy-Authentication-Info, or one with the other name; neither is a known field.
    public static func hasAuthenticationInfo(_ fields: Fields, or other: StaticString) -> Bool {
        fields.contains(other: authenticationInfo, or: other)
    }

    /// Whether Connection is absent, or has only `keep-alive`. Allocates nothing.
    public static func saysKeepAliveOnly(_ fields: Fields) -> Bool {
        var isPlain = true
        fields.forEachValue(.connection) { value in
            if value.equalsIgnoringCase("keep-alive") { return }
            value.forEachMember { if !$0.isEmpty, !$0.equalsIgnoringCase("keep-alive") { isPlain = false } }
        }
        return isPlain
    }

    /// The members of all Connection fields, as sent.
    public static func connectionOptions(_ fields: Fields) -> [[UInt8]] {
        var options: [[UInt8]] = []
        fields.forEachValue(.connection) { value in
            value.forEachMember { if !$0.isEmpty { options.append(Array($0)) } }
        }
        return options
    }

    private static func asksForTrailersOnly(_ fields: Fields) -> Bool {
        fields.all(.te).count == 1 && fields.withFirst(.te) { $0.equalsIgnoringCase("trailers") } == true
    }
}
