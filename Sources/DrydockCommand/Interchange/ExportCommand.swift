// `drydock export`: writes demo answers and recordings of a configuration for other tools.

import ArgumentParser
import Configuration
import DemoMode
import FoundationEssentials
import Glibc
import Interchange
import Matching
import Policies
import ProxyServer
import ServiceCore
import Trees

struct ExportFile: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write demo answers and recordings into a file of another tool.",
        discussion: """
            Reads the configuration, its demo files and its recordings; no daemon is asked. What the other tool has nothing \
            for is told on standard error. Recordings have no credentials; those of demo rules are written as they stand.
            """
    )

    @Argument(help: "har, or wiremock for one document with mappings.")
    var format: ExportFormat
    @OptionGroup var option: ConfigurationOption
    @Option(help: "Only this service.")
    var service: String?
    @Option(
        help: ArgumentHelp("The file to write. Default: standard output.", valueName: "file"),
        completion: .file()
    )
    var to: String?
    @Flag(help: "Write over a file that is there already.")
    var force = false

    func run() throws {
        let configuration = try loadConfiguration(option.path())
        let names = configuration.services.map(\.name)
        if let service, !names.contains(service) {
            throw Failure(message: Problem.unknown(service: service, among: names).detail)
        }
        var source = ExportSource()
        for own in configuration.services where service == nil || own.name == service { try source.add(own) }
        guard !source.rules.isEmpty else {
            for note in source.notes { printError("\(note)") }
            throw Failure(message: "there is no demo answer and no recording to write")
        }
        let export = Export.write(source.rules, format, version: DrydockVersion.current)
        let text = String(decoding: JSONWriter.bytes(export.tree), as: UTF8.self) + "\n"
        for note in source.notes + export.notes { printError("\(note)") }
        guard let to else { return print(text, terminator: "") }
        guard force || !FileManager.default.fileExists(atPath: to) else {
            throw Failure(message: "\(to) is there already; name another file, or write over it with --force")
        }
        do { try Data(text.utf8).write(to: URL(filePath: to)) } catch {
            throw Failure(message: "\(to) cannot be written: \(error)")
        }
        print("\(export.count) answers in \(to)")
    }
}

extension ExportFormat: ExpressibleByArgument {}

// MARK: - What is exported

/// Collects the rules of services, in the order in which they answer.
struct ExportSource {
    private(set) var rules: [ExportedRule] = []
    private(set) var notes: [ExportNote] = []

    /// Endpoints come before their service, and endpoints with fewer parameters before others.
    mutating func add(_ service: ServiceConfiguration) throws {
        let addresses = Addresses(service)
        if service.match.host != nil {
            notes.append(ExportNote(service.name, .changed, "the file does not say that it answers for one host alone"))
        }
        let endpoints = service.endpoints.filter(\.demo.enabled)
            .sorted { ($0.path.freedom, $0.path.description) < ($1.path.freedom, $1.path.description) }
        for endpoint in endpoints {
            let template = endpoint.path.segments.map { segment -> ExportedRule.Segment in
                switch segment {
                case .literal(let text): .literal(text)
                case .parameter(let name): .parameter(name)
                case .rest: .rest
                }
            }
            let methods = endpoint.method == "GET" ? ["GET", "HEAD"] : [endpoint.method]
            let owner = "\(service.name)/\(endpoint.name)"
            try add(endpoint.demo, owner, addresses, template, [.method(methods)], hasFaults: !endpoint.faults.isEmpty)
        }
        if service.demo.enabled {
            try add(service.demo, service.name, addresses, nil, [], hasFaults: !service.faults.isEmpty)
        }
        let folders = [service.recording.folder] + service.endpoints.map(\.recording.folder)
        var seen: Set<String> = []
        var recorded: [ExportedRule] = []
        for folder in folders.compactMap(\.self) where seen.insert(folder).inserted {
            recorded += try recordings("\(folder)/\(service.name)", addresses)
        }
        // A recording is for its exact query, while a stub also matches requests with more items.
        rules += recorded.enumerated().sorted {
            ($1.element.queryItems, $0.offset) < ($0.element.queryItems, $1.offset)
        }
        .map(\.element)
    }

    /// The addresses at which a service answers, and of its origin.
    private struct Addresses {
        let service: String
        let baseURL: String
        let prefix: String

        init(_ service: ServiceConfiguration) {
            self.service = service.name
            prefix = service.match.prefix ?? ""
            if case .origin(let url)? = service.baseURL {
                baseURL = url.description
            } else {
                baseURL = "http://localhost:8080" + (prefix == "/" ? "" : prefix)
            }
        }
    }

    // MARK: - Demo answers

    private mutating func add(
        _ demo: DemoConfiguration,
        _ owner: String,
        _ addresses: Addresses,
        _ template: [ExportedRule.Segment]?,
        _ clauses: [RequestClause],
        hasFaults: Bool
    ) throws {
        if hasFaults { notes.append(ExportNote(owner, .changed, "its faults are not written")) }
        for rule in demo.rules + (demo.hasOwnAnswer ? [demo.answer] : []) {
            let name = rule.name.map { "\(owner)/\($0)" } ?? owner
            guard let answers = try answers(rule, name) else { continue }
            let own = rule.condition?.clauses ?? []
            let hasMethod = own.contains { if case .method = $0 { true } else { false } }
            var exported = ExportedRule(
                name: name,
                baseURL: addresses.baseURL,
                prefix: addresses.prefix,
                clauses: (hasMethod ? [] : clauses) + own,
                answers: answers
            )
            exported.template = template
            exported.step = rule.gate?.step.map {
                ExportedRule.Step(scenario: $0.scenario, state: $0.state, next: $0.next)
            }
            set(rule.latency, of: &exported)
            rules.append(exported)
            // The rules after an unconditional one never answer.
            if rule.isUnconditional { return }
        }
    }

