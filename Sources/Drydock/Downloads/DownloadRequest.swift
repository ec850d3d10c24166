// A program's request in the words of the modules below: key, fields, policy, and the origin that is asked.

import CacheStore
import Content
import FoundationEssentials
import HTTPCaching
package import HTTPTypes
import HTTPWire
package import ServiceCore

/// What one download asks for; made before anything is opened, so that what cannot be asked for fails at once.
///
/// It is kept by every call that waits, more than once in the frames of tasks: so it is no more than two references.
package struct DownloadRequest: Sendable {
    private final class Contents: Sendable {
        let url: URL
        let origin: OriginAddress
        let path: String
        let method: HTTPWire.Method
        let fields: Fields
        let content: [UInt8]?
        let body: RequestBody?
        let isPassed: Bool
        let isDecoded: Bool
        let bypassesStore: Bool
        let options: DownloadOptions
        let keys: KeyRules
        let types: ExpectedTypes?
        let scope: AskingScope

        init(
            _ url: URL,
            _ origin: OriginAddress,
            _ path: String,
            _ method: HTTPWire.Method,
            _ fields: Fields,
            _ content: [UInt8]?,
            _ body: RequestBody?,
            isPassed: Bool,
            isDecoded: Bool,
            bypassesStore: Bool,
            _ options: DownloadOptions,
            _ keys: KeyRules,
            _ types: ExpectedTypes?,
            _ scope: AskingScope
        ) {
            (self.url, self.origin, self.path, self.method) = (url, origin, path, method)
            (self.fields, self.content, self.body) = (fields, content, body)
            (self.isPassed, self.isDecoded) = (isPassed, isDecoded)
            (self.bypassesStore, self.options) = (bypassesStore, options)
            (self.keys, self.types, self.scope) = (keys, types, scope)
        }
    }

    private let contents: Contents

    /// The URL as the program gave it.
    var url: URL { contents.url }
    var origin: OriginAddress { contents.origin }
    /// Path and query, as they go out.
    var path: String { contents.path }
    var method: HTTPWire.Method { contents.method }
    /// End-to-end, without Host.
    var fields: Fields { contents.fields }
    /// The content of a POST that is answered from the store; nil for what has no content, and for what is passed on.
    var content: [UInt8]? { contents.content }
    /// What is sent with a request that is passed on; nil where it has no content.
    var body: RequestBody? { contents.body }
    /// It is for the origin to answer, whatever is stored.
    var isPassed: Bool { contents.isPassed }
    /// Coded bytes are decoded before the program gets them.
    var isDecoded: Bool { contents.isDecoded }
    /// Nothing is looked up in memory or on disk, and nothing is kept.
    var bypassesStore: Bool { contents.bypassesStore }
    /// The origin is never asked.
    var isStoredOnly: Bool { options.cachePolicy == .storedOnly }
    var options: DownloadOptions { contents.options }
    /// The manager's, of what makes two requests one.
    var keys: KeyRules { contents.keys }
    /// The media types of a success; nil where any will do.
    var types: ExpectedTypes? { contents.types }

    /// The closures of the program from within which it is asked.
    var scope: AskingScope { contents.scope }

    /// What the manager adds to it, and whom its answers are for; nil where it adds nothing, and they are for everybody.
    var identity: StoreIdentity?

    /// The fields as they go to the origin.
    var sent: Fields { identity?.sent ?? fields }

    /// The fields as the rules and the store see them: without secrets.
    var seen: Fields { identity?.seen ?? fields }

    /// The answer to a POST is found by its content, too, and one that is for somebody alone by who that is.
    var key: CacheKey {
        content.map { urlKey.adding(lines: KeyRules.lines(post: $0, seen)) } ?? urlKey
    }

    /// The key without the content.
    private var urlKey: CacheKey {
        var lines = keys.lines(seen)
        if let line = identity?.line { lines.append(line) }
        if let line = scope.line { lines.append(line) }
        return CacheKey(service: "", url: origin.root + keys.path(path), lines: lines)
    }

    /// The key without what the manager adds, and without the content.
    var plainKey: CacheKey {
        var plain = self
        plain.identity = nil
        return plain.urlKey
    }

    /// The method that is sent: in the modules below a POST that is a question is a GET.
    var sentMethod: HTTPWire.Method { content == nil ? method : .post }

    /// The content as far as it is in memory; nil where it has none, or one that is elsewhere.
    var sentData: Data? { (body?.data ?? content.map { Data($0) }).flatMap { $0.isEmpty ? nil : $0 } }

    /// Whether bytes are sent behind its head.
    var hasContent: Bool { body != nil || content != nil }

    /// Without query, which may hold secrets, and without user.
    var shownURL: String { origin.root + path.prefix { $0 != "?" } }

    /// Whether what is stored is looked at before anybody is asked.
    var wantsStaleFirst: Bool { options.yieldsStaleFirst && mayUseStale }

    /// Whether what is stored, and no longer valid, is of use: the origin is asked behind it, and would not have been
    /// asked in any case.
    var mayUseStale: Bool { options.cachePolicy == .useStored && !bypassesStore && !isPassed }

    /// - Throws: `DownloadError.invalidRequest`.
    init(_ url: URL, _ configuration: DownloadConfiguration, _ options: DownloadOptions)
        throws(DownloadError)
    {
        try self.init(
            url,
            text: url.absoluteString,
            method: .get,
            own: HTTPFields(),
            configuration: configuration,
            options: options
        )
    }

    /// - Throws: `DownloadError.invalidRequest`.
    init(
        _ request: HTTPRequest,
        body: RequestBody? = nil,
        _ configuration: DownloadConfiguration,
        _ options: DownloadOptions
    ) throws(DownloadError) {
        let text = request.text
        guard let url = URL(string: text) else { throw Self.refuse(text, "give it a scheme, an authority and a path") }
        try Self.check(request, body)
        // In the modules below a POST with its content is a GET under another key.
        let content = Self.storedContent(of: request, body, configuration, options)
        try self.init(
            url,
            text: text,
            method: content == nil ? HTTPWire.Method(request.method.rawValue) : .get,
            own: Self.fields(of: request, body),
            content: content,
            body: content == nil ? body : nil,
            configuration: configuration,
            options: options
        )
    }

    private init(
        _ url: URL,
        text: String,
        method: HTTPWire.Method,
        own: HTTPFields,
        content: [UInt8]? = nil,
        body: RequestBody? = nil,
        configuration: DownloadConfiguration,
        options: DownloadOptions
    ) throws(DownloadError) {
        let (origin, path) = try Self.target(text)
        let isNoQuestion = content == nil && options.methods?.contains(.get) == false
        let types = try Self.types(options.acceptedContentTypes ?? configuration.acceptedContentTypes, text)
        var fields = Fields()
        for field in own { fields.append(field.name.rawName, field.latin1Value) }
        for field in configuration.headerFields where own[field.name] == nil {
            fields.append(field.name.rawName, field.latin1Value)
        }
        fields.remove(.host)
        fields.remove(.contentLength)
        // Ranges are of GET alone (RFC 9110 section 14.2); the GET that the download core sees would obey this one. Of
        // a content that is there nothing is to be expected.
        if content != nil { for field in [KnownField.range, .expect] { fields.remove(field) } }
        let isDecoded = configuration.decodesContent && !fields.contains(.acceptEncoding) && !fields.contains(.range)
        if isDecoded { fields.append(.acceptEncoding, Self.codings) }
        if options.cachePolicy == .reload { fields.appendMember(.cacheControl, "no-cache") }
        if options.cachePolicy == .storedOnly { fields.appendMember(.cacheControl, "only-if-cached") }
        contents = Contents(
            url,
            origin,
            path,
            method,
            HopByHop.forwardable(fields, isRequest: true),
            content,
            body,
            isPassed: body != nil || method != .get && method != .head,
            isDecoded: isDecoded,
            bypassesStore: isNoQuestion || options.cachePolicy == .bypass,
            options,
            configuration.keys,
            types,
            AskingScope.current
        )
    }

    /// What an origin is asked for where the bytes are decoded here.
    private static let codings = "gzip, br"

    /// The origin of an absolute URL, and what follows it, byte for byte and without the fragment.
    /// - Throws: `DownloadError.invalidRequest`.
    package static func target(_ text: String) throws(DownloadError) -> (OriginAddress, path: String) {
        var bytes = text
        switch bytes.withUTF8({ parts(of: UnsafeRawBufferPointer($0)) }) {
        case .target(let origin, let path): return (origin, path)
        case .refused(let advice): throw refuse(text, advice)
        }
    }

    private enum Parts {
        case target(OriginAddress, path: String)
        /// What to write instead.
        case refused(String)
    }

    /// Origin and path of a URL. It looks at each byte once, since every download begins with it.
    private static func parts(of text: UnsafeRawBufferPointer) -> Parts {
        let whole = text.part(0..<(text.firstIndex(of: UInt8(ascii: "#")) ?? text.count))
        let (scheme, start): (String, Int)
        if whole.count >= 7, whole.part(0..<7).equalsIgnoringCase("http://") {
            (scheme, start) = ("http", 7)
        } else if whole.count >= 8, whole.part(0..<8).equalsIgnoringCase("https://") {
            (scheme, start) = ("https", 8)
        } else {
            return .refused("begin it with http:// or https://")
        }
        let rest = whole.part(start..<whole.count)
        let end = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.count
        guard let authority = Authority.parse(bytes: rest.part(0..<end)) else {
            return .refused("name a host, or host:port, without a user")
        }
        let suffix = rest.part(end..<rest.count)
        guard suffix.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            return .refused("percent-encode what is not visible ASCII")
        }
        let origin = OriginAddress(scheme: scheme, host: authority.host, port: authority.port, basePath: "")
        let path = String(decoding: suffix, as: UTF8.self)
        return .target(origin, path: suffix.first == UInt8(ascii: "/") ? path : "/" + path)
    }

    private static func types(_ names: [String], _ url: String) throws(DownloadError) -> ExpectedTypes? {
        for name in names where !ExpectedTypes.isPattern(name) {
            throw refuse(url, "'\(name)' in acceptedContentTypes is no media type: write type/subtype, type/* or */*")
        }
        return ExpectedTypes(names)
    }

    static func refuse(_ url: String, _ advice: String) -> DownloadError {
        .invalidRequest("cannot ask for '\(url)': \(advice)")
    }
}

extension HTTPField {
    /// The value's bytes as the modules below have them in a String.
    package var latin1Value: String { withUnsafeBytesOfValue { Latin1.string(UnsafeRawBufferPointer($0)) } }
}
