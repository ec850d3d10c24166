// The demo answers and faults of a configuration as plans: files, texts, templates and collections are read, and rules are
// compiled.

import Configuration
import Content
import DemoMode
import HTTPCaching
import HTTPWire
import Policies
import ServiceCore
import Synchronization
import Trees

extension RoutePlan {
    /// What an endpoint or a service plays; nil where its demo mode is off.
    /// - Throws: that a file cannot be read or mapped.
    static func demo(
        _ demo: DemoConfiguration,
        name: String,
        _ request: RequestPlan,
        _ sources: DemoSources
    ) throws(PlanError) -> DemoPlan? {
        guard demo.enabled else { return nil }
        var rules: [DemoRule] = []
        for rule in demo.rules { rules.append(try self.rule(rule, of: name, request, sources)) }
        if demo.hasOwnAnswer { rules.append(try rule(demo.answer, of: name, request, sources)) }
        guard !rules.isEmpty else { return nil }
        return DemoPlan(
            name: name,
            seed: demo.answer.randomSeed,
            rules: rules,
            unmatched: demo.unmatched,
            bodyLimit: demo.bodyLimit,
            overrides: demo.overrides
        )
    }

    private static func rule(
        _ rule: DemoRuleConfiguration,
        of endpoint: String,
        _ request: RequestPlan,
        _ sources: DemoSources
    ) throws(PlanError) -> DemoRule {
        let name = DemoRule.name(endpoint, rule.name)
        return DemoRule(
            endpoint: endpoint,
            label: rule.name,
            condition: rule.condition,
            gate: rule.gate,
            counting: rule.counting,
            seed: rule.randomSeed,
            latency: sources.latencies.known(rule.latency, at: sources.label),
            answer: try answer(rule.answer, rule.headers, of: name, request, sources),
            choice: try choice(rule, of: name, request, sources),
            failure: try failure(rule, of: name, sources),
            misbehaviours: rule.misbehaviours
        )
    }

    private static func choice(
        _ rule: DemoRuleConfiguration,
        of name: String,
        _ request: RequestPlan,
        _ sources: DemoSources
    ) throws(PlanError) -> DemoChoice {
        switch rule.choice {
        case .one: return .one
        case .weighted(let answers):
            var weighted: [(share: Double, answer: DemoAnswer)] = []
            for one in answers {
                weighted.append((one.share, try answer(one.answer, rule.headers, of: name, request, sources)))
            }
            return .weighted(weighted)
        case .sequence(let answers, let after):
            var sequence: [DemoAnswer] = []
            for one in answers { sequence.append(try answer(one, rule.headers, of: name, request, sources)) }
            return .sequence(sequence, after: after)
        }
    }

    private static func failure(
        _ rule: DemoRuleConfiguration,
        of name: String,
        _ sources: DemoSources
    ) throws(PlanError) -> DemoFailure? {
        guard let failure = rule.failure else { return nil }
        let answer = try answer(failure.answer, rule.headers, of: name, nil, sources)
        return DemoFailure(chance: failure.chance, answer: answer)
    }

    /// - Parameters:
    ///   - name: of the rule.
    ///   - request: whose mapping shapes a success; nil for a failure.
    private static func answer(
        _ answer: DemoAnswerConfiguration,
        _ headers: [HeaderValue],
        of name: String,
        _ request: RequestPlan?,
        _ sources: DemoSources
    ) throws(PlanError) -> DemoAnswer {
        let own = Set(answer.headers.map { $0.name.lowercased() })
        let headers = headers.filter { !own.contains($0.name.lowercased()) } + answer.headers
        let fields = Fields(headers.map { ($0.name, $0.value) })
        var content = try sources.content(answer, of: name, fields)
        if case .file(let file) = content, let request, 200..<300 ~= answer.status,
            request.policy.isSuccess(answer.status)
        {
            content = .file(try mapped(file, request.mapping))
        }
        return DemoAnswer(status: answer.status, content: content, fields: fields)
    }

    static func load(_ path: String) throws(PlanError) -> DemoFile {
        do throws(DemoFileError) { return try DemoFile.load(path: path) } catch { throw .demo(error) }
    }
}

