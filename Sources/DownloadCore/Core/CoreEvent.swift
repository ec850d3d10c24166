// The events and the counts that the download core reports beside its answers.

package import CacheStore
package import Content
package import Logging

/// Something that an operator may want to read of.
package enum CoreEvent: Sendable, Equatable {
    /// A body was not what its route expects: it was forwarded and not stored.
    /// - `found`: what it is instead, such as `begins with "<!do"`.
    case unexpected(CacheKey, ContentExpectation, found: String)
    /// A fetch was ended since everybody who waited for it had left.
    /// - `received`: bytes of the body so far.
    case abandoned(CacheKey, received: Int64)
    /// A response was delimited by the end of its TLS connection, which came without close_notify: it may be truncated,
    /// so it was forwarded and not stored.
    case unproven(CacheKey)
    /// A response was not stored although the `stored` of its Cache-Status said that it would be.
    case unstored(CacheKey, UnstoredReason)

    /// One line.
    package var text: String {
        switch self {
        case .unexpected(let key, let expected, let found):
            "\(Self.name(key)) should be \(expected.noun) and \(found): passed on, not stored; "
                + "correct the origin, or what its route expects"
        case .abandoned(let key, let received):
            "\(Self.name(key)): the fetch was ended after \(received) bytes, since nobody waits for it any more"
        case .unproven(let key):
            "\(Self.name(key)) ended with its TLS connection, which ended without close_notify, so that it may have been cut: "
                + "passed on, not stored; let the origin send Content-Length or chunks"
        case .unstored(let key, let reason):
            "\(Self.name(key)) was answered and not stored (\(reason.rawValue)), though its head said that it would be: \(reason.text)"
        }
    }

    /// How loud the logs of the daemon and of the library say it.
    package var level: Logger.Level {
        switch self {
        case .unexpected, .unproven: .warning
        case .unstored: .notice
        // The route's `on_client_abort` asked for this, so it is no problem of the operator.
        case .abandoned: .debug
        }
    }

    private static func name(_ key: CacheKey) -> String {
        key.service.isEmpty ? "\(key)" : "\(key) of service \(key.service)"
    }
}

/// What has happened since the start.
package struct CoreCounts: Sendable, Equatable {
    /// Answers with a placeholder.
    package var placeholders = 0
    /// Answers with a fallback.
    package var fallbacks = 0
    /// Bodies that were not what their routes expect.
    package var unexpected = 0
    /// Fetches that ended since everybody had left.
    package var abandoned = 0
    /// Fetches that an operator has ended.
    package var cancelled = 0
    /// Responses that were not stored although the `stored` of their Cache-Status said that they would be.
    package var unstored = 0
}
