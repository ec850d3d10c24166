// What a program is asked about an origin that TLS alone does not let through, and what it has decided: asked once for
// all who wait, and remembered for origin and key.

public import FoundationEssentials
import Synchronization
import Upstream

/// Sendable: the table is under its own mutex; the program's closure runs in tasks outside of it.
final class ChallengeDecisions: Sendable {
    typealias Handler = @Sendable (TLSChallenge) async -> TLSChallenge.Answer

    /// What was decided about one public key of an origin.
    struct Terms: Sendable, Equatable {
        let pin: String
        /// Its certificate need not verify.
        var isTrusted = false
        /// The program's own certificate for it.
        var certificate: URL?
        var key: URL?
        /// It asks for a certificate, and gets none.
        var declines = false
    }

    private struct Question: Hashable {
        let origin: String
        let pin: String
        /// A certificate of the program's own is asked for; else it is about the origin's.
        let wantsCertificate: Bool
    }

    private struct State {
        /// The last key of each origin about which something was decided.
        var terms: [String: Terms] = [:]
        var answers: [Question: Task<TLSChallenge.Answer, Never>] = [:]
        var awaited = AwaitedQuestions()
    }

    private let handler: Handler
    private let state = Mutex(State())

    init(_ handler: @escaping Handler) { self.handler = handler }

    /// What was decided about an origin, by the last key of it that was asked about.
    func terms(for origin: String) -> Terms? { state.withLock { $0.terms[origin] } }

    /// An origin has another key by now: the next request to it begins as if nothing were decided. What the program has
    /// said stays known, for when the key is seen again.
    func forget(_ origin: String, pin: String) {
        state.withLock { state in
            if state.terms[origin]?.pin == pin { state.terms[origin] = nil }
        }
    }

    /// Asks the program, or takes what it has said before.
    /// - Parameter scope: where the request was made; within the closure itself nobody is asked about the same origin, and
    ///   nobody waits there for a closure that waits for this one.
    /// - Returns: what the origin is asked on now; nil where it is not to be asked, the answer would wait for itself, or
    ///   the caller was cancelled.
    func decide(_ challenge: TLSChallenge, within scope: AskingScope = AskingScope()) async -> Terms? {
        guard !scope.isWithin(self, challenge.origin) else { return nil }
        let within = scope.adding(self, challenge.origin)
        let question = Question(
            origin: challenge.origin,
            pin: challenge.pin,
            wantsCertificate: challenge.reason == .wantsCertificate
        )
        let outer = scope.origins(of: self)
        let task = state.withLock { state -> Task<TLSChallenge.Answer, Never>? in
            if let known = state.answers[question] {
                guard !state.awaited.waits(challenge.origin, for: outer) else { return nil }
                state.awaited.note(outer, awaiting: challenge.origin)
                return known
            }
            // In a task of its own: who asked first may leave, and the others wait on.
            let new = Task { [self] in await ask(challenge, within) }
            state.answers[question] = new
            state.awaited.note(outer, awaiting: challenge.origin)
            return new
        }
        guard let task else { return nil }
        defer { state.withLock { $0.awaited.forget(outer, awaiting: challenge.origin) } }
        guard let answer = await task.valueUnlessCancelled() else { return nil }
        return state.withLock { state in
            let old = state.terms[question.origin].flatMap { $0.pin == question.pin ? $0 : nil }
            guard let new = Self.terms(old ?? Terms(pin: question.pin), question, answer) else { return nil }
            state.terms[question.origin] = new
            return new
        }
    }

    private func ask(_ challenge: TLSChallenge, _ scope: AskingScope) async -> TLSChallenge.Answer {
        let answer = await AskingScope.$current.withValue(scope) { await handler(challenge) }
        state.withLock { $0.awaited.answered(challenge.origin) }
        return answer
    }

    /// The terms after an answer of the program; nil if it refuses the origin.
    private static func terms(_ old: Terms, _ question: Question, _ answer: TLSChallenge.Answer) -> Terms? {
        var terms = old
        switch (answer, question.wantsCertificate) {
        case (.refuse, _), (.present, false): return nil
        case (.proceed, false): terms.isTrusted = true
        case (.proceed, true): terms.declines = true
        case (.present(let certificate, let key), true): (terms.certificate, terms.key) = (certificate, key)
        }
        return terms
    }
}

extension ChallengeDecisions.Terms {
    /// The settings of the manager, changed for this very key.
    func applied(to tls: TLSOptions) -> TLSOptions {
        var tls = tls
        tls.pins = [pin]
        if isTrusted { tls.verify = false }
        if let certificate {
            tls.clientCertificate = certificate.path(percentEncoded: false)
            tls.clientKey = key?.path(percentEncoded: false)
        }
        tls.declinesCertificate = declines
        return tls
    }
}

// MARK: - The question

/// An origin whose certificate does not verify, or that asks for a certificate of the program's own.
///
/// Whoever set ``DownloadConfiguration/TLS/onChallenge`` is asked about it, once for each origin and public key, however
/// many downloads wait. Until there is an answer nothing has been sent to the origin but what opens a TLS connection.
public struct TLSChallenge: Sendable, Hashable {
    /// Why it is asked.
    public enum Reason: Sendable, Hashable {
        /// The certificate, or that of an authority behind it, has expired.
        case expired
        /// It is not valid yet.
        case notYetValid
        /// It was issued by an authority that is not trusted, or by itself.
        case unknownAuthority
        /// It is for another name.
        case otherName
        /// It does not verify for another reason; ``TLSChallenge/detail`` says which.
        case otherwise
        /// The certificate is good, and the origin asks for one in return.
        case wantsCertificate
    }

    /// What becomes of the origin, for the life of the manager. Another key of the same origin is another question.
    public enum Answer: Sendable, Hashable {
        /// The origin is not asked; downloads from it fail as untrusted.
        case refuse
        /// The origin is asked although its certificate does not verify, as long as it has the same public key. An
        /// origin that asks for a certificate is asked without one.
        case proceed
        /// The origin gets this certificate: a PEM file with the chain, and one with its key, where that is not in the
        /// same file. For ``Reason/wantsCertificate`` alone; for every other reason it refuses.
        case present(certificate: URL, key: URL? = nil)
    }

    /// Scheme, host and port, such as `https://example.com:8443`.
    public let origin: String
    /// Why it is asked.
    public let reason: Reason
    /// What is wrong, in words.
    public let detail: String
    /// The certificates that the origin has shown, as DER, its own first.
    public let certificates: [Data]
    /// The origin's public key as ``DownloadConfiguration/TLS/pins`` has it: `sha256//` and the Base64 of the digest of
    /// its SubjectPublicKeyInfo.
    public let pin: String
}
