// Mappings of WireMock read as demo rules, in the order in which WireMock tries them.

import Contracts
import Glibc
import HTTPWire
import Trees

/// Reads mapping files.
struct WireMockImport {
    /// The state in which a scenario of WireMock begins.
    private static let started = "Started"
    /// The most states of one scenario for which a stub that asks for none gets rules.
    private static let mostStates = 20

    private let options: ImportOptions
    private let bodyFile: (String) -> [UInt8]?
    private var draft: ImportDraft
    /// The states of scenarios, the first one included.
    private var states: [String: [String]] = [:]
    /// The names of scenarios and states, which may be longer than words, and equal after they are shortened.
    private var scenarioWords = DistinctWords()
    private var stateWords: [String: DistinctWords] = [:]
    private var names: Set<String> = []
    private var endpointNames: Set<String> = []

    private init(_ options: ImportOptions, _ bodyFile: @escaping (String) -> [UInt8]?) {
        self.options = options
        self.bodyFile = bodyFile
        draft = ImportDraft(options)
    }

    /// Reads stubs.
    /// - Parameter documents: each a stub, or an object with a list of `mappings`.
    /// - Throws: an error if there is no stub that can be kept.
    static func read(
        _ documents: [(tree: ContentTree, location: DocumentLocation)],
        _ options: ImportOptions,
        bodyFile: @escaping (String) -> [UInt8]?
    ) throws(DocumentError) -> ImportedConfiguration {
        var reader = WireMockImport(options, bodyFile)
        return try reader.configuration(documents)
    }

    private mutating func configuration(
        _ documents: [(tree: ContentTree, location: DocumentLocation)]
    ) throws(DocumentError) -> ImportedConfiguration {
        var stubs: [WireMockStub] = []
        for (tree, location) in documents {
            let list: [(ContentTree, DocumentLocation)] =
                if let mappings = tree["mappings"]?.elements {
                    mappings.enumerated().map { ($0.element, location.within("mappings").within($0.offset)) }
                } else {
                    [(tree, location)]
                }
            for (tree, location) in list {
                do throws(Unkept) {
                    stubs.append(try WireMockStub(tree, location, number: stubs.count, &draft))
                } catch {
                    draft.leaveOut(error.location, error.reason)
                }
            }
        }
        for stub in stubs { note(stateOf: stub) }
        // A smaller number comes first, and among equals the stub that was added last.
        stubs.sort { ($0.priority, $1.number) < ($1.priority, $0.number) }
        var service = ImportedService(name: options.service ?? "wiremock", prefix: "/")
        service.name = WordName.word(service.name, or: "wiremock")
        var last: DocumentLocation?
        for (position, stub) in stubs.enumerated() {
            if let last {
                draft.leaveOut(stub.location, "the stub at \(last) comes before it and answers every request")
                continue
            }
            do throws(Unkept) {
                let answer = try WireMockResponse(
                    stub.response,
                    stub.location.within("response"),
                    stub.name,
                    bodyFile,
                    &draft
                )
                if !answer.faults.isEmpty, let endpoint = endpoint(stub, answer, among: stubs, position) {
                    service.endpoints.append(endpoint)
                    continue
                }
                let rules = try rules(of: stub, answer)
                service.rules += rules
                if rules.contains(where: \.isUnconditional) { last = stub.location }
            } catch {
                draft.leaveOut(error.location, error.reason)
            }
        }
        draft.prove(service)
        let count = service.rules.count + service.endpoints.count
        let location = documents.first?.location ?? DocumentLocation(file: "mappings")
        return try ImportedConfiguration([service.tree], rules: count, draft, location)
    }

    // MARK: - Scenarios

    private mutating func note(stateOf stub: WireMockStub) {
        guard let scenario = stub.scenario else { return }
        var known = states[scenario] ?? [Self.started]
        for state in [stub.requiredState, stub.newState].compactMap(\.self) where !known.contains(state) {
            known.append(state)
        }
        states[scenario] = known
    }

    /// A rule for each state in which the stub answers.
    private mutating func rules(of stub: WireMockStub, _ answer: WireMockResponse) throws(Unkept) -> [ImportedRule] {
        var rule = ImportedRule(name: "", condition: stub.condition, answers: [answer.answer], latency: answer.latency)
        rule.location = stub.location
        guard let scenario = stub.scenario, stub.requiredState != nil || stub.newState != nil else {
            rule.name = WordName.unique(stub.name, among: &names)
            return [rule]
        }
        let all = states[scenario] ?? [Self.started]
        let answered = stub.requiredState.map { [$0] } ?? all
        guard answered.count <= Self.mostStates else {
            throw Unkept(stub.location, "it answers in each of more than \(Self.mostStates) states of its scenario")
        }
        return answered.map { state in
            rule.name = WordName.unique(stub.name, among: &names)
            rule.state = .object(of: [
                "scenario": .string(scenarioWords.word(scenario, or: "scenario")),
                "is": state == Self.started ? nil : .string(word(state, of: scenario)),
                "then": stub.newState.map { .string(word($0, of: scenario)) },
            ])
            return rule
        }
    }

