// The credentials of a manager: which ones an origin gets, and who is asked when it refuses them.

import ServiceCore
import Synchronization

/// What an origin is shown at a moment: a value.
struct Account: Sendable {
    /// Scheme, host and port.
    let origin: String
    /// What is shown to the origin; nil shows nothing.
    let credentials: Credentials?
    /// How often the program has answered for this origin.
    let generation: Int
    /// The program is asked where it is refused.
    let isAsked: Bool
}

/// A name in the settings that is no origin, or credentials that cannot be sent.
struct CredentialFault: Error, CustomStringConvertible {
    let description: String
}

/// Sendable: its table is under its own mutex; the program's closures run in tasks outside of it.
final class CredentialTable: Sendable {
    /// What is known of one origin.
    private struct Slot {
        var credentials: Credentials?
        var generation = 0
        /// The program thinks about the present generation.
        var question: Task<Void, Never>?
    }

    private struct State {
        var slots: [String: Slot] = [:]
        var awaited = AwaitedQuestions()
    }

    private let sources: [(pattern: OriginPattern, source: CredentialSource)]
    private let onTrouble: @Sendable (String) -> Void
    private let state = Mutex(State())

    /// - Parameters:
    ///   - settings: by the names of origins.
    ///   - onTrouble: told of an answer of the program that cannot be sent.
    /// - Throws: `CredentialFault`.
    init(_ settings: [String: CredentialSource], onTrouble: @escaping @Sendable (String) -> Void)
        throws(CredentialFault)
    {
        var sources: [(pattern: OriginPattern, source: CredentialSource)] = []
        for (name, source) in settings {
            guard let pattern = OriginPattern(name) else {
                throw CredentialFault(
                    description: "'\(name)' in credentials is no origin: write HOST, HOST:PORT, or one with http:// or "
                        + "https:// before it"
                )
            }
            if let known = source.known, known.value == nil {
                throw CredentialFault(
                    description:
                        "the credentials for '\(name)' cannot be sent: a token is visible ASCII without spaces, "
                        + "a name has no colon, and neither has a control character"
                )
            }
            sources.append((pattern, source))
        }
        self.sources = sources.sorted { $0.pattern.precision > $1.pattern.precision }
        self.onTrouble = onTrouble
    }

    /// What is shown to an origin now; nil where nothing is said about it.
    func account(for origin: OriginAddress) -> Account? {
        guard let source = source(for: origin) else { return nil }
        let known = state.withLock { $0.slots[origin.root] }
        return Account(
            origin: origin.root,
            credentials: known.map(\.credentials) ?? source.known,
            generation: known?.generation ?? 0,
            isAsked: source.handler != nil
        )
    }

    private func source(for origin: OriginAddress) -> CredentialSource? {
        sources.first { $0.pattern.matches(origin) }?.source
    }

    /// What is shown to an origin after it has refused an account: what the program says, or has said meanwhile.
    /// - Parameter scope: where the request was made; a closure that waits for the one that would be asked is not waited for.
    /// - Returns: nil where there is nothing else to show, the answer would wait for itself, or the caller was cancelled.
    func account(
        after refused: Account,
        for origin: OriginAddress,
        _ challenge: AuthenticationChallenge,
        within scope: AskingScope
    ) async -> Account? {
        guard let source = source(for: origin), let handler = source.handler else { return nil }
        let outer = scope.origins(of: self)
        let found = state.withLock { state -> Found in
            var slot = state.slots[origin.root] ?? Slot(credentials: source.known)
            guard slot.generation == refused.generation else { return .answered }
            if let question = slot.question {
                guard !state.awaited.waits(origin.root, for: outer) else { return .circle }
                state.awaited.note(outer, awaiting: origin.root)
                return .asked(question)
            }
            let within = scope.adding(self, origin.root)
            // In a task of its own: who asked first may leave, and the others wait on.
            let question = Task { [self] in
                let answer = await AskingScope.$current.withValue(within) { await handler(challenge) }
                settle(origin.root, source, answer)
            }
            slot.question = question
            state.slots[origin.root] = slot
            state.awaited.note(outer, awaiting: origin.root)
            return .asked(question)
        }
        switch found {
        case .circle: return nil
        case .answered: break
        case .asked(let question):
            defer { state.withLock { $0.awaited.forget(outer, awaiting: origin.root) } }
            guard await question.valueUnlessCancelled() != nil else { return nil }
        }
        guard let next = account(for: origin), next.credentials != nil,
            next.credentials?.value != refused.credentials?.value
        else { return nil }
        return next
    }

    /// What there is of a question.
    private enum Found {
        case answered
        case asked(Task<Void, Never>)
        /// Whoever is to answer it waits for the one who asks.
        case circle
    }

    private func settle(_ origin: String, _ source: CredentialSource, _ answer: Credentials?) {
        if let answer, answer.value == nil {
            onTrouble(
                "the credentials that the program has answered for \(origin) cannot be sent, and are not used: a token "
                    + "is visible ASCII without spaces, a name has no colon, and neither has a control character"
            )
        }
        let question = state.withLock { state in
            var slot = state.slots[origin] ?? Slot(credentials: source.known)
            defer { state.slots[origin] = slot }
            state.awaited.answered(origin)
            if let answer, answer.value != nil { slot.credentials = answer }
            slot.generation += 1
            return slot.question.take()
        }
        withExtendedLifetime(question) {}
    }
}
