// Where the redirects that are followed lead an unsafe request, and what answered it there: each of these resources may
// have changed (RFC 9111 section 4.4).

import HTTPCaching
package import HTTPWire

/// What becomes of one unsafe request at the URLs on its way. Whoever follows redirects notes them. Loop-bound.
package final class FetchTrail {
    /// Absolute URLs that have answered the unsafe method without an error, in their order.
    package private(set) var changed: [String] = []
    /// The URL that the answer is of, where redirects were followed.
    private var end: (url: String, method: Method)?

    package init() {}

    /// A redirect has come, which may be followed.
    package func noteRedirect(of url: String, _ status: Int, to method: Method) {
        if Caching.invalidates(method: method, status: status), !changed.contains(url) { changed.append(url) }
    }

    /// The answer has come.
    /// - Parameter url: nil without redirects; an attempt before this one may have had some.
    package func noteAnswer(of url: String?, _ status: Int, to method: Method) {
        end = url.map { ($0, method) }
        if let url { noteRedirect(of: url, status, to: method) }
    }

    /// The URLs that an answer names, and that are invalidated with the one that it is of. Another origin must not be
    /// able to invalidate what is not its own.
    /// - Parameter url: of the request, as it was sent first.
    package func urls(named answer: ResponseHead, _ url: String) -> [String] {
        guard let end else { return Caching.invalidatedURLs(url: url, response: answer) }
        guard Caching.invalidates(method: end.method, status: answer.status) else { return [] }
        return Caching.invalidatedURLs(url: end.url, response: answer)
    }
}

@available(*, unavailable) extension FetchTrail: Sendable {}