    private mutating func word(_ state: String, of scenario: String) -> String {
        stateWords[scenario, default: DistinctWords([Self.started: "started"])].word(state, or: "state")
    }

    // MARK: - Faults

    /// An endpoint for the stub, since only endpoints can have faults; nil, with a note, if other stubs answer its
    /// requests, too.
    private mutating func endpoint(
        _ stub: WireMockStub,
        _ answer: WireMockResponse,
        among stubs: [WireMockStub],
        _ position: Int
    ) -> ContentTree? {
        let location = stub.location.within("response")
        let what = answer.faultNames.joined(separator: " and ")
        guard let path = stub.exactPath, let method = stub.method, EndpointPaths.isLiteral(path) else {
            draft.change(
                location,
                "\(what) needs an endpoint with one method and one path, and this stub has none: it is not kept"
            )
            return nil
        }
        let isAlone = stubs.enumerated().allSatisfy { other in
            if other.offset == position || !other.element.mayAnswer(method, path) { return true }
            // The other stub comes later, so this one already answers the requests of both.
            return other.offset > position && stub.asksForTargetAlone
        }
        guard isAlone, stub.scenario == nil else {
            draft.change(
                location,
                "\(what) needs an endpoint for \(method) \(path) alone, and other stubs or states answer these requests: it is not kept"
            )
            return nil
        }
        let own = stub.condition.filter { !["method", "path", "only_query"].contains($0.name) }
        let rule = ImportedRule(name: stub.name, condition: own, answers: [answer.answer], latency: answer.latency)
        let demo = ContentTree.object(of: [
            "enabled": .bool(true),
            "files": .string("./" + ImportedConfiguration.bodies),
            "rules": .array([rule.tree]),
        ])
        return .object(of: [
            "name": .string(WordName.unique(stub.name, among: &endpointNames)),
            "method": .string(method),
            "path": .string(path),
            "faults": .array(answer.faults.map { .object([.init("at", .string("demo"))] + ($0.members ?? [])) }),
            "demo": demo,
        ])
    }
}

/// The error of a part of a source that no rule can express.
struct Unkept: Error {
    let location: DocumentLocation
    let reason: String

    init(_ location: DocumentLocation, _ reason: String) {
        self.location = location
        self.reason = reason
    }
}

/// The paths of endpoints.
enum EndpointPaths {
    /// Whether the path has no parameters.
    static func isLiteral(_ path: String) -> Bool {
        path.hasPrefix("/")
            && path.dropFirst().split(separator: "/", omittingEmptySubsequences: path.utf8.count == 1).allSatisfy {
                part in
                part != "." && part != ".." && !part.hasPrefix(":") && !part.contains("*")
                    && part.utf8.allSatisfy { $0 > 32 && $0 < 127 && $0 != 35 && $0 != 63 }
            }
    }
}

// MARK: - Answers

/// The response of a stub.
struct WireMockResponse {
    private(set) var answer = ImportedAnswer()
    /// The delay in the form of a rule's `latency`.
    private(set) var latency: String?
    /// The faults in the form of `faults`, each with the name of its form in the source.
    private(set) var faults: [ContentTree] = []
    private(set) var faultNames: [String] = []

