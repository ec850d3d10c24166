// Whom a download asks: the origin, with what stands between it and the download core.

import Content
import DownloadCore
import EventLoop
import FoundationEssentials
import HTTPCaching
import HTTPWire
import Policies
import ServiceCore
import Upstream

extension DownloadEngine {
    /// The source of a question: attempts around the judgement of what comes, around redirects, around the origins.
    /// - Parameters:
    ///   - policy: of the question, which also says what redirects let be stored.
    ///   - onRefusal: told where the budget of retries had none left for it.
    /// - Returns: nil where the engine has ended.
    func source(
        for question: DownloadRequest,
        _ policy: CachePolicy,
        onRefusal: (() -> Void)? = nil,
        on loop: isolated EventLoop
    ) -> (any FetchSource)? {
        guard let client = client(on: loop) else { return nil }
        if question.options.onlyStored { return UnaskedSource() }
        var source = redirecting(question, policy, client)
        if let types = question.types {
            let owner = question.origin.root + question.path.prefix { $0 != "?" }
            source = ExpectedTypeSource(source, types, policy, owner: owner, setting: "acceptedContentTypes")
        }
        let retry = question.options.retry ?? configuration.retry
        return retry.count > 0 ? retrying(source, retry, question, onRefusal) : source
    }

    private func redirecting(
        _ question: DownloadRequest,
        _ policy: CachePolicy,
        _ client: UpstreamClient
    ) -> any FetchSource {
        let first = question.origin
        let timeouts = question.options.timeouts?.upstream
        let source = { [self] (origin: OriginAddress, rules: TargetRules) -> any FetchSource in
            asking(origin, within: question.scope) { [admission] service in
                OriginSource(
                    service: service,
                    origin: origin,
                    plan: service.request,
                    runtime: admission,
                    client: client,
                    target: rules,
                    timeouts: timeouts
                )
            }
        }
        let asked = identified(source(first, .any), question, policy)
        let limit = question.options.maximumRedirects ?? configuration.maximumRedirects
        guard limit > 0 else { return asked }
        let rules = RedirectRules(limit: limit, limitName: "maximumRedirects", policy: policy, temporary: .checked)
        return RedirectingSource(
            asked,
            first,
            rules,
            clock: core.clock,
            elsewhere: { [hosts = configuration.redirectHosts] (target: RedirectTarget) throws(FetchError) in
                source(target.origin, try Self.rules(for: target, from: first, hosts))
            }
        )
    }

    /// The source of requests to the origin of a question, which gets what the manager adds to them.
    private func identified(
        _ source: any FetchSource,
        _ question: DownloadRequest,
        _ policy: CachePolicy
    ) -> any FetchSource {
        var source = source
        if let jar = identities.jar {
            source = CookieSource(
                source,
                question.origin,
                jar,
                core.clock,
                expected: question.identity?.cookies,
                isOwn: question.fields.contains(.cookie),
                policy
            )
        }
        guard let table = identities.table, !question.fields.contains(.authorization),
            !question.scope.isWithin(table, question.origin.root)
        else { return source }
        return CredentialedSource(
            source,
            question.origin,
            table,
            expected: question.identity?.account,
            within: question.scope,
            policy
        )
    }

    /// The source of requests to one origin, about which the program is asked where it wants to be.
    private func asking(
        _ origin: OriginAddress,
        within scope: AskingScope,
        _ source: @escaping (ServicePlan) -> OriginSource
    ) -> any FetchSource {
        guard let decisions, origin.scheme == "https" else { return source(service) }
        return ChallengedSource(origin.root, service.tls, decisions, within: scope) { [service, configuration] tls in
            source(tls == service.tls ? service : Self.plan(configuration, tls))
        }
    }

    /// The addresses that the target of a redirect may have.
    /// - Throws: the refusal of a host that is not named.
    private static func rules(
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

    private func retrying(
        _ source: any FetchSource,
        _ retry: DownloadConfiguration.Retry,
        _ question: DownloadRequest,
        _ onRefusal: (() -> Void)?
    ) -> any FetchSource {
        let guarded = configuration.breaker == nil ? nil : question.origin.root
        return RetryingSource(
            source,
            retry.policy,
            expect: question.options.expectation.content,
            resilience: admission.resilience,
            clock: core.clock,
            mayAsk: { [core, resilience = admission.resilience] in
                !core.isOffline && !(guarded.map(resilience.leavesAlone) ?? false)
            },
            shouldRetry: retry.shouldRetry.map { allows in
                { end, request, number in
                    guard let attempt = DownloadConfiguration.Retry.FailedAttempt(end, request, number) else {
                        return false
                    }
                    return allows(attempt)
                }
            },
            onRefusal: onRefusal
        )
    }
}

extension DownloadConfiguration.Retry.FailedAttempt {
    /// Nil for an end that no policy repeats.
    init?(_ end: AttemptEnd, _ request: FetchRequest, _ number: Int) {
        guard let cause = end.cause else { return nil }
        self.init(
            number: number,
            method: request.method.name,
            path: String(request.path.prefix { $0 != "?" }),
            cause: DownloadConfiguration.Retry.Cause(cause),
            status: end.status,
            detail: end.text
        )
    }
}
