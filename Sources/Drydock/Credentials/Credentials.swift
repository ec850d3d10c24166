// What a program shows to origins: where it comes from, to which origins it goes, and what is asked when one refuses
// it.

import HTTPWire
import ServiceCore

/// What a program shows to an origin in the field Authorization.
///
/// Its texts are never printed: neither a log nor the description of a configuration has them.
public enum Credentials: Sendable, Hashable {
    /// A token (RFC 6750). With a `user`, what is stored under one token is found under the user's next one, too;
    /// without, each token is somebody else.
    case bearer(String, user: String? = nil)
    /// A name and a password (RFC 7617), as UTF-8.
    case basic(user: String, password: String)
}

extension Credentials {
    /// The value of Authorization; nil where it cannot be sent: a token with spaces, a name with a colon, a control.
    var value: String? {
        switch self {
        case .bearer(let token, _):
            guard !token.isEmpty, token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
            return "Bearer \(token)"
        case .basic(let user, let password):
            let pair = "\(user):\(password)"
            guard !user.contains(":"), pair.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else { return nil }
            return "Basic \(Base64.encode(Array(pair.utf8)))"
        }
    }

    /// The identity of their owner: what is stored for one owner is for no other.
    var identity: String {
        switch self {
        case .bearer(_, let user?): "user \(user)"
        case .bearer, .basic: "value \(value ?? "")"
        }
    }
}

extension Credentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The scheme alone.
    public var description: String {
        switch self {
        case .bearer: "Bearer"
        case .basic: "Basic"
        }
    }

    /// The scheme alone.
    public var debugDescription: String { description }

    /// Nothing is shown of them.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Where the credentials for an origin come from: they are known, or the program is asked when the origin refuses a
/// request with 401.
public struct CredentialSource: Sendable, Hashable {
    typealias Handler = @Sendable (AuthenticationChallenge) async -> Credentials?

    /// What is shown until the program says otherwise.
    let known: Credentials?
    private let asked: Identified<Handler>?

    private init(_ known: Credentials?, _ asked: Identified<Handler>? = nil) {
        self.known = known
        self.asked = asked
    }

    var handler: Handler? { asked?.value }

    /// A token.
    /// - Parameters:
    ///   - token: what follows `Bearer`.
    ///   - user: whose it is, so that another token of the same user finds what is stored under this one; nil, the
    ///     default, where each token is somebody else.
    public static func bearer(_ token: String, user: String? = nil) -> Self { Self(.bearer(token, user: user)) }

    /// A name and a password.
    /// - Parameters:
    ///   - user: the name, without a colon.
    ///   - password: the password.
    public static func basic(user: String, password: String) -> Self { Self(.basic(user: user, password: password)) }

    /// Asks the program when the origin answers 401: once, however many downloads wait. Its answer is shown until the
    /// next 401; a request is repeated once, so that a second 401 is its result. No timeout runs while the program
    /// thinks, and the request has no slot among those under way.
    ///
    /// The closure may use the same manager, for a token, say. What it asks of the same origin is sent without the
    /// manager's credentials, and a 401 is its result: nobody is asked about it. What it asks of another origin whose
    /// credentials wait for these has its 401 as its result, too. All of that holds for its own task and the tasks that
    /// have its task-local values. A detached task (`Task.detached`) cannot be told from the rest of the program: its
    /// requests wait for the closure's answer, and the closure must not wait for them.
    /// - Parameters:
    ///   - first: what is shown before anybody was asked; nothing by default.
    ///   - handler: answers what is shown from now on, nil for nothing else than before; asked in a task of its own. Downloads that wait for an answer which never comes end when they are
    ///     cancelled, or the manager closes.
    public static func asking(
        first: Credentials? = nil,
        _ handler: @escaping @Sendable (AuthenticationChallenge) async -> Credentials?
    ) -> Self {
        Self(first, Identified(handler))
    }
}

extension CredentialSource: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Which kind of source it is.
    public var description: String { asked == nil ? known?.description ?? "none" : "asking" }

    /// Which kind of source it is.
    public var debugDescription: String { description }

    /// Nothing is shown of the credentials.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

// MARK: - The question to the program

/// A 401, and what it asks for.
public struct AuthenticationChallenge: Sendable, Hashable {
    /// One of the ways in which the origin wants to be shown credentials (RFC 9110 section 11.6.1).
    public struct Scheme: Sendable, Hashable {
        /// `basic`, `bearer`, in lower case.
        public var name: String
        /// What follows the name where that is no list of parameters.
        public var token: String?
        /// By their names in lower case.
        public var parameters: [String: String]

        /// The realm, where it names one.
        public var realm: String? { parameters["realm"] }

        /// A way with these parameters.
        public init(name: String, token: String? = nil, parameters: [String: String] = [:]) {
            self.name = name
            self.token = token
            self.parameters = parameters
        }
    }

    /// Scheme, host and port, such as `https://example.com:8443`.
    public var origin: String
    /// What its WWW-Authenticate names, in its order.
    public var schemes: [Scheme]
    /// What was shown to it, and refused; nil where nothing was.
    public var refused: Credentials?

    /// A challenge, such as one for the tests of a program.
    public init(origin: String, schemes: [Scheme], refused: Credentials? = nil) {
        self.origin = origin
        self.schemes = schemes
        self.refused = refused
    }
}

extension AuthenticationChallenge {
    init(_ account: Account, _ fields: Fields) {
        self.init(
            origin: account.origin,
            schemes: FieldChallenge.all(in: fields).map {
                Scheme(name: $0.scheme, token: $0.token, parameters: $0.parameters)
            },
            refused: account.credentials
        )
    }
}

// MARK: - Names of origins

/// `[SCHEME://]HOST[:PORT]`. Without a scheme it means `https`: credentials for a host are not sent in the clear by
/// accident.
struct OriginPattern: Sendable, Hashable {
    private let scheme: String
    private let host: String
    /// The port; nil matches any.
    private let port: UInt16?
    /// How much of an origin it names: of two that match, the one with more counts.
    let precision: Int

    /// - Returns: nil where the text is none.
    init?(_ text: String) {
        var rest = Substring(text)
        var named: String?
        if let mark = text.firstRange(of: "://") {
            named = text[..<mark.lowerBound].lowercased()
            rest = text[mark.upperBound...]
        }
        guard named == nil || named == "http" || named == "https", let authority = Authority.parse(String(rest)) else {
            return nil
        }
        scheme = named ?? "https"
        host = authority.host
        port = authority.port
        precision = (authority.port == nil ? 0 : 2) + (named == nil ? 0 : 1)
    }

    func matches(_ origin: OriginAddress) -> Bool {
        origin.scheme == scheme && origin.host == host && (port == nil || port == origin.effectivePort)
    }
}
