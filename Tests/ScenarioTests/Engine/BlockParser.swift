// The lines below a step: what the origin answers, what is sent and must arrive, what the origin must have been asked.

enum BlockParser {
    // MARK: - Origin

    static func origin(
        method: String?,
        path: String,
        _ block: ArraySlice<ScriptLine>
    ) throws(ScriptError) -> OriginScript {
        var script = OriginScript(method: method, path: path)
        var lines = block
        if let first = lines.first, let status = status(first.text) {
            script.status = status.code
            if !status.reason.isEmpty { script.reason = status.reason }
            lines = lines.dropFirst()
        }
        for line in lines {
            try checkIndent(line, 4)
            if try !option(line, &script) {
                let field = try field(line, line.text)
                if field.value == "-" {
                    script.omitted.insert(field.name.lowercased())
                } else {
                    script.fields.append(field)
                }
            }
        }
        return script
    }

    private static func option(_ line: ScriptLine, _ script: inout OriginScript) throws(ScriptError) -> Bool {
        switch line.text {
        case "unconditional": script.isUnconditional = true
        case "ranges": script.honoursRanges = true
        case "chunked": script.isChunked = true
        case "close": script.closes = true
        case "no length": script.hasNoLength = true
        case "drop": script.drops = true
        case "hold": script.holds = true
        default:
            if let text = line.after("body") {
                script.body = try body(line, text)
            } else if let count = line.after("cut") {
                script.cut = try number(line, count)
            } else if let count = line.after("hold body") {
                script.holdsBody = try number(line, count)
            } else if let text = line.after("interim") {
                if let status = Int(text), (100..<200).contains(status) {
                    script.interims.append(OriginScript.Interim(status: status))
                } else if let last = script.interims.indices.last {
                    script.interims[last].fields.append(try field(line, text))
                } else {
                    throw line.error("interim takes a status from 100 to 199, and then fields")
                }
            } else if let text = line.after("trailer") {
                script.trailers.append(try field(line, text))
            } else if let text = line.after("raw") {
                let bytes = try line.reading { () throws(ScriptTextError) in try ScriptText.unescape(text) }
                script.raw = (script.raw ?? []) + bytes
            } else {
                return false
            }
        }
        return true
    }

    // MARK: - Requests and answers

    /// The lines with `>` as a request without method and path, the others as what must arrive.
    static func answer(
        _ block: ArraySlice<ScriptLine>
    ) throws(ScriptError) -> (request: RequestScript, expectations: [Expectation]) {
        var request = RequestScript(method: "", path: "")
        var expectations = [Expectation]()
        for line in block {
            try checkIndent(line, 4)
            if line.text.hasPrefix(">") {
                var inner = line
                inner.text = String(line.text.dropFirst().drop { $0 == " " })
                try sent(inner, &request)
            } else {
                expectations.append(Expectation(position: line.position, what: try expectation(line)))
            }
        }
        return (request, expectations)
    }

    private static func sent(_ line: ScriptLine, _ request: inout RequestScript) throws(ScriptError) {
        if let text = line.after("body") {
            request.body = try body(line, text)
        } else if line.text == "chunked" {
            request.isChunked = true
        } else if let text = line.after("trailer") {
            request.isChunked = true
            request.trailers.append(try field(line, text))
        } else {
            let field = try field(line, line.text)
            if field.value == "-" {
                request.omitted.insert(field.name.lowercased())
            } else {
                request.fields.append(field)
            }
        }
    }

    private static func expectation(_ line: ScriptLine) throws(ScriptError) -> Expectation.What {
        if let status = status(line.text), status.reason.isEmpty { return .status(status.code) }
        if let text = line.after("reason") { return .reason(text) }
        if line.text == "end cut" { return .cut }
        if let text = line.after("body") {
            if text == "-" { return .body([]) }
            if text.hasPrefix("~ ") {
                return .bodyPart(
                    try line.reading { () throws(ScriptTextError) in try ScriptText.unescape(text.dropFirst(2)) }
                )
            }
            guard let range = text.hasPrefix("pattern ") ? text.dropFirst(8).split(separator: "..<") : nil else {
                return .body(try line.reading { () throws(ScriptTextError) in try ScriptText.unescape(text) })
            }
            guard range.count == 2, let from = Int(range[0]), let to = Int(range[1]), 0 <= from, from <= to else {
                throw line.error("the body of a pattern is written pattern 0..<100")
            }
            return .pattern(from..<to)
        }
        if let text = line.after("interim") {
            if let status = Int(text) { return .interim(status) }
            let (name, test) = try fieldTest(line, text)
            return .interimField(name, test)
        }
        if let text = line.after("trailer") {
            let (name, test) = try fieldTest(line, text)
            return .trailer(name, test)
        }
        let (name, test) = try fieldTest(line, line.text)
        return .field(name, test)
    }

