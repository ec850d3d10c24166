// One stub of WireMock, with its request as the condition of a rule.

import Contracts
import HTTPWire
import Matching
import Trees

/// A stub whose request a rule can ask for.
struct WireMockStub {
    let location: DocumentLocation
    /// The number of the stub among all.
    let number: Int
    let priority: Int
    /// The name of its rule.
    let name: String
    /// The method; nil for any.
    private(set) var method: String?
    /// The exact path; nil for any path, or a pattern.
    private(set) var exactPath: String?
    private var pathPattern: Pattern?
    /// The members of `when`.
    private(set) var condition: [ContentTree.Member] = []
    let response: ContentTree
    let scenario: String?
    let requiredState: String?
    let newState: String?

    /// True if the condition is about method and path only.
    var asksForTargetAlone: Bool { condition.allSatisfy { ["method", "path", "only_query"].contains($0.name) } }

    /// Whether the stub may answer a request with this method and path.
    func mayAnswer(_ method: String, _ path: String) -> Bool {
        if let own = self.method, own != method { return false }
        if let exactPath { return exactPath == path }
        return pathPattern.map { $0.verdict(Array(path.utf8)) != .notFound } ?? true
    }

    /// The members that do not affect answers.
    private static let ignored: Set<String> = [
        "id", "uuid", "name", "persistent", "metadata", "insertionIndex", "priority", "request", "response",
        "scenarioName", "requiredScenarioState", "newScenarioState",
    ]

    init(
        _ tree: ContentTree,
        _ location: DocumentLocation,
        number: Int,
        _ draft: inout ImportDraft
    ) throws(Unkept) {
        guard let request = tree["request"], request.members != nil, let response = tree["response"] else {
            throw Unkept(location, "it has no 'request' and 'response'")
        }
        self.location = location
        self.number = number
        self.response = response
        priority = tree["priority"]?.whole ?? 5
        scenario = tree["scenarioName"]?.text
        requiredState = tree["requiredScenarioState"]?.text
        newState = tree["newScenarioState"]?.text
        for member in tree.members ?? [] where !Self.ignored.contains(member.name) {
            draft.change(location.within(member.name), "Drydock has nothing like it: it is not kept")
        }
        var reader = WireMockRequest(location.within("request"))
        try reader.read(request, &draft)
        method = reader.method
        exactPath = reader.exactPath
        pathPattern = reader.pathPattern.flatMap { try? Pattern($0) }
        condition = reader.condition
        let own = tree["name"]?.text.map { WordName.word($0, or: "") } ?? ""
        name = own.isEmpty ? WordName.of(reader.methods.first, reader.shownPath) : own
    }
}

/// The request of a stub.
struct WireMockRequest {
    private let location: DocumentLocation
    private(set) var methods: [String] = []
    private(set) var exactPath: String?
    /// Whether the target has the items of the query that are asked for, and no others.
    private var isWholeTarget = false
    private(set) var pathPattern: String?
    private(set) var shownPath = "/"
    private var tests: [(section: String, name: String, tests: [ValueTest])] = []
    private var body = WireMockBody()

    init(_ location: DocumentLocation) { self.location = location }

    /// The method if there is only one.
    var method: String? { methods.count == 1 ? methods[0] : nil }

    var condition: [ContentTree.Member] {
        var members: [ContentTree.Member] = []
        if !methods.isEmpty {
            members.append(.init("method", methods.count == 1 ? .string(methods[0]) : .texts(methods)))
        }
        if let exactPath { members.append(.init("path", ValueTest.path(exactPath))) }
        if let pathPattern { members.append(.init("path", [ValueTest.matches(pathPattern)].tree)) }
        for section in ["query", "fields", "cookies"] {
            let own = tests.filter { $0.section == section }
            if !own.isEmpty {
                members.append(.init(section, .object(own.map { .init($0.name, $0.tests.tree) })))
            }
            if section == "query", isWholeTarget { members.append(.init("only_query", .bool(true))) }
        }
        if !body.members.isEmpty { members.append(.init("body", .object(body.members))) }
        return members
    }

