// The plan of a request: the one builder from what a service, an endpoint or forward mode says, with caching, mapping, the shape
// of what is sent, and the check by an OpenAPI document.

import Configuration
import Content
import Contracts
import DemoMode
import DownloadCore
import HTTPCaching
import Mapping
import Matching
import Policies
import ServiceCore
import Trees
import Upstream

/// Which route a plan is for.
struct RouteLabel {
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
    /// The labels that latencies are learned of.
    let learned: Set<String>

    /// As learned latencies call it.
    var name: String { endpoint.map { RoutePlan.label(service, $0) } ?? service }

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
        _ label: RouteLabel,
        _ latencies: LearnedLatencies,
        _ files: AnswerFiles,
        _ seeds: inout SeedTable
    ) throws(PlanError) -> RequestPlan {
        let cache = settings.cache
        var plan = RequestPlan(
            policy: policy(cache, targetedFields: label.targetedFields, success: settings.success),
            phases: try seeds.phases(cache, expect: settings.expect, types: settings.types),
            recordings: seeds.recordings(settings.recording, label),
            mapping: mapping(settings.mapping, label.owner),
            errorMapping: errorMapping(settings.errorMapping, service: label.service, endpoint: label.endpoint)
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
        plan.sources = settings.recording.from
        plan.faults = try faults(settings.faults, at: label.name, latencies, files)
        plan.learners = learners(label, latencies)
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

extension RoutePlan {
    static func policy(
        _ cache: CacheConfiguration,
        targetedFields: [String] = ["CDN-Cache-Control"],
        success: StatusSet? = nil
    ) -> CachePolicy {
        var policy = CachePolicy(
            mode: cache.mode,
            ttl: cache.ttl,
            ttlByStatus: cache.ttlByStatus,
            overrideOrigin: cache.overrideOrigin,
            revalidate: cache.revalidate,
            staleIfError: cache.staleIfError,
            staleWhileRevalidate: cache.staleWhileRevalidate,
            maxVariants: cache.maxVariants,
            targetedFields: targetedFields,
            memory: cache.memory,
            disk: cache.disk,
            compare: cache.compare,
            checkPause: cache.checkPause,
            gone: cache.gone,
            minLength: Int64(cache.minLength),
            setCookie: cache.setCookie,
            cookies: cache.cookies
        )
        policy.success = success
        policy.otherVariant = cache.otherVariant
        return policy
    }

    static func key(_ cache: CacheConfiguration) -> KeyRules {
        KeyRules(ignoreQuery: cache.ignoreQuery, fields: cache.keyFields)
    }

    /// Inherited by a service of another mode, POST means nothing.
    static func storesPost(_ cache: CacheConfiguration) -> Bool {
        cache.mode == .library && cache.methods.contains(.post)
    }
}

extension RoutePlan {
    static func mapping(_ configuration: MappingConfiguration?, _ owner: String) -> ResponseMapping? {
        configuration.map { ResponseMapping($0.plan, buffer: $0.buffer, owner: owner) }
    }

    static func errorMapping(
        _ configuration: MappingConfiguration?,
        service: String,
        endpoint: String? = nil
    ) -> ErrorMapping? {
        configuration.map { ErrorMapping($0.plan, buffer: $0.buffer, service: service, endpoint: endpoint) }
    }

    /// The answer file as clients get it.
    /// - Throws: that it cannot be mapped, which is a mistake in the file or in the mapping.
    static func mapped(_ file: DemoFile, _ mapping: ResponseMapping?) throws(PlanError) -> DemoFile {
        guard let mapping else { return file }
        let made: Result<[UInt8], MappingFailure> = file.bytes.withUnsafeBytes { bytes in
            do throws(MappingFailure) {
                return .success(try mapping.plan.map(bytes, limit: max(mapping.buffer, bytes.count)))
            } catch {
                return .failure(error)
            }
        }
        switch made {
        case .success(let bytes):
            let (path, type) = (file.path, "application/json")
            return DemoFile(path: path, bytes: bytes, contentType: type, modifiedAt: file.modifiedAt)
        case .failure(let failure): throw .mapping(file: file.path, mapping.message(failure))
        }
    }
}

extension RoutePlan {
    /// Nil for an endpoint that passes its requests on as they are. Reads the files of multipart contents.
    /// - Throws: `PlanError` naming a file that cannot be read.
    static func shape(_ endpoint: EndpointConfiguration) throws(PlanError) -> RequestShape? {
        guard let request = endpoint.request else { return nil }
        return RequestShape(
            to: request.to,
            parameters: request.params.map { DefaultParameter($0.name, $0.value) },
            placement: request.placement,
            style: request.style,
            body: try request.body.map { body throws(PlanError) in try shape(body) },
            pattern: PathPattern(endpoint.path)
        )
    }

    private static func shape(_ body: BodyConfiguration) throws(PlanError) -> BodyShape {
        BodyShape(
            encoding: body.encode,
            defaults: body.defaults,
            stripsNulls: body.stripNulls,
            names: body.keys,
            dates: body.dateForm.map { DateRule(members: body.dates, form: $0) },
            data: body.data,
            limit: body.max,
            upload: body.upload.map { UploadPart(name: $0.name, filename: $0.filename, type: $0.type) },
            files: try body.files.map { part throws(PlanError) in
                let file = try load(part.path)
                return FilePart(
                    name: part.name,
                    filename: part.filename,
                    type: part.type ?? file.contentType,
                    bytes: file.bytes
                )
            }
        )
    }
}

/// Checks requests by a document.
private struct DocumentExaminer: RequestExaminer {
    let check: RequestCheck

    func needsContent(method: String, path: String) -> Bool { check.needsContent(method: method, path: path) }

    func problems(_ request: RequestParts) -> [String] { check.violations(request).map(\.description) }
}

extension RoutePlan {
    /// Reads the document of a service.
    static func examination(
        _ document: OpenAPIConfiguration?,
        _ files: AnswerFiles
    ) throws(PlanError) -> RequestExamination? {
        guard let document else { return nil }
        let file = try files.load(document.file)
        // Its name is enough for whoever sends requests; the path is the daemon's.
        let name = document.file.split(separator: "/").last.map(String.init) ?? document.file
        let check: RequestCheck
        do throws(DocumentError) { check = try RequestCheck(file.bytes, file: name) } catch {
            throw .document(
                "\(document.file) has changed, and is no document that requests can be checked by: \(error)"
            )
        }
        return RequestExamination(
            DocumentExaminer(check: check),
            document: name,
            refuses: document.validate == .refuse,
            contentLimit: document.bodyLimit
        )
    }
}
