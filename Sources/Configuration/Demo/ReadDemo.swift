// Reads demo sections: the given keys, and the defaults of the others.

import Matching
import Policies
import Trees

extension DemoConfiguration {
    private static let defaults = DemoConfiguration(SectionReader(nothingOf: KeyTable.demo))

    package init() { self = .defaults }

    /// Reads a demo section without its rules and files.
    /// - Parameter reader: a section `demo`.
    init(_ reader: SectionReader) {
        enabled = reader.bool("enabled")
        answer = DemoRuleConfiguration(
            counting: reader.choice(always: "count"),
            answer: DemoAnswerConfiguration(reader),
            headers: reader.headerValues("headers"),
            latency: LatencyPolicy(reader.section("latency")) ?? .none,
            randomSeed: UInt64(reader.int(always: "random_seed"))
        )
        hasOwnAnswer = false
        unmatched = reader.choice(always: "unmatched")
        bodyLimit = reader.bytes(always: "body_limit")
        overrides = reader.nanoseconds("overrides")
    }
}

extension DemoRuleConfiguration {
    /// Reads a rule without its condition and files.
    /// - Parameters:
    ///   - reader: one of `demo.rules`.
    ///   - demo: the demo section's own answer, which provides the settings that the rule lacks.
    init(_ reader: SectionReader, in demo: DemoRuleConfiguration) {
        name = reader.text("name")
        gate = RuleGate(reader)
        counting = reader.choice(always: "count")
        answer = DemoAnswerConfiguration(reader)
        let own = reader.headerValues("headers")
        let names = Set(own.map { $0.name.lowercased() })
        headers = demo.headers.filter { !names.contains($0.name.lowercased()) } + own
        latency = LatencyPolicy(reader.section("latency")) ?? demo.latency
        randomSeed = reader.int("random_seed").map { UInt64($0) } ?? demo.randomSeed
    }
}

extension RuleGate {
    /// Reads the condition of a rule on earlier requests.
    /// - Parameter reader: one of `demo.rules`.
    /// - Returns: nil if the rule has none.
    fileprivate init?(_ reader: SectionReader) {
        let when = reader.section("when")
        let turn = RuleTurn(nth: when.int("nth"), first: when.int("first"), every: when.int("every"))
        let step = reader.section("state")
        let outage = reader.section("outage")
        self.init(
            step: step.text("scenario").map { scenario in
                ScenarioStep(scenario: scenario, state: step.text(always: "is"), next: step.text("then"))
            },
            outage: outage.entries.isEmpty
                ? nil
                : RuleOutage(
                    after: outage.nanoseconds(always: "after"),
                    duration: outage.nanoseconds("for"),
                    every: outage.nanoseconds("every"),
                    afterRequests: outage.int(always: "after_requests"),
                    requests: outage.int("for_requests")
                ),
            turn: turn
        )
        if isEmpty { return nil }
    }
}

extension DemoAnswerConfiguration {
    /// Reads an answer without its fields and its content.
    /// - Parameter reader: a section with an answer.
    init(_ reader: SectionReader) {
        self.init(status: reader.int(always: "status"), isTemplate: reader.bool("template"))
    }
}

extension FailureConfiguration {
    init(_ reader: SectionReader) {
        chance = reader.always { $0.share("chance") }
        answer = DemoAnswerConfiguration(reader)
    }
}

extension RequestCondition {
    /// Reads a condition.
    /// - Parameter reader: a section `when`.
    init(_ reader: SectionReader) {
        var clauses: [RequestClause] = []
        let methods = reader.texts("method")
        if !methods.isEmpty { clauses.append(.method(methods)) }
        if let value = reader.entry("path")?.value { clauses.append(.path(TextTest(value))) }
        let named: [(String, (String, TextTest) -> RequestClause)] = [
            ("params", { .parameter($0, $1) }), ("query", { .query($0, $1) }), ("fields", { .field($0, $1) }),
            ("cookies", { .cookie($0, $1) }),
        ]
        for (key, clause) in named {
            for entry in reader.map(key) { clauses.append(clause(entry.key, TextTest(entry.value))) }
        }
        if reader.bool("only_query") { clauses.append(.onlyQuery(Set(reader.map("query").map(\.key)))) }
        clauses += Self.body(reader.section("body"))
        self.init(clauses)
    }

    private static func body(_ reader: SectionReader) -> [RequestClause] {
        var clauses: [RequestClause] = []
        if let tree = reader.tree("is") { clauses.append(.body(.json([], .equals(tree)))) }
        if let tree = reader.tree("contains") { clauses.append(.body(.json([], .contains(tree)))) }
        for entry in reader.map("json") {
            let path = entry.key.split(separator: ".").map(String.init)
            clauses.append(.body(.json(path, TreeTest(entry.value))))
        }
        for entry in reader.map("form") { clauses.append(.body(.form(entry.key, TextTest(entry.value)))) }
        if let value = reader.entry("text")?.value { clauses.append(.body(.text(TextTest(value)))) }
        return clauses
    }
}

extension TextTest {
    /// Reads the tests of a text.
    /// - Parameter value: a section of tests, or the value of the test `is` alone.
    init(_ value: Value) {
        guard case .section(let entries) = value.content else {
            self = .all([])
            return
        }
        let reader = SectionReader(entries: entries, section: KeyTable.textTest)
        var tests: [TextTest] = []
        if let text = reader.text("is") { tests.append(.equals(text)) }
        if let text = reader.text("contains") { tests.append(.contains(text)) }
        if let pattern = reader.pattern("matches") { tests.append(.matches(pattern)) }
        if reader.entry("one_of") != nil { tests.append(.oneOf(reader.texts("one_of"))) }
        if reader.entry("present") != nil { tests.append(.present(reader.bool("present"))) }
        if let value = reader.entry("not")?.value { tests.append(.not(TextTest(value))) }
        self = tests.count == 1 ? tests[0] : .all(tests)
    }
}

extension TreeTest {
    /// Reads the tests of a JSON value.
    /// - Parameter value: a section of tests, or the value of the test `is` alone.
    init(_ value: Value) {
        guard case .section(let entries) = value.content else {
            self = .all([])
            return
        }
        let reader = SectionReader(entries: entries, section: KeyTable.treeTest)
        var tests: [TreeTest] = []
        if let tree = reader.tree("is") { tests.append(.equals(tree)) }
        if let tree = reader.tree("contains") { tests.append(.contains(tree)) }
        if let pattern = reader.pattern("matches") { tests.append(.matches(pattern)) }
        if reader.entry("one_of") != nil { tests.append(.oneOf(reader.trees("one_of"))) }
        if reader.entry("present") != nil { tests.append(.present(reader.bool("present"))) }
        if let value = reader.entry("not")?.value { tests.append(.not(TreeTest(value))) }
        self = tests.count == 1 ? tests[0] : .all(tests)
    }
}

extension SectionReader {
    fileprivate func tree(_ key: String) -> ContentTree? {
        if case .tree(let tree)? = leaf(key)?.scalar { tree } else { nil }
    }

    fileprivate func trees(_ key: String) -> [ContentTree] {
        scalars(key).compactMap { if case .tree(let tree) = $0 { tree } else { nil } }
    }

    /// The pattern under a key, which was checked when its text was read.
    fileprivate func pattern(_ key: String) -> Pattern? {
        text(key).flatMap { try? Pattern($0) }
    }
}