    mutating func read(_ request: ContentTree, _ draft: inout ImportDraft) throws(Unkept) {
        for member in request.members ?? [] {
            let here = location.within(member.name)
            let value = member.value
            switch member.name {
            case "method":
                switch value.text?.uppercased() {
                case nil, "ANY": break
                case "GET_OR_HEAD": methods = ["GET", "HEAD"]
                case let method?:
                    guard ImportedFields.isToken(method) else { throw Unkept(here, "'\(method)' is no method") }
                    methods = [method]
                }
            case "url": try url(value, here, &draft)
            case "urlPath":
                exactPath = SourceURL.target(Substring(try text(value, here))).path
                shownPath = exactPath ?? "/"
            case "urlPattern": try pattern(value, here, mayHaveQuery: true)
            case "urlPathPattern": try pattern(value, here, mayHaveQuery: false)
            case "urlPathTemplate": try template(value, request["pathParameters"], here)
            case "pathParameters":
                if request["urlPathTemplate"] == nil { throw Unkept(here, "it needs a 'urlPathTemplate'") }
            case "headers": try values(value, "fields", here, &draft)
            case "queryParameters": try values(value, "query", here, &draft)
            case "cookies": try values(value, "cookies", here, &draft)
            case "formParameters": try values(value, "form", here, &draft)
            case "basicAuthCredentials", "basicAuth":
                let pair = "\(value["username"]?.text ?? ""):\(value["password"]?.text ?? "")"
                try add([.equals("Basic " + Base64.encode(Array(pair.utf8)))], "fields", "Authorization", here, &draft)
            case "bodyPatterns":
                for (position, pattern) in (value.elements ?? []).enumerated() {
                    try body.add(pattern, here.within(position), &draft)
                }
            default: throw Unkept(here, "no rule of Drydock can ask for it")
            }
        }
        for (name, test) in tests.filter({ $0.section == "form" }).map({ ($0.name, $0.tests) }) {
            body.add(form: name, test)
        }
    }

    private func text(_ value: ContentTree, _ here: DocumentLocation) throws(Unkept) -> String {
        guard let text = value.text else { throw Unkept(here, "it is no text") }
        return text
    }

    private mutating func url(_ value: ContentTree, _ here: DocumentLocation, _ draft: inout ImportDraft) throws(Unkept)
    {
        let (path, query) = SourceURL.target(Substring(try text(value, here)))
        exactPath = path
        isWholeTarget = true
        shownPath = path
        var names: Set<String> = []
        for item in query where !item.name.isEmpty {
            guard names.insert(item.name).inserted else {
                draft.change(here, ImportDraft.repeated(item.name))
                continue
            }
            try add([.equals(item.value)], "query", item.name, here, &draft)
        }
    }

