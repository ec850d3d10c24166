// The policies of a cache: how stored responses are checked, what becomes of those that are missing at their origin,
// which cookies keep an answer from being stored, and what a body must be.

/// How a stored response is checked with its origin when it is no longer valid; the raw value is the word in files.
public enum ValidationMethod: String, Sendable, CaseIterable {
    /// A HEAD asks (RFC 9111 section 4.3.5): a GET follows where the answer differs from what is stored.
    case head
    /// A GET with conditions asks, which brings the new body at once (RFC 9111 section 4.3.1).
    case conditional
    /// The method is whichever of the two costs less, judged by how the origin has answered before and by the length of
    /// the body.
    case automatic = "auto"
    /// No check is made: where the manager or the configuration gives lifetimes, what is stored stays valid for ever,
    /// and by the rules of RFC 9111 it counts as absent once it is stale.
    case never
}

/// A property of a response that a check by HEAD compares with what is stored, where lifetimes are fixed; the cases are
/// in the order of what they prove, the strongest first.
public enum ComparisonRule: String, Sendable, CaseIterable {
    /// The entity tag (RFC 9110 section 8.8.3) is compared.
    case etag
    /// Last-Modified is compared for inequality: an older date is another one, too.
    case lastModified = "last-modified"
    /// The length of the body is compared.
    case length
}

/// The fate of a stored response when a check answers 404 or 410; the raw value is the word in files.
public enum MissingRule: String, Sendable, CaseIterable {
    /// The answer is passed on; the stored response stays, and is checked again the next time.
    case fail = "pass"
    /// The stored response is the answer, as if the origin had failed.
    case useStored = "serve-stale"
    /// The answer is passed on, and the stored response is removed.
    case remove = "evict"
}

// MARK: - Cookies

/// How responses with Set-Cookie are stored. In every case whoever caused the request to the origin gets the cookie,
/// and those who waited for the same answer do not.
public enum SetCookiePolicy: String, Sendable, CaseIterable {
    /// Responses are stored if they say themselves how long they are fresh (RFC 9111 section 7.3), and without
    /// Set-Cookie unless `public` or `s-maxage` says that they are for all users.
    case strict
    /// Responses are stored, cookie and all, if they say themselves how long they are fresh (RFC 9111 section 7.3).
    case explicit
    /// Responses are stored without Set-Cookie, whatever they say.
    case strip
    /// Responses with Set-Cookie are not stored.
    case skip
}

/// How the answers to requests with Cookie are stored, which may be meant for the user of that cookie alone.
public enum CookiePolicy: String, Sendable, CaseIterable {
    /// Answers are stored if they say themselves how long they are fresh: a heuristic, configured or fixed lifetime is
    /// not enough.
    case explicit
    /// Answers are stored like others, and found whatever the cookies are: for origins whose cookies change nothing.
    case any
    /// Answers to requests with Cookie are not stored.
    case never
}

// MARK: - Bodies

/// What a body must be for its response to be stored; gzip, deflate and Brotli are looked through.
public enum ContentExpectation: String, Sendable, CaseIterable {
    /// Whatever comes is accepted.
    case anything = "any"
    /// The body is a JSON text.
    case json
    /// The body is a JSON text that is an object.
    case jsonObject = "json-object"
    /// The body is a JSON text that is an array.
    case jsonArray = "json-array"
    /// The body is a property list, as XML or binary.
    case propertyList = "plist"
    /// The body is an image, recognized by its first bytes: PNG, JPEG, GIF, WebP, AVIF, HEIC, BMP, ICO, TIFF, JPEG XL,
    /// JPEG 2000, SVG.
    case image

    /// The expected content in words, such as `a JSON text`.
    package var noun: String {
        switch self {
        case .anything: "anything"
        case .json: "a JSON text"
        case .jsonObject: "a JSON object"
        case .jsonArray: "a JSON array"
        case .propertyList: "a property list"
        case .image: "an image"
        }
    }

    /// Whether only the whole body can meet the expectation.
    package var needsAll: Bool { self == .json || self == .jsonObject || self == .jsonArray }
}