    // MARK: - What the origin was asked

    static func asked(
        _ line: ScriptLine,
        _ words: [String],
        _ block: ArraySlice<ScriptLine>
    ) throws(ScriptError) -> [AskedScript] {
        if words.dropFirst() == ["nothing"], block.isEmpty { return [] }
        guard words.count == 1, !block.isEmpty else {
            throw line.error("asked takes lines such as GET /, or is written “asked nothing”")
        }
        var asked = [AskedScript]()
        for line in block {
            if line.indent == 4 {
                let words = line.text.split(separator: " ").map(String.init)
                guard words.count == 2, words[1].hasPrefix("/") || words[1] == "*" else {
                    throw line.error("a request that was asked is a method and a path")
                }
                asked.append(AskedScript(position: line.position, method: words[0], path: words[1]))
                continue
            }
            try checkIndent(line, 6)
            guard let last = asked.indices.last else { throw line.error("a field before the first request") }
            if let text = line.after("body") {
                asked[last].body = text == "-" ? .bytes([]) : try body(line, text)
            } else {
                let (name, test) = try fieldTest(line, line.text)
                asked[last].fields.append(AskedScript.Field(position: line.position, name: name, test: test))
            }
        }
        return asked
    }

    // MARK: - Pieces

    private static func checkIndent(_ line: ScriptLine, _ indent: Int) throws(ScriptError) {
        if line.indent != indent { throw line.error("indented by \(line.indent) where \(indent) is right") }
    }

    private static func status(_ text: String) -> (code: Int, reason: String)? {
        let words = text.split(separator: " ", maxSplits: 1)
        guard let first = words.first, first.count == 3, let code = Int(first), (100...999).contains(code) else {
            return nil
        }
        return (code, words.count > 1 ? String(words[1]) : "")
    }

    private static func body(_ line: ScriptLine, _ text: String) throws(ScriptError) -> ScriptBody {
        if text.hasPrefix("pattern ") { return .pattern(try number(line, String(text.dropFirst(8)))) }
        return .bytes(try line.reading { () throws(ScriptTextError) in try ScriptText.unescape(text) })
    }

    private static func number(_ line: ScriptLine, _ text: String) throws(ScriptError) -> Int {
        guard let number = Int(text), (0...100_000_000).contains(number) else {
            throw line.error("“\(text)” is no number of bytes")
        }
        return number
    }

    private static func field(_ line: ScriptLine, _ text: String) throws(ScriptError) -> ScriptField {
        guard let colon = text.firstIndex(of: ":"), colon != text.startIndex, !text[..<colon].contains(" ") else {
            throw line.error("“\(text)” is neither a field “Name: value” nor anything else that may stand here")
        }
        let value = String(text[text.index(after: colon)...].drop { $0 == " " })
        // Only whether the templates can be read matters here.
        let scope = ScriptScope(now: 0, authority: "", path: "")
        _ = try line.reading { () throws(ScriptTextError) in try scope.expand(value) }
        return ScriptField(name: String(text[..<colon]), value: value)
    }

    private static func fieldTest(_ line: ScriptLine, _ text: String) throws(ScriptError) -> (String, FieldTest) {
        let field = try field(line, text)
        let value = field.value
        if value == "-" { return (field.name, .absent) }
        if value.hasPrefix("!~ ") { return (field.name, .lacks(String(value.dropFirst(3)))) }
        if value == "~" || value.hasPrefix("~ ") { return (field.name, .contains(String(value.dropFirst(2)))) }
        return (field.name, .equals(value))
    }
}
