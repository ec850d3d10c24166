// The sources between a question of a program and the origin that answers it, as one list from the program's side to the
// origin's.

import Content
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import Policies
import ServiceCore
import Upstream

extension DownloadEngine {
    /// The source of a question's fetches.
    /// - Parameters:
    ///   - policy: of the question, which also says what redirects let be stored.
    ///   - meter: told what of the content is sent; nil: nobody is.
    ///   - onRefusal: told where the budget of retries had none left for it.
    /// - Returns: nil where the engine has ended.
    @inline(never)
    func source(
        of question: DownloadRequest,
        _ policy: CachePolicy,
        _ meter: UploadMeter? = nil,
        _ onRefusal: (() -> Void)? = nil,
        on loop: isolated EventLoop
    ) -> (any FetchSource)? {
        guard let client = client(on: loop) else { return nil }
        return DownloadSources(self, client, question, policy, meter, onRefusal).source(behind: .client)
    }
}

/// The sources of one question: a value that is there while they are made. Loop-bound, like every source.
private struct DownloadSources {
    private let origins: AskedOrigins
    private let policy: CachePolicy
    private let meter: UploadMeter?
    private let onRefusal: (() -> Void)?

    init(
        _ engine: DownloadEngine,
        _ client: UpstreamClient,
        _ question: DownloadRequest,
        _ policy: CachePolicy,
        _ meter: UploadMeter?,
        _ onRefusal: (() -> Void)?
    ) {
        origins = AskedOrigins(engine: engine, client: client, question: question)
        (self.policy, self.meter, self.onRefusal) = (policy, meter, onRefusal)
    }

    private var engine: DownloadEngine { origins.engine }
    private var question: DownloadRequest { origins.question }
    private var configuration: DownloadConfiguration { engine.configuration }

    /// The source behind a stage. A request passes the list from top to bottom, and its answer from bottom to top.
    func source(behind stage: SourceStage) -> any FetchSource {
        // A program hears of its content once, and of a new beginning with each attempt.
        if stage < .upload, let meter { return MeteredSource(source(behind: .upload), meter) }
        // Only what is stored may answer where nobody is to be asked.
        if question.isStoredOnly { return UnaskedSource() }
        // A retry may bring an answer that the stages behind it accept.
        let retry = question.options.retry ?? configuration.retry
        if stage < .attempts, retry.count > 0 { return attempts(at: source(behind: .attempts), retry.bounded) }
        // An answer of another media type than those that are accepted is a failure, which a retry may repeat.
        if stage < .type, let types = question.types {
            return ExpectedTypeSource(
                source(behind: .type),
                types,
                policy,
                owner: question.origin.root + question.path.prefix { $0 != "?" },
                setting: "acceptedContentTypes"
            )
        }
        // Redirects lead from one origin to another, and the answer of the last one is that of the question.
        let limit = question.options.maximumRedirects ?? configuration.maximumRedirects
        if stage < .redirects, limit > 0 { return following(source(behind: .redirects), limit: limit) }
        // Credentials and cookies are for the origin that was asked: no other one behind a redirect gets them.
        if stage < .credentials, let table = engine.identities.table, !question.fields.contains(.authorization),
            !question.scope.isWithin(table, question.origin.root)
        {
            return CredentialedSource(
                source(behind: .credentials),
                question.origin,
                table,
                expected: question.identity?.account,
                within: question.scope,
                policy
            )
        }
        if stage < .cookies, let jar = engine.identities.jar {
            return CookieSource(
                source(behind: .cookies),
                question.origin,
                jar,
                engine.core.clock,
                expected: question.identity?.cookies,
                isOwn: question.fields.contains(.cookie),
                policy
            )
        }
        // At the end stands the origin, about whose certificate the program may be asked.
        return origins.asking(question.origin, .any)
    }

    private func attempts(at source: any FetchSource, _ retry: RetryPolicy) -> RetryingSource {
        let (core, resilience) = (engine.core, engine.admission.resilience)
        let guarded = configuration.breaker == nil ? nil : question.origin.root
        return RetryingSource(
            source,
            retry,
            expect: question.options.expectation,
            resilience: resilience,
            clock: core.clock,
            mayAsk: { !core.isOffline && !(guarded.map(resilience.leavesAlone) ?? false) },
            onRefusal: onRefusal
        )
    }

    private func following(_ source: any FetchSource, limit: Int) -> RedirectingSource {
        let (first, hosts) = (question.origin, configuration.redirectHosts)
        return RedirectingSource(
            source,
            first,
            RedirectRules(limit: limit, limitName: "maximumRedirects", policy: policy, temporary: .checked),
            clock: engine.core.clock,
            elsewhere: { [origins] (target: RedirectTarget) throws(FetchError) in
                origins.asking(target.origin, try AskedOrigins.rules(for: target, from: first, hosts))
            }
        )
    }
}

@available(*, unavailable) extension DownloadSources: Sendable {}

/// The origins that a question leads to; what redirects keep of it. Loop-bound.
private struct AskedOrigins {
    let engine: DownloadEngine
    let client: UpstreamClient
    let question: DownloadRequest

    /// The source of requests to one origin, about which the program is asked where it wants to be.
    func asking(_ origin: OriginAddress, _ rules: TargetRules) -> any FetchSource {
        let service = engine.service
        guard let decisions = engine.decisions, origin.scheme == "https" else {
            return asking(origin, rules, service)
        }
        return ChallengedSource(origin.root, service.tls, decisions, within: question.scope) { [self] tls in
            let settings = tls == service.tls ? service : DownloadEngine.plan(engine.configuration, tls)
            return asking(origin, rules, settings)
        }
    }

    private func asking(_ origin: OriginAddress, _ rules: TargetRules, _ service: ServicePlan) -> OriginSource {
        OriginSource(
            service: service,
            origin: origin,
            plan: service.request,
            runtime: engine.admission,
            client: client,
            target: rules,
            timeouts: question.options.timeouts?.upstream
        )
    }

    /// The addresses that the target of a redirect may have.
    /// - Throws: the refusal of a host that is not named.
    static func rules(
        for target: RedirectTarget,
        from first: OriginAddress,
        _ hosts: [String]?
    ) throws(FetchError) -> TargetRules {
        guard let hosts, !target.isSameOrigin(as: first) else { return .any }
        let origin = target.origin
        if let rules = TargetPattern.rules(hosts, origin.host, origin.effectivePort) { return rules }
        throw .redirect(
            "a redirect of \(first.root) leads to \(origin.root), which redirectHosts does not name: add the host there"
        )
    }
}

@available(*, unavailable) extension AskedOrigins: Sendable {}

/// A source without answers, which asks nobody. Loop-bound, like every source.
final class UnaskedSource: FetchSource {
    var opensSockets: Bool { false }

    func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle {
        throw .onlyIfCached("only what is stored was wanted, and nothing that is stored may be used")
    }
}

@available(*, unavailable) extension UnaskedSource: Sendable {}
