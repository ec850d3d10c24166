// A program's request in the words of the modules below: key, fields, policy, and the origin that is asked.

import CacheStore
import Content
import FoundationEssentials
import HTTPCaching
import HTTPTypes
import HTTPWire
import ServiceCore

/// What one download asks for; made before anything is opened, so that what cannot be asked for fails at once.
struct DownloadRequest: Sendable {
    /// As the program gave it.
    let url: URL
    let origin: OriginAddress
    /// Path and query, as they go out.
    let path: String
    let method: HTTPWire.Method
    /// End-to-end, without Host.
    let fields: Fields
    /// Of a POST; nil for what has no content.
    let content: [UInt8]?
    let options: DownloadOptions
    /// The manager's, of what makes two requests one.
    let keys: KeyRules
    /// The media types of a success; nil where any will do.
    let types: ExpectedTypes?

    /// The answer to a POST is found by its content, too.
    var key: CacheKey {
        let key = CacheKey(service: "", url: origin.root + keys.path(path), lines: keys.lines(fields))
        return content.map { key.adding(lines: KeyRules.lines(post: $0, fields)) } ?? key
    }

    /// Whether what is stored is looked at before anybody is asked.
    var wantsStaleFirst: Bool {
        options.yieldsStaleFirst && !options.forcesDownload && !options.bypassesStore && !options.onlyStored
    }

    /// - Throws: `DownloadError.invalidRequest`.
    init(_ url: URL, _ configuration: DownloadConfiguration, _ options: DownloadOptions)
        throws(DownloadError)
    {
        try self.init(
            url,
            text: url.absoluteString,
            method: .get,
            own: HTTPFields(),
            content: nil,
            configuration: configuration,
            options: options
        )
    }

    /// - Throws: `DownloadError.invalidRequest`.
    init(
        _ request: HTTPRequest,
        body: Data? = nil,
        _ configuration: DownloadConfiguration,
        _ options: DownloadOptions
    ) throws(DownloadError) {
        let text = request.text
        guard let url = URL(string: text) else { throw Self.refuse(text, "give it a scheme, an authority and a path") }
        let isPost = request.method == .post && configuration.mode == .library && !options.bypassesStore
        guard request.method == .get || request.method == .head || isPost else {
            throw Self.refuse(
                text,
                "GET and HEAD can be downloaded, and POST in Mode.library where it does not bypass the store; "
                    + "\(request.method) cannot"
            )
        }
        guard isPost || body == nil else { throw Self.refuse(text, "only a POST has a body") }
        // In the modules below a POST with its content is a GET under another key.
        let method = isPost ? .get : HTTPWire.Method(request.method.rawValue)
        let content = isPost ? Array(body ?? Data()) : nil
        try self.init(
            url,
            text: text,
            method: method,
            own: request.headerFields,
            content: content,
            configuration: configuration,
            options: options
        )
    }

    private init(
        _ url: URL,
        text: String,
        method: HTTPWire.Method,
        own: HTTPFields,
        content: [UInt8]?,
        configuration: DownloadConfiguration,
        options: DownloadOptions
    ) throws(DownloadError) {
        let (origin, path) = try Self.place(text)
        self.url = url
        self.origin = origin
        self.path = path
        self.method = method
        self.content = content
        self.options = options
        keys = configuration.keys.rules
        types = try Self.types(options.acceptedContentTypes ?? configuration.acceptedContentTypes, text)
        var fields = Fields()
        for field in own { fields.append(field.name.rawName, field.latin1Value) }
        for field in configuration.headerFields where own[field.name] == nil {
            fields.append(field.name.rawName, field.latin1Value)
        }
        fields.remove(.host)
        fields.remove(.contentLength)
        if content != nil {
            // A POST has no ranges and no conditions; the GET that the download core sees would obey them.
            for field in [KnownField.range, .ifRange, .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince] {
                fields.remove(field)
            }
        }
        if options.forcesDownload { fields.appendMember(.cacheControl, "no-cache") }
        if options.onlyStored { fields.appendMember(.cacheControl, "only-if-cached") }
        self.fields = HopByHop.forwardable(fields, isRequest: true)
    }

    /// The origin of an absolute URL, and what follows it, byte for byte and without the fragment.
    /// - Throws: `DownloadError.invalidRequest`.
    static func place(_ text: String) throws(DownloadError) -> (OriginAddress, path: String) {
        let whole = text.prefix { $0 != "#" }
        guard let colon = whole.firstRange(of: "://") else { throw refuse(text, "begin it with http:// or https://") }
        let scheme = whole[..<colon.lowerBound].lowercased()
        guard scheme == "http" || scheme == "https" else { throw refuse(text, "begin it with http:// or https://") }
        let rest = whole[colon.upperBound...]
        let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        guard let authority = Authority.parse(String(rest[..<end])), authority.port != 0 else {
            throw refuse(text, "name a host, or host:port, without a user")
        }
        guard rest[end...].utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw refuse(text, "percent-encode what is not visible ASCII")
        }
        let origin = OriginAddress(scheme: scheme, host: authority.host, port: authority.port, basePath: "")
        let suffix = String(rest[end...])
        return (origin, suffix.first == "/" ? suffix : "/" + suffix)
    }

    private static func types(_ names: [String], _ url: String) throws(DownloadError) -> ExpectedTypes? {
        for name in names where !ExpectedTypes.isPattern(name) {
            throw refuse(url, "'\(name)' in acceptedContentTypes is no media type: write type/subtype, type/* or */*")
        }
        return ExpectedTypes(names)
    }

    private static func refuse(_ url: String, _ advice: String) -> DownloadError {
        .invalidRequest("cannot ask for '\(url)': \(advice)")
    }
}

extension HTTPField {
    /// The value's bytes as the modules below have them in a String.
    fileprivate var latin1Value: String { withUnsafeBytesOfValue { Latin1.string(UnsafeRawBufferPointer($0)) } }
}