    private mutating func set(_ latency: LatencyPolicy, of rule: inout ExportedRule) {
        if case .uniform(let range) = latency.shape {
            rule.latency = Int(range.lowerBound / 1_000_000)...Int(range.upperBound / 1_000_000)
            return
        }
        let median = Int(latency.quantile(0.5) / 1_000_000)
        rule.latency = median...median
        if case .lognormal(let median, let p99) = latency.shape, latency.max == nil {
            let sigma = log(Double(p99) / Double(median)) / 2.326348
            rule.lognormal = (Double(median) / 1e6, (sigma * 1e4).rounded() / 1e4)
        } else {
            notes.append(ExportNote(rule.name, .changed, "the median is written in place of its latencies"))
        }
    }

    /// The answers of a rule.
    /// - Returns: nil, with a note, for a rule that no file can express.
    private mutating func answers(_ rule: DemoRuleConfiguration, _ name: String) throws -> [ExportedAnswer]? {
        func leaveOut(_ reason: String) { notes.append(ExportNote(name, .leftOut, reason)) }
        if let gate = rule.gate, gate.outage != nil || !gate.turn.isEmpty {
            leaveOut("it is for some of several requests: the file has nothing for turns and outages")
            return nil
        }
        if rule.failure.map({ $0.chance > 0 }) == true {
            notes.append(ExportNote(name, .changed, "its failures are not written"))
        }
        let all: [DemoAnswerConfiguration]
        switch rule.choice {
        case .one: all = [rule.answer]
        case .sequence(let answers, let after):
            if after != .last {
                notes.append(ExportNote(name, .changed, "behind its end the sequence answers with the last one"))
            }
            all = answers
        case .weighted(let answers):
            notes.append(ExportNote(name, .changed, "of its answers by weight, the most frequent one is written"))
            all = answers.max { $0.share < $1.share }.map { [$0.answer] } ?? []
        }
        var result: [ExportedAnswer] = []
        for answer in all {
            if answer.isTemplate || answer.file.map(DemoTemplate.isTemplate(path:)) == true {
                leaveOut("its body is a template, which Drydock fills in for each request")
                return nil
            }
            if answer.collection != nil {
                leaveOut("it is a collection, which requests change")
                return nil
            }
            result.append(try exported(answer, of: rule))
        }
        return result
    }

    private func exported(_ answer: DemoAnswerConfiguration, of rule: DemoRuleConfiguration) throws -> ExportedAnswer {
        var content: [UInt8] = []
        var type: String?
        switch (answer.inline, answer.file) {
        case (.text(let text)?, _): (content, type) = (Array(text.utf8), "text/plain; charset=utf-8")
        case (.json(let tree)?, _): (content, type) = (JSONWriter.bytes(tree), "application/json")
        case (nil, let path?):
            content = try ImportFiles.read(path)
            type = mediaType(forPath: path)
        case (nil, nil): break
        }
        let own = Set(answer.headers.map { $0.name.lowercased() })
        var fields = (rule.headers.filter { !own.contains($0.name.lowercased()) } + answer.headers).map {
            (name: $0.name, value: $0.value)
        }
        if let type, !fields.contains(where: { $0.name.lowercased() == "content-type" }) {
            fields.append(("Content-Type", type))
        }
        return ExportedAnswer(status: answer.status, fields: fields, content: content)
    }

    // MARK: - Recordings

    private mutating func recordings(_ folder: String, _ addresses: Addresses) throws -> [ExportedRule] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        var found: [ExportedRule] = []
        for name in names.sorted() where name.hasSuffix(".head.json") {
            guard let recorded = RecordedAnswer(try ImportFiles.read("\(folder)/\(name)")) else {
                notes.append(
                    ExportNote("\(addresses.service)/\(name)", .leftOut, "it is no recording that can be read")
                )
                continue
            }
            var content: [UInt8] = []
            if let file = recorded.content {
                // A file in another folder does not belong to the recording.
                guard !file.contains("/"), let read = try? ImportFiles.read("\(folder)/\(file)") else {
                    let reason = "its content '\(file)' cannot be read"
                    notes.append(ExportNote("\(addresses.service)/\(name)", .leftOut, reason))
                    continue
                }
                content = read
            }
            let (rule, missing) = recorded.rule(
                service: addresses.service,
                baseURL: addresses.baseURL,
                prefix: addresses.prefix,
                content: content
            )
            found.append(rule)
            notes += missing
        }
        return found
    }
}

extension EndpointPath {
    /// The number of segments that match any value; the rest of a path counts most.
    fileprivate var freedom: Int {
        segments.reduce(0) { count, segment in
            switch segment {
            case .literal: count
            case .parameter: count + 1
            case .rest: count + 1000
            }
        }
    }
}