    private mutating func pattern(_ value: ContentTree, _ here: DocumentLocation, mayHaveQuery: Bool) throws(Unkept) {
        let pattern = try text(value, here)
        if mayHaveQuery, pattern.contains(#"\?"#) || pattern.contains("[?]") {
            throw Unkept(
                here,
                "the pattern looks into the query, and a rule's path has none; use urlPathPattern and queryParameters"
            )
        }
        shownPath = String(pattern.filter { $0.isLetter || $0.isNumber || $0 == "/" })
        pathPattern = try WireMockTests.checked(#"\A(?:"# + pattern + #")\z"#, here)
    }

    /// Reads a template such as `/users/{id}`, in which a parameter is one segment.
    private mutating func template(
        _ value: ContentTree,
        _ parameters: ContentTree?,
        _ here: DocumentLocation
    ) throws(Unkept) {
        let template = try text(value, here)
        shownPath = template.filter { $0 != "{" && $0 != "}" }
        var pattern = ""
        var rest = template[...]
        while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}") {
            pattern += ValueTest.quoted(String(rest[..<open]))
            let name = String(rest[rest.index(after: open)..<close])
            if let value = parameters?[name] {
                let tests = try WireMockTests.read(value, here)
                switch tests.count == 1 ? tests[0] : .present(true) {
                case .equals(let text): pattern += ValueTest.quoted(PercentEncoding.encode(text))
                case .oneOf(let texts):
                    pattern +=
                        "(?:" + texts.map { ValueTest.quoted(PercentEncoding.encode($0)) }.joined(separator: "|") + ")"
                case .contains(let text):
                    pattern += "[^/]*" + ValueTest.quoted(PercentEncoding.encode(text)) + "[^/]*"
                case .matches(let whole):
                    guard let part = SegmentPattern.part(ValueTest.inner(ofWhole: whole)) else {
                        throw Unkept(
                            here,
                            "the regular expression of '\(name)' has anchors within; write it without them"
                        )
                    }
                    pattern += part
                default:
                    throw Unkept(
                        here,
                        "'\(name)' has a test that a rule cannot have; equalTo, contains and matches can be kept"
                    )
                }
            } else {
                pattern += "[^/]+"
            }
            rest = rest[rest.index(after: close)...]
        }
        pathPattern = try WireMockTests.checked(#"\A"# + pattern + ValueTest.quoted(String(rest)) + #"\z"#, here)
    }

    private mutating func values(
        _ value: ContentTree,
        _ section: String,
        _ here: DocumentLocation,
        _ draft: inout ImportDraft
    ) throws(Unkept) {
        for member in value.members ?? [] {
            try add(
                try WireMockTests.read(member.value, here.within(member.name)),
                section,
                member.name,
                here.within(member.name),
                &draft
            )
        }
    }

    private mutating func add(
        _ tests: [ValueTest],
        _ section: String,
        _ name: String,
        _ here: DocumentLocation,
        _ draft: inout ImportDraft
    ) throws(Unkept) {
        if section == "fields", !ImportedFields.canBeAsked(name) {
            throw Unkept(here, "a rule cannot ask for the field '\(name)'")
        }
        guard !name.isEmpty, name.utf8.count <= 200 else { throw Unkept(here, "a rule cannot ask for such a name") }
        let isSecret = section == "cookies" ? true : nil
        let shown = Secrets.tests(tests, of: name, isSecret: isSecret, at: here, &draft)
        self.tests.append((section, name, shown))
    }
}

// MARK: - Patterns of path segments

/// A regular expression for one whole segment of a path, as a part of one for the path.
enum SegmentPattern {
    /// The part without the anchors at its ends, which would be inside the path, and with dots that match no slash; nil
    /// if there are anchors inside, whose meaning is unknown.
    /// - Parameter pattern: a regular expression that the whole segment has to match.
    static func part(_ pattern: String) -> String? {
        var rest = pattern[...]
        if rest.hasPrefix("^") { rest = rest.dropFirst() } else if rest.hasPrefix(#"\A"#) { rest = rest.dropFirst(2) }
        var result = ""
        var isClass = false
        while let character = rest.first {
            rest = rest.dropFirst()
            switch character {
            case "\\":
                guard let next = rest.first else { return nil }
                rest = rest.dropFirst()
                if !isClass, "AzZG".contains(next) {
                    // At the end of the pattern this anchor is the end of the segment.
                    guard next != "A", next != "G", rest.isEmpty else { return nil }
                } else {
                    result += "\\" + String(next)
                }
            case "[" where !isClass:
                isClass = true
                result.append(character)
                // A closing bracket at the start belongs to the class.
                if rest.first == "^" {
                    result += "^"
                    rest = rest.dropFirst()
                }
                if rest.first == "]" {
                    result += "]"
                    rest = rest.dropFirst()
                }
            case "]" where isClass:
                isClass = false
                result.append(character)
            case "." where !isClass: result += "[^/]"
            case "$" where !isClass: guard rest.isEmpty else { return nil }
            case "^" where !isClass: return nil
            default: result.append(character)
            }
        }
        return "(?:" + result + ")"
    }
}