    /// - Throws: an error if an answer would differ from the source's.
    init(
        _ response: ContentTree,
        _ location: DocumentLocation,
        _ name: String,
        _ bodyFile: (String) -> [UInt8]?,
        _ draft: inout ImportDraft
    ) throws(Unkept) {
        var bytes: [UInt8] = []
        var isJSON = false
        var lines: [(name: String, value: String)] = []
        for member in response.members ?? [] {
            let here = location.within(member.name)
            let value = member.value
            switch member.name {
            case "status":
                guard let status = value.whole, 200...599 ~= status else {
                    throw Unkept(here, "a rule answers with a status from 200 to 599")
                }
                answer.status = status
            case "statusMessage":
                draft.change(here, "the reason phrase is that of the status: HTTP gives it no meaning")
            case "headers":
                for field in value.members ?? [] {
                    for text in field.value.elements ?? [field.value] { lines.append((field.name, text.scalar ?? "")) }
                }
            case "body": bytes = Array((value.scalar ?? "").utf8)
            case "jsonBody":
                bytes = JSONWriter.bytes(value)
                isJSON = true
            case "base64Body":
                guard let decoded = Base64.decode(value.text ?? "") else { throw Unkept(here, "this is no base64") }
                bytes = decoded
            case "bodyFileName":
                guard let content = bodyFile(value.text ?? "") else {
                    throw Unkept(here, "there is no file '\(value.text ?? "")' in the folder __files")
                }
                bytes = content
            case "fixedDelayMilliseconds":
                if let time = value.whole, time > 0 { latency = "\(time)ms" }
            case "delayDistribution": try delay(value, here)
            case "chunkedDribbleDelay":
                guard let count = value["numberOfChunks"]?.whole, let time = value["totalDuration"]?.whole,
                    1...1_000_000 ~= count, time >= 0
                else { throw Unkept(here, "it has no number of chunks, or no time") }
                add(
                    .object(of: [
                        "dribble": .object(of: ["chunks": .whole(count), "over": .string("\(time)ms")])
                    ]),
                    member.name
                )
            case "fault": try fault(value, here)
            case "transformers":
                if value.elements?.isEmpty == false {
                    draft.change(
                        here,
                        "the body is sent as it stands: templates of WireMock are written in another way than those of Drydock"
                    )
                }
            case "transformerParameters", "fromConfiguredStub": break
            case "proxyBaseUrl":
                throw Unkept(here, "a rule answers by itself; demo.unmatched: pass lets requests go on to base_url")
            default: draft.change(here, "Drydock has nothing like it: it is not kept")
            }
        }
        let type = lines.first { $0.name.lowercased() == "content-type" }?.value ?? (isJSON ? "application/json" : nil)
        answer.headers = ImportedFields.members(lines, at: location.within("headers"), isWritten: true, &draft)
        guard bytes.count <= ImportDraft.largestBody else { throw Unkept(location, "the body has more than 64 MiB") }
        if ImportedAnswer.mayHaveContent(answer.status) {
            answer.file = draft.file(bytes, type: type, near: name)
        } else if !bytes.isEmpty {
            draft.change(location, "an answer with status \(answer.status) has no body (RFC 9110)")
        }
    }

    private mutating func add(_ fault: ContentTree, _ name: String) {
        faults.append(fault)
        faultNames.append("'\(name)'")
    }

    private mutating func delay(_ value: ContentTree, _ here: DocumentLocation) throws(Unkept) {
        switch value["type"]?.text {
        case "uniform":
            guard let lower = value["lower"]?.whole, let upper = value["upper"]?.whole, 0 <= lower, lower <= upper
            else {
                throw Unkept(here, "its bounds are no whole numbers of milliseconds")
            }
            latency = "\(lower)ms..\(upper)ms"
        case "fixed":
            guard let time = value["milliseconds"]?.whole, time >= 0 else { throw Unkept(here, "it has no time") }
            latency = "\(time)ms"
        case "lognormal":
            guard let median = value["median"]?.scalar.flatMap(Double.init), median >= 1, median < 1e9,
                let sigma = value["sigma"]?.scalar.flatMap(Double.init), sigma >= 0, sigma < 5
            else { throw Unkept(here, "its median or its sigma is no number that a latency can have") }
            // This is the 99th percentile of the standard normal distribution.
            let high = median * exp(2.326348 * sigma)
            let most = value["maxValue"]?.whole
            let lognormal = ContentTree.object(of: [
                "median": .string("\(Int(median.rounded()))ms"),
                "p99": .string("\(Int(max(high, median).rounded()))ms"),
            ])
            add(
                .object(of: [
                    "latency": .object(of: ["lognormal": lognormal, "max": most.map { .string("\($0)ms") }])
                ]),
                "delayDistribution"
            )
        default: throw Unkept(here, "this distribution is unknown; uniform, lognormal and fixed can be kept")
        }
    }

    private mutating func fault(_ value: ContentTree, _ here: DocumentLocation) throws(Unkept) {
        let fault: ContentTree
        switch value.text {
        case "CONNECTION_RESET_BY_PEER": fault = .string("reset")
        case "EMPTY_RESPONSE": fault = .string("empty")
        case "RANDOM_DATA_THEN_CLOSE": fault = .string("garbage")
        case "MALFORMED_RESPONSE_CHUNK":
            fault = .object(of: ["garbage": .object(of: ["after": .string("status_line")])])
        default: throw Unkept(here, "this fault is unknown")
        }
        add(.object(of: ["fault": fault]), "fault")
    }
}
