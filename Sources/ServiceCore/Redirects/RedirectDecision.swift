// Where a redirect leads, and what becomes of it: it is followed, or it is the answer, or it must not be followed.

package import HTTPWire

/// What follows an answer; pure.
package enum RedirectDecision: Sendable, Equatable {
    /// It is no redirect, or none that can be followed for the client: the client gets it.
    case answer
    /// It is followed by a request with this method.
    case follow(RedirectTarget, Method, keepsContent: Bool)
    /// It would give away what https protects.
    case refuse(String)

    /// - Parameters:
    ///   - method: of the request that was answered.
    ///   - current: where it went.
    ///   - canRepeat: its content, if it has any, is still there as a whole.
    package static func decide(
        _ answer: ResponseHead,
        to method: Method,
        at current: RedirectTarget,
        canRepeat: Bool
    ) -> RedirectDecision {
        guard [301, 302, 303, 307, 308].contains(answer.status), answer.fields.all(.location).count == 1,
            let location = answer.fields.first(.location), let target = current.resolving(location)
        else { return .answer }
        var next = method
        var keepsContent = true
        switch (answer.status, method) {
        case (303, .get), (303, .head): break
        // RFC 9110 section 15.4.4; and for POST what every client does (sections 15.4.2 and 15.4.3).
        case (303, _), (301, .post), (302, .post):
            next = .get
            keepsContent = false
        default: break
        }
        if current.origin.scheme == "https", target.origin.scheme == "http" {
            return .refuse(
                "\(current.url.withoutQuery) redirects from https to \(target.url.withoutQuery), which is not followed: it would be read on its way"
            )
        }
        return keepsContent && !canRepeat ? .answer : .follow(target, next, keepsContent: keepsContent)
    }
}

extension String {
    /// A URL without its query, which may hold secrets.
    var withoutQuery: String { String(prefix { $0 != "?" }) }
}

/// The absolute form of a reference in an answer (RFC 9110 section 10.2.2, RFC 3986 section 5.2).
package struct RedirectTarget: Sendable, Equatable {
    package let origin: OriginAddress
    /// Path and query, beginning with a slash.
    package let path: String

    package var url: String { origin.root + path }

    package init(_ origin: OriginAddress, path: String) {
        self.origin = origin
        self.path = path.hasPrefix("/") ? path : "/" + path
    }

    /// Whether requests there may carry what is for `other`: scheme, host and port are the same.
    package func isSameOrigin(as other: OriginAddress) -> Bool {
        origin.scheme == other.scheme && origin.host == other.host && origin.effectivePort == other.effectivePort
    }

    /// A reference that came in an answer, as browsers read it: bytes that a URL cannot hold are percent-encoded, and a
    /// backslash in a path is a slash. The fragment, which is the client's, is left out.
    /// - Returns: nil where it is empty, or no http or https URL that can be asked for.
    package func resolving(_ reference: String) -> RedirectTarget? {
        guard let text = Self.read(reference), !text.isEmpty else { return nil }
        if text.hasPrefix("//") { return Self.absolute(origin.scheme, String(text.dropFirst(2))) }
        if let colon = Self.schemeEnd(text) {
            let scheme = text[..<colon].lowercased()
            let rest = text[colon...].dropFirst()
            guard scheme == "http" || scheme == "https", rest.hasPrefix("//") else { return nil }
            return Self.absolute(scheme, String(rest.dropFirst(2)))
        }
        let own = path.prefix { $0 != "?" }
        let joined: String
        if text.hasPrefix("/") {
            joined = text
        } else if text.hasPrefix("?") {
            joined = own + text
        } else {
            joined = own.prefix(through: own.lastIndex(of: "/") ?? own.startIndex) + text
        }
        return RedirectTarget(origin, path: DotSegments.resolved(joined))
    }

    private static func absolute(_ scheme: String, _ rest: String) -> RedirectTarget? {
        let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        // With a user in front of the host it is no authority.
        guard let authority = Authority.parse(String(rest[..<end])), authority.host != "." else { return nil }
        let suffix = String(rest[end...])
        let origin = OriginAddress(scheme: scheme, host: authority.host, port: authority.port, basePath: "")
        return RedirectTarget(origin, path: DotSegments.resolved(suffix.hasPrefix("/") ? suffix : "/" + suffix))
    }

    /// Without fragment; nil where a control is in it.
    private static func read(_ reference: String) -> String? {
        var text = ""
        var isPath = true
        // A value of a field has one character for each byte.
        for scalar in reference.unicodeScalars {
            switch scalar {
            case "#": return text
            case "\\" where isPath: text += "/"
            case _ where scalar.value < 0x20 || scalar.value == 0x7F || scalar.value > 0xFF: return nil
            case _ where scalar.value > 0x7E || scalar == " ":
                let digits = String(scalar.value, radix: 16, uppercase: true)
                text += "%" + digits
            default:
                if scalar == "?" { isPath = false }
                text.unicodeScalars.append(scalar)
            }
        }
        return text
    }

    /// The colon behind a scheme (RFC 3986 section 3.1).
    private static func schemeEnd(_ text: String) -> String.Index? {
        guard let colon = text.firstIndex(of: ":"), let first = text.first, first.isASCII, first.isLetter else {
            return nil
        }
        let isScheme = text[..<colon].allSatisfy {
            $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "+" || $0 == "-" || $0 == ".")
        }
        return isScheme ? colon : nil
    }
}
