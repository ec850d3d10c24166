// What becomes of one redirect: it is followed, and how; or it is the answer; or it must not be followed.

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
    ///   - place: where it went.
    ///   - canRepeat: its content, if it has any, is still there as a whole.
    package static func decide(
        _ answer: ResponseHead,
        to method: Method,
        at place: RedirectTarget,
        canRepeat: Bool
    ) -> RedirectDecision {
        guard [301, 302, 303, 307, 308].contains(answer.status), answer.fields.all(.location).count == 1,
            let location = answer.fields.first(.location), let target = place.resolving(location)
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
        if place.origin.scheme == "https", target.origin.scheme == "http" {
            return .refuse(
                "\(place.url.withoutQuery) redirects from https to \(target.url.withoutQuery), which is not followed: it would be read on its way"
            )
        }
        return keepsContent && !canRepeat ? .answer : .follow(target, next, keepsContent: keepsContent)
    }
}

extension String {
    /// A URL without its query, which may hold secrets.
    var withoutQuery: String { String(prefix { $0 != "?" }) }
}
