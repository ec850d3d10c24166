// The one builder of a request's plan, from what a service, an endpoint or forward mode says.

import Configuration
import DemoMode
import DownloadCore
import HTTPCaching
import Policies
import ServiceCore
import Upstream

/// Which route a plan is for.
struct RoutePlace {
    /// Or forward mode, as learned latencies call it.
    let service: String
    /// nil: the requests that no endpoint names.
    var endpoint: String?
    /// Query items that the service adds.
    var secrets = SecretQuery()
    /// Names whose values are written, although they look like secrets.
    var notSecret: [String] = []
    /// The fields besides Cache-Control that direct a cache such as this one.
    var targetedFields: [String] = []
    /// The places that latencies are learned of.
    let learned: Set<String>

    /// As learned latencies call it.
    var name: String { endpoint.map { RoutePlan.place(service, $0) } ?? service }

    /// As messages call it.
    var owner: String { (endpoint.map { "endpoint '\($0)' of " } ?? "") + "service '\(service)'" }
}

extension RouteSettings {
    /// Those of forward mode.
    init(_ forward: ForwardConfiguration) {
        self.init()
        timeout = Timeouts(tunnel: forward.tunnelTimeout)
        cache = forward.cache
        policies.retry = forward.retry
        faults = forward.faults
    }
}

extension RoutePlan {
    /// Reads the files and folders that the settings name.
    static func request(
        _ settings: RouteSettings,
        _ place: RoutePlace,
        _ latencies: LearnedLatencies,
        _ files: AnswerFiles,
        _ seeds: inout SeedTable
    ) throws(PlanError) -> RequestPlan {
        let cache = settings.cache
        var plan = RequestPlan(
            policy: policy(cache, targetedFields: place.targetedFields, success: settings.success),
            phases: try seeds.phases(cache, expect: settings.expect, types: settings.types),
            recordings: seeds.recordings(settings.recording, place),
            mapping: mapping(settings.mapping, place.owner),
            errorMapping: errorMapping(settings.errorMapping, service: place.service, endpoint: place.endpoint)
        )
        plan.policies = settings.policies
        plan.rules = rules(settings.headers)
        plan.query = query(settings.query)
        plan.timeouts = settings.timeout
        plan.collapse = cache.collapse
        plan.key = key(cache)
        plan.storesGet = cache.methods.contains(.get)
        plan.storesPost = storesPost(cache)
        plan.seed = try seeds.folder(cache.seed)
        plan.onClientAbort = cache.onClientAbort
        plan.rungs = settings.recording.from
        plan.faults = try faults(settings.faults, at: place.name, latencies, files)
        plan.learners = learners(place, latencies)
        return plan
    }

    private static func rules(_ headers: HeaderRules) -> FieldRules {
        FieldRules(
            remove: headers.remove,
            set: headers.set.map { ($0.name, $0.value) },
            add: headers.add.map { ($0.name, $0.value) },
            dropsUnderscores: headers.underscore == .drop
        )
    }

    private static func query(_ rules: [QueryRule]) -> QueryDefaults {
        QueryDefaults(
            rules.filter { !$0.isSecret }.map { ($0.name, $0.values) },
            secrets: rules.filter(\.isSecret).map { ($0.name, $0.values) }
        )
    }
}