/// The files of one plan, each read once.
///
/// Sendable: what it has read is under a mutex.
package final class AnswerFiles: Sendable {
    private struct State {
        var read: [String: DemoFile] = [:]
        var troubles: [String] = []
    }

    /// What the files were before; nil: one that cannot be read is an error.
    private let last: [String: DemoFile]?
    private let state = Mutex(State())

    /// - Parameter last: of a plan whose files take the place of those that cannot be read now.
    package init(last: AnswerFiles? = nil) { self.last = last?.state.withLock { $0.read } }

    /// The files that could not be read and stay what they were, in words.
    package var troubles: [String] { state.withLock { $0.troubles } }

    /// Takes over what another plan has read and this one has not: services that stayed as they were have such files.
    package func keep(_ others: AnswerFiles) {
        let read = others.state.withLock { $0.read }
        state.withLock { $0.read.merge(read) { own, _ in own } }
    }

    /// Blocks.
    func load(_ path: String) throws(PlanError) -> DemoFile {
        if let known = state.withLock({ $0.read[path] }) { return known }
        do throws(PlanError) {
            let file = try RoutePlan.load(path)
            state.withLock { $0.read[path] = file }
            return file
        } catch {
            guard let before = last?[path] else { throw error }
            state.withLock { state in
                state.read[path] = before
                state.troubles.append("\(error)")
            }
            return before
        }
    }
}

/// What the demo answers of one service are made of.
struct DemoSources {
    let files: AnswerFiles
    let state: DemoState
    let latencies: LearnedLatencies
    /// What learned latencies call the service, or the endpoint that is being made.
    var label: String

    /// - Parameters:
    ///   - name: of the rule.
    ///   - fields: of the answer; its Content-Type says how values of a template are escaped.
    func content(
        _ answer: DemoAnswerConfiguration,
        of name: String,
        _ fields: Fields
    ) throws(PlanError) -> DemoContent {
        if let path = answer.file {
            let file = try files.load(path)
            guard answer.isTemplate || DemoTemplate.isTemplate(path: path) else { return .file(file) }
            let type = mediaType(forPath: DemoTemplate.named(path))
            return try template(.text(String(decoding: file.bytes, as: UTF8.self)), fields, type, of: path)
        }
        if let collection = answer.collection { return try items(collection, of: name) }
        if let events = answer.events { return try self.events(events) }
        let origin = "the configuration of '\(name)'"
        switch answer.inline {
        case nil: return .none
        case .text(let text)?:
            let type = "text/plain; charset=utf-8"
            if answer.isTemplate { return try template(.text(text), fields, type, of: origin) }
            return .file(DemoFile(path: origin, bytes: Array(text.utf8), contentType: type))
        case .json(let tree)?:
            let type = "application/json"
            if answer.isTemplate { return try template(.json(tree), fields, type, of: origin) }
            return .file(DemoFile(path: origin, bytes: JSONWriter.bytes(tree), contentType: type))
        }
    }

    private func template(
        _ source: DemoTemplate.Source,
        _ fields: Fields,
        _ type: String,
        of origin: String
    ) throws(PlanError) -> DemoContent {
        let escaping = TemplateEscaping(contentType: fields.first(.contentType) ?? type)
        do throws(TemplateError) {
            return .template(try DemoTemplate(source, escaping: escaping), contentType: type)
        } catch {
            throw .template(origin, error)
        }
    }

    private func events(_ configuration: EventsConfiguration) throws(PlanError) -> DemoContent {
        var list = configuration.list
        if let file = configuration.file { list = DemoEvents.events(in: try files.load(file).bytes) }
        let events = DemoEvents(list, interval: configuration.interval, rounds: configuration.rounds)
        // A file may have lost its events since it was checked.
        return events.map { .events($0) } ?? .none
    }

    private func items(_ collection: CollectionConfiguration, of name: String) throws(PlanError) -> DemoContent {
        let file = try files.load(collection.file)
        do throws(CollectionFileError) {
            return .collection(
                try state.collections.collection(
                    of: name,
                    file,
                    idName: collection.id,
                    newIDs: collection.newIDs
                )
            )
        } catch {
            throw .collection(collection.file, error)
        }
    }
}

extension RoutePlan {
    /// Reads the bodies of the rules.
    /// - Parameter label: the name of the service or endpoint that has them.
    static func faults(
        _ rules: [FaultPolicy],
        at label: String,
        _ latencies: LearnedLatencies,
        _ files: AnswerFiles
    ) throws(PlanError) -> FaultPlan? {
        var compiled: [FaultPlan.Rule] = []
        for rule in rules {
            var known = rule
            known.latency = rule.latency.map { latencies.known($0, at: label) }
            compiled.append(FaultPlan.Rule(known, file: try rule.file.map(files.load)))
        }
        return FaultPlan(compiled)
    }
}
