// Reads .scenario files: the lines, the scenarios and their steps. Rules/README.md says what may stand in them.

/// The scenarios of one file, and what is wrong in it.
struct ScriptParser {
    private(set) var scenarios: [Scenario] = []
    private(set) var errors: [ScriptError] = []

    /// - Parameter file: the name that positions carry.
    init(file: String, text: String) {
        var lines = ScriptParser.lines(file, text)[...]
        while let line = lines.popFirst() {
            let block = lines.prefix { $0.indent > 2 }
            switch line.indent {
            case 0: begin(line)
            case 2:
                lines = lines.dropFirst(block.count)
                do {
                    try step(line, block)
                } catch {
                    errors.append(error)
                }
            case 4 where !scenarios.isEmpty, 6 where !scenarios.isEmpty: fail(line, "this line belongs to no step")
            default: fail(line, "indented by \(line.indent); a scenario by 0, a step by 2, its lines by 4 or 6")
            }
        }
        for scenario in scenarios where errors.isEmpty && scenario.steps.isEmpty {
            errors.append(ScriptError(position: scenario.position, message: "the scenario has no step"))
        }
    }

    private static func lines(_ file: String, _ text: String) -> [ScriptLine] {
        var lines = [ScriptLine]()
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let content = line.drop { $0 == " " }
            let trimmed = content.reversed().drop { $0 == " " || $0 == "\t" || $0 == "\r" }.reversed()
            guard let first = trimmed.first, first != "#" else { continue }
            let position = ScriptPosition(file: file, line: index + 1)
            lines.append(ScriptLine(position: position, indent: line.count - content.count, text: String(trimmed)))
        }
        return lines
    }

    private mutating func fail(_ line: ScriptLine, _ message: String) {
        errors.append(ScriptError(position: line.position, message: message))
    }

    private mutating func begin(_ line: ScriptLine) {
        let words = line.text.split(separator: " ", maxSplits: 1)
        guard words.count == 2, words[0] == "scenario" else {
            fail(line, "“\(line.text)” where a line “scenario TITLE” must stand")
            return
        }
        scenarios.append(Scenario(title: String(words[1]), position: line.position))
    }

    private mutating func step(_ line: ScriptLine, _ block: ArraySlice<ScriptLine>) throws(ScriptError) {
        guard let last = scenarios.indices.last else { throw line.error("a step before the first scenario") }
        let words = line.text.split(separator: " ").map(String.init)
        switch words[0] {
        case "only":
            let known = Way.Mode.allCases.map(\.rawValue) + Way.Check.allCases.map(\.rawValue)
            let unknown = words.dropFirst().first { !known.contains($0) }
            guard words.count > 1, unknown == nil, block.isEmpty else {
                throw line.error("only takes one or more of \(known.joined(separator: ", "))")
            }
            scenarios[last].only.formUnion(words.dropFirst())
        case "own":
            guard line.text == "own daemon", block.isEmpty else { throw line.error("did you mean “own daemon”?") }
            scenarios[last].hasOwnDaemon = true
        default:
            let action = try ScriptParser.action(line, words, block)
            scenarios[last].steps.append(ScriptStep(position: line.position, action: action))
        }
    }

    private static func action(
        _ line: ScriptLine,
        _ words: [String],
        _ block: ArraySlice<ScriptLine>
    ) throws(ScriptError) -> ScriptAction {
        let simple = try simpleAction(line, words)
        if let simple {
            if let extra = block.first { throw extra.error("\(words[0]) takes no lines below it") }
            return simple
        }
        switch words[0] {
        case "origin":
            guard words.count == 2 || words.count == 3, words.last?.hasPrefix("/") == true || words.last == "*" else {
                throw line.error("origin takes a path, or a method and a path")
            }
            return .origin(
                try BlockParser.origin(method: words.count == 3 ? words[1] : nil, path: words[words.count - 1], block)
            )
        case "finish":
            guard words.count == 2 else { throw line.error("finish takes the name of a started request") }
            return .finish(words[1], try BlockParser.answer(block[...]).expectations)
        case "asked":
            return .asked(try BlockParser.asked(line, words, block))
        case "explain":
            guard words.count == 2 else { throw line.error("explain takes a path") }
            let request = block.filter { $0.text.hasPrefix(">") }
            let parts = try BlockParser.answer(request[...])
            let script = RequestScript(method: "GET", path: words[1], fields: parts.request.fields)
            return .explain(script, block.filter { !$0.text.hasPrefix(">") })
        default:
            let isStart = words[0] == "start"
            let (method, rest) = try method(line, isStart ? Array(words.dropFirst(2)) : words)
            guard let path = rest.first, rest.count <= 2, path.hasPrefix("/") || path == "*" else {
                throw line.error("a request takes a path that begins with “/”, or “*”")
            }
            var (request, expectations) = try BlockParser.answer(block)
            (request.method, request.path) = (method, path)
            if rest.count == 2 {
                guard rest[1] == "HTTP/1.0" else { throw line.error("after the path only HTTP/1.0 may stand") }
                request.version = rest[1]
            }
            guard isStart else { return .ask(request, expectations) }
            if let first = expectations.first {
                throw ScriptError(position: first.position, message: "what must arrive stands below finish")
            }
            return .start(words[1], request)
        }
    }

    /// A method in small letters, or `request METHOD`; and the words after it.
    private static func method(_ line: ScriptLine, _ words: [String]) throws(ScriptError) -> (String, [String]) {
        let methods = ["get", "head", "post", "put", "delete", "patch", "options", "trace"]
        if let word = words.first, methods.contains(word.lowercased()) {
            return (word.uppercased(), Array(words.dropFirst()))
        }
        if words.first == "request", words.count >= 3 { return (words[1], Array(words.dropFirst(2))) }
        throw line.error(
            "“\(line.text)” is no step; there are origin, \(methods.joined(separator: ", ")), request METHOD, start, "
                + "finish, release, settle, asked, clock, offline, explain, only and own daemon"
        )
    }

    private static func simpleAction(_ line: ScriptLine, _ words: [String]) throws(ScriptError) -> ScriptAction? {
        switch words[0] {
        case "release":
            guard words.count == 2, words[1].hasPrefix("/") else { throw line.error("release takes a path") }
            return .release(words[1])
        case "settle":
            guard words.count == 1 else { throw line.error("settle takes nothing") }
            return .settle
        case "clock":
            guard words.count == 2 else { throw line.error("clock takes a duration, such as 59s") }
            return .clock(try line.reading { () throws(ScriptTextError) in try ScriptText.seconds(words[1]) })
        case "offline":
            guard words.count == 2, words[1] == "on" || words[1] == "off" else {
                throw line.error("offline takes on or off")
            }
            return .offline(words[1] == "on")
        default: return nil
        }
    }
}

extension ScriptLine {
    func error(_ message: String) -> ScriptError { ScriptError(position: position, message: message) }

    /// Gives an error of a piece of this line the line's position.
    func reading<Value>(_ body: () throws(ScriptTextError) -> Value) throws(ScriptError) -> Value {
        do {
            return try body()
        } catch {
            throw self.error(error.message)
        }
    }

    /// The line after a word that it begins with, or nil.
    func after(_ word: String) -> String? {
        if text == word { return "" }
        return text.hasPrefix(word + " ") ? String(text.dropFirst(word.count + 1).drop { $0 == " " }) : nil
    }
}
