// What a program shows to origins, and where it comes from.

import HTTPWire

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

    /// Whose they are: what is stored for one is for no other.
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
    /// Answers what is shown from now on; nil shows nothing else than before.
    public typealias Handler = @Sendable (AuthenticationChallenge) async -> Credentials?

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
    /// thinks, and the request has no place among those under way.
    ///
    /// The closure may use the same manager, for a token, say. What it asks of the same origin is sent without the
    /// manager's credentials, and a 401 is its result: nobody is asked about it. What it asks of another origin whose
    /// credentials wait for these has its 401 as its result, too. All of that holds for its own task and the tasks that
    /// have its task-local values. A detached task (`Task.detached`) cannot be told from the rest of the program: its
    /// requests wait for the closure's answer, and the closure must not wait for them.
    /// - Parameters:
    ///   - first: what is shown before anybody was asked; nothing by default.
    ///   - handler: asked, in a task of its own. Downloads that wait for an answer which never comes end when they are
    ///     cancelled, or the manager closes.
    public static func asking(first: Credentials? = nil, _ handler: @escaping Handler) -> Self {
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
