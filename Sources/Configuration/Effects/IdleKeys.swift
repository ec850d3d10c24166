// The table of keys that do nothing without another one.

import HTTPCaching
import Policies

extension IdleKey {
    /// The keys of the daemon itself.
    static let ofDaemon: [IdleKey] = [
        IdleKey(
            KeyTable.forward.keys.map(\.name).filter { $0 != "enabled" }.map { "forward.\($0)" },
            without: "forward",
            remedy: "write enabled: true"
        ) { scope, _ in
            scope.daemon.forward.enabled ? nil : "'forward.enabled' is false"
        },
        IdleKey(["journal.bodies", "journal.redact"], without: "size", remedy: "set 'size'") { scope, _ in
            scope.daemon.journal.size == nil ? "'journal.size' is off" : nil
        },
        IdleKey(["log.format"], without: "access", remedy: "name where it goes") { scope, _ in
            let log = scope.daemon.log
            return log.access == .off && [.combined, .text].contains(log.format)
                ? "it is of the access log, and 'log.access' is off" : nil
        },
        IdleKey(["demo.enabled"], without: "services", remedy: "give a service 'demo.files' or rules") { scope, _ in
            scope.daemon.services.contains(where: \.hasDemoAnswers) ? nil : "no service has demo answers"
        },
        IdleKey(["tracing.sample"], without: "otlp", remedy: "name a collector") { scope, _ in
            scope.daemon.tracing.collector == nil ? "'tracing.otlp' is not set" : nil
        },
        IdleKey(
            ["cache.memory.size"],
            without: "memory",
            says: "keeps nothing in memory",
            remedy: "write a size such as 256MiB, or defaults: { cache: { memory: false } } if that is meant"
        ) { scope, _ in
            scope.daemon.cache.memory.size == 0 ? "it is 0B" : nil
        },
        IdleKey(["groups[].at_start"], without: "every", remedy: "set 'every'") { _, group in
            group.entry("every") == nil ? "'groups[].every' is not set" : nil
        },
    ]

    static let ofForward: [IdleKey] =
        ofCalls + ofFetches + ofFaults + [
            IdleKey(["intercept.except", "intercept.on_distrust"], without: "hosts", remedy: "name hosts") { scope, _ in
                scope.daemon.forward.interception.isOn ? nil : "'forward.intercept.hosts' is not set"
            }
        ]

    /// The rules of a fault profile, which is for any section.
    static let ofProfiles = statusOfFaults

    /// The keys of services: those of their endpoints, and those that endpoints do not inherit.
    static let ofServices: [IdleKey] =
        ofRoutes + ofCalls + [
            IdleKey(["park.calls", "park.size"], without: "time", remedy: "set 'time'") { scope, _ in
                scope.service?.park == nil ? "'park.time' is none" : nil
            },
            IdleKey(
                ["cors.expose", "cors.credentials", "cors.private_network"],
                without: "origins",
                remedy: "name origins"
            ) { scope, _ in
                scope.service?.cors.origins.isEmpty == true ? "'cors.origins' is empty" : nil
            },
            IdleKey(
                ["tls.verify", "tls.ca", "tls.client_cert", "tls.client_key"],
                without: "base_url",
                remedy: "write https://"
            ) { scope, _ in
                scope.service?.baseURL?.isSecure == false ? "'base_url' is not asked by https" : nil
            },
            IdleKey(["tls.ca"], without: "verify", remedy: "write verify: true") { _, tls in
                tls.bool("verify") ? nil : "'tls.verify' is false"
            },
        ]

    /// The keys of services and endpoints.
    static let ofRoutes: [IdleKey] =
        ofFetches + ofFaults + ofDemo + [
            IdleKey(["redirects.follow", "redirects.allow"], without: "mode", remedy: "write mode: follow") {
                scope,
                _ in
                scope.settings?.redirects.mode == .pass ? "'redirects.mode' is pass" : nil
            },
            IdleKey(["response.map_buffer"], without: "map", remedy: "set one of them") { scope, _ in
                scope.settings?.mapping == nil && scope.settings?.errorMapping == nil
                    ? "neither 'response.map' nor 'error.map' is set" : nil
            },
            IdleKey(
                reuse.map { "cache.\($0)" },
                without: "source",
                remedy: "write source: live"
            ) { scope, _ in
                guard let source = scope.settings?.recording.source, source != .live else { return nil }
                return "'source' is \(source.rawValue), and such a route stores nothing"
            },
            IdleKey(["params_in"], without: "params", remedy: "set 'params'") { _, endpoint in
                endpoint.map("params").isEmpty ? "'params' is not set" : nil
            },
            IdleKey(["auth.mode"], without: "mode", remedy: "give the service credentials") { scope, _ in
                scope.service?.auth == nil ? "the service has no 'auth'" : nil
            },
        ]

    /// What is in front of an origin: of services and forward mode.
    private static let ofCalls: [IdleKey] = [
        IdleKey(["max_queue.length", "max_queue.wait"], without: "max_concurrent", remedy: "set it") { scope, _ in
            scope.reader.int("max_concurrent") == nil ? "'\(scope.label)max_concurrent' is none" : nil
        },
        IdleKey(["breaker.window", "breaker.open"], without: "failures", remedy: "set 'failures'") { scope, breaker in
            breaker.int("failures") == nil ? "'\(scope.label)breaker.failures' is none" : nil
        },
    ]

