// Asks the program where TLS does not let a request through, and makes the request once more on what it has decided.

import DownloadCore
import EventLoop
import FoundationEssentials
import HTTPWire
import Upstream

/// Loop-bound; it keeps nothing of a request. While the program thinks, the request has no slot among those under way,
/// and no timeout runs.
final class ChallengedSource: FetchSource {
    private let origin: String
    private let tls: TLSOptions
    private let decisions: ChallengeDecisions
    /// Where the request is made.
    private let scope: AskingScope
    private let source: (TLSOptions) -> any FetchSource

    /// - Parameters:
    ///   - origin: scheme, host and port.
    ///   - tls: of the manager.
    ///   - source: of requests to the origin with these settings.
    init(
        _ origin: String,
        _ tls: TLSOptions,
        _ decisions: ChallengeDecisions,
        within scope: AskingScope,
        source: @escaping (TLSOptions) -> any FetchSource
    ) {
        self.origin = origin
        self.tls = tls
        self.decisions = decisions
        self.scope = scope
        self.source = source
    }

    func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle {
        let known = decisions.terms(for: origin)
        let fetch = ChallengedFetch(sink)
        fetch.handle = try await source(options(known)).start(request, sink: fetch, on: loop)
        let (origin, decisions, tls, source, scope) = (origin, decisions, tls, source, scope)
        fetch.task = Task.immediate(executorPreference: loop.taskExecutor) {
            var round = ChallengeRound(known, tls)
            while let error = await fetch.nextFailure(on: loop) {
                guard let step = round.step(after: error, origin) else { return fetch.end(error) }
                var terms: ChallengeDecisions.Terms?
                switch step {
                case .forget(let pin): decisions.forget(origin, pin: pin)
                case .ask(let challenge):
                    terms = await decisions.decide(challenge, within: scope)
                    guard let terms else { return fetch.end(error) }
                    round.decided(terms)
                }
                guard !fetch.isOver else { return }
                do throws(FetchError) {
                    let options = terms?.applied(to: tls) ?? tls
                    fetch.began(try await source(options).start(request, sink: fetch, on: loop))
                } catch {
                    return fetch.end(error)
                }
            }
        }
        return fetch
    }

    private func options(_ terms: ChallengeDecisions.Terms?) -> TLSOptions { terms?.applied(to: tls) ?? tls }
}

@available(*, unavailable) extension ChallengedSource: Sendable {}

/// How often one request is made again, and on which terms: a value.
private struct ChallengeRound {
    enum Step {
        /// What was decided is about another key than the origin has now: once more, as if nothing were decided.
        case forget(pin: String)
        case ask(TLSChallenge)
    }

    private let pins: [String]
    /// The key that the last attempt was for.
    private var pin: String?
    private var hasForgotten = false
    /// The program was asked about the origin's certificate, and about its own.
    private var asked: Set<Bool> = []

    init(_ known: ChallengeDecisions.Terms?, _ tls: TLSOptions) {
        pin = known?.pin
        pins = tls.pins
    }

    /// - Returns: nil where the error is final.
    mutating func step(after error: FetchError, _ origin: String) -> Step? {
        guard case .upstream(let error) = error else { return nil }
        guard let challenge = error.challenge else {
            guard error.kind == .certificate, let known = pin, !hasForgotten else { return nil }
            hasForgotten = true
            pin = nil
            return .forget(pin: known)
        }
        // What the settings pin is no matter of opinion, and nobody is asked twice about the same.
        guard pins.isEmpty || pins.contains(challenge.pin),
            asked.insert(challenge.reason == .wantsCertificate).inserted
        else { return nil }
        return .ask(TLSChallenge(challenge, origin: origin, detail: error.detail))
    }

    mutating func decided(_ terms: ChallengeDecisions.Terms) { pin = terms.pin }
}

extension TLSChallenge {
    fileprivate init(_ challenge: CertificateChallenge, origin: String, detail: String) {
        self.init(
            origin: origin,
            reason: Reason(challenge.reason),
            detail: detail,
            certificates: challenge.certificates.map { Data($0) },
            pin: challenge.pin
        )
    }
}

extension TLSChallenge.Reason {
    fileprivate init(_ reason: CertificateChallenge.Reason) {
        switch reason {
        case .expired: self = .expired
        case .notYetValid: self = .notYetValid
        case .unknownAuthority: self = .unknownAuthority
        case .otherName: self = .otherName
        case .other: self = .otherwise
        case .wantsCertificate: self = .wantsCertificate
        }
    }
}

/// One request with its attempts; loop-bound.
///
/// States: asking → answered (the sink hears everything) | failed (the program is asked) → asking | ended.
private final class ChallengedFetch: PassingFetch {
    var handle: (any FetchHandle)?
    var task: Task<Void, Never>?
    private(set) var sink: (any FetchSink)?
    private var isAnswered = false
    private var failure: FetchError?
    private var waiter: UnsafeContinuation<FetchError?, Never>?

    init(_ sink: any FetchSink) { self.sink = sink }

    var isOver: Bool { sink == nil }

    /// Waits until an attempt has failed; nil where it has an answer, or nobody waits for one.
    func nextFailure(on loop: isolated EventLoop) async -> FetchError? {
        if failure == nil, !isAnswered, !isOver { return await withUnsafeContinuation { waiter = $0 } }
        defer { failure = nil }
        return failure
    }

    private func wake() {
        guard let waiter else { return }
        self.waiter = nil
        let failure = failure
        self.failure = nil
        waiter.resume(returning: failure)
    }

    /// A source that took its time may have been given up meanwhile.
    func began(_ handle: any FetchHandle) {
        if isOver { handle.cancel() } else { self.handle = handle }
    }

    /// There is no other attempt.
    func end(_ error: FetchError) {
        let sink = sink
        self.sink = nil
        handle = nil
        sink?.failed(error)
    }

    func cancel() {
        sink = nil
        let handle = handle
        self.handle = nil
        handle?.cancel()
        wake()
        // It may wait for the program, or for admission.
        task?.cancel()
    }

    // MARK: - FetchSink

    func received(_ head: ResponseHead, framing: BodyFraming) {
        isAnswered = true
        wake()
        sink?.received(head, framing: framing)
    }

    func finished(trailers: Fields) {
        let sink = sink
        self.sink = nil
        sink?.finished(trailers: trailers)
    }

    func failed(_ error: FetchError) {
        guard !isAnswered else { return end(error) }
        handle = nil
        failure = error
        wake()
    }
}

@available(*, unavailable) extension ChallengedFetch: Sendable {}