    /// Retries and the cache: of services, endpoints and forward mode.
    private static let ofFetches: [IdleKey] = [
        IdleKey(
            KeyTable.retry.keys.map(\.name).filter { $0 != "count" }.map { "retry.\($0)" },
            without: "count",
            remedy: "set 'count'"
        ) { scope, retry in
            retry.int("count") == 0 ? "'\(scope.label)retry.count' is 0" : nil
        },
        IdleKey(["cache.seed_mode", "cache.seed_layout"], without: "seed_dir", remedy: "name a folder") {
            scope,
            cache in
            cache.entry("seed_dir") == nil ? "'\(scope.label)cache.seed_dir' is not set" : nil
        },
        IdleKey(["cache.memory"], without: "disk", says: "leaves no tier", remedy: "write mode: none") { scope, cache in
            guard !cache.bool("memory"), stores(scope, cache), cache.entry("seed_dir") == nil else { return nil }
            if !cache.bool("disk") { return "'\(scope.label)cache.disk' is false" }
            return scope.daemon.cache.disk == nil ? "the daemon has no disk tier" : nil
        },
        IdleKey(["cache.override_origin"], without: "ttl", remedy: "set 'ttl' or 'ttl_by_status'") { _, cache in
            let isGiven = cache.seconds("ttl") != nil || !cache.map("ttl_by_status").isEmpty || isLibrary(cache)
            return isGiven || !cache.bool("override_origin") ? nil : "there is no lifetime to use instead"
        },
        IdleKey(["cache.compare"], without: "mode", remedy: "write mode: library") { scope, cache in
            isLibrary(cache) ? nil : "'\(scope.label)cache.mode' is not library"
        },
        IdleKey(reuse.map { "cache.\($0)" }, without: "mode", remedy: "choose another mode") { scope, cache in
            cache.text("mode") == CacheMode.none.rawValue ? "'\(scope.label)cache.mode' is none" : nil
        },
        IdleKey(
            ["ttl", "ttl_by_status", "compare", "check_pause", "stale_while_revalidate"].map { "cache.\($0)" },
            without: "revalidate",
            remedy: "choose another 'revalidate'"
        ) { scope, cache in
            isLibrary(cache) ? neverStale(scope, cache) : nil
        },
        // A reload may still find that a resource is gone, so that 'evict' has an effect.
        IdleKey(["cache.gone"], without: "revalidate", remedy: "choose another 'revalidate'") { scope, cache in
            let isIdle = isLibrary(cache) && cache.text("gone") == MissingRule.useStored.rawValue
            return isIdle ? neverStale(scope, cache) : nil
        },
    ]

    private static let ofFaults: [IdleKey] =
        statusOfFaults + [
            IdleKey(["faults[].at"], without: "demo", remedy: "add demo answers, or other points") { scope, fault in
                let points = fault.texts("at")
                let isIdle = !points.isEmpty && points.allSatisfy { $0 == FaultPoint.demo.rawValue }
                return isIdle && scope.settings?.demo.hasAnswer != true ? "there are no demo answers" : nil
            }
        ]

    private static let statusOfFaults: [IdleKey] = [
        IdleKey(["faults[].retry_after", "faults[].file"], without: "status", remedy: "set 'status'") { _, fault in
            fault.entry("status") == nil ? "'status' is not set" : nil
        }
    ]

    private static let ofDemo: [IdleKey] = [
        IdleKey(
            ["demo.", "demo.rules[]."].flatMap { demo in
                KeyTable.failure.keys.map(\.name).filter { $0 != "chance" }.map { "\(demo)failure.\($0)" }
            },
            without: "chance",
            remedy: "set 'chance'"
        ) { _, failure in
            failure.share("chance") == 0 ? "'failure.chance' is 0%" : nil
        },
        IdleKey(["demo.after", "demo.rules[].after"], without: "sequence", remedy: "write a 'sequence'") { _, demo in
            demo.entry("sequence") == nil ? "it says what follows a 'sequence'" : nil
        },
        IdleKey(
            ["demo.rules[].state.is"],
            without: "scenario",
            says: "is never reached",
            remedy: "add a rule with that 'then', correct the name"
        ) { scope, step in
            guard let scenario = step.text("scenario"), let state = step.text("is") else { return nil }
            if scope.states[scenario]?.contains(state) ?? true { return nil }
            return "no rules of the service lead '\(scenario)' to '\(state)'"
        },
    ]

    /// The keys of `cache` that say how long and how stored responses are used.
    private static let reuse = [
        "ttl", "ttl_by_status", "override_origin", "revalidate", "check_pause", "gone", "stale_while_revalidate",
        "stale_if_error", "other_variant", "max_variants", "min_length",
    ]

    private static func isLibrary(_ cache: SectionReader) -> Bool { cache.text("mode") == CacheMode.library.rawValue }

    private static func neverStale(_ scope: KeyScope, _ cache: SectionReader) -> String? {
        cache.text("revalidate") == ValidationMethod.never.rawValue
            ? "'\(scope.label)cache.revalidate' is never, so that nothing becomes stale" : nil
    }

    /// Whether responses are stored unless no tier takes them.
    private static func stores(_ scope: KeyScope, _ cache: SectionReader) -> Bool {
        cache.text("mode") != CacheMode.none.rawValue && scope.settings?.recording.source ?? .live == .live
    }
}
