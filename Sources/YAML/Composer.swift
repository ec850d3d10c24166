// Builds the tree of the only document of a text from the events of libyaml's parser, each with its position.

import CLibyaml

extension Node {
    /// The root of the only document of a text in UTF-8; nil if there is none, as in a text of comments.
    ///
    /// Tags are accepted and ignored: the style of a scalar distinguishes text from possible numbers.
    ///
    /// - Throws: the first mistake in the order of the text. libyaml reads some kilobytes ahead, so that a character
    ///   that YAML never allows can be reported before it.
    package static func read(_ bytes: [UInt8], limits: Limits) throws(YAMLError) -> Node? {
        var composer = try Composer(bytes, limits)
        return try composer.document()
    }
}

/// Builds one tree and keeps its anchors.
private struct Composer: ~Copyable {
    /// The node of an anchor, and the size of a copy of it.
    private struct Anchored {
        let node: Node
        let values: Int
        let levels: Int
    }

    private var parser: EventParser
    private let limits: Limits
    /// The anchors by their names. An anchor can be set again; an alias means the latest complete one before it.
    private var anchors: [String: Anchored] = [:]
    /// The number of values in the tree so far.
    private var values = 0

    init(_ bytes: [UInt8], _ limits: Limits) throws(YAMLError) {
        parser = try EventParser(bytes)
        self.limits = limits
    }

    mutating func document() throws(YAMLError) -> Node? {
        // This event is the start of the stream.
        _ = try parser.next()
        guard case .documentStart = try parser.next().kind else { return nil }
        let root = try node(parser.next(), within: 0).node
        // This event is the end of the document.
        _ = try parser.next()
        let further = try parser.next()
        guard case .streamEnd = further.kind else {
            throw YAMLError(.secondDocument, "found another document", further.mark)
        }
        return root
    }

    /// The node that an event begins, within this many sequences and mappings, and the number of its own levels.
    private mutating func node(_ event: Event, within level: Int) throws(YAMLError) -> (node: Node, levels: Int) {
        let before = values
        let content: Node.Content
        let name: String?
        var levels = 0
        switch event.kind {
        case .alias(let anchor): return try alias(anchor, event.mark, within: level)
        case .scalar(let text, let style, let anchor):
            try add(values: 1, levels: level, event.mark)
            (content, name) = (.scalar(text, style), anchor)
        case .sequenceStart(let anchor):
            try add(values: 1, levels: level + 1, event.mark)
            levels = 1
            var nodes: [Node] = []
            while let inner = try item() { nodes.append(try node(inner, within: level + 1, &levels)) }
            (content, name) = (.sequence(nodes), anchor)
        case .mappingStart(let anchor):
            try add(values: 1, levels: level + 1, event.mark)
            levels = 1
            var pairs: [(key: Node, value: Node)] = []
            while let inner = try item() {
                let key = try node(inner, within: level + 1, &levels)
                pairs.append((key, try node(parser.next(), within: level + 1, &levels)))
            }
            (content, name) = (.mapping(pairs), anchor)
        case .streamStart, .streamEnd, .documentStart, .documentEnd, .end:
            // libyaml reports a scalar or an error if a node is missing.
            throw YAMLError(.structure, "did not find expected node content", event.mark)
        }
        let node = Node(mark: event.mark, content: content)
        if let name { anchors[name] = Anchored(node: node, values: values - before, levels: levels) }
        return (node, levels)
    }

    /// A node of the collection whose levels are counted.
    private mutating func node(_ event: Event, within level: Int, _ levels: inout Int) throws(YAMLError) -> Node {
        let (node, own) = try node(event, within: level)
        levels = max(levels, own + 1)
        return node
    }

    /// The event that begins the next item; nil at the end of the sequence or mapping.
    private mutating func item() throws(YAMLError) -> Event? {
        let event = try parser.next()
        if case .end = event.kind { return nil }
        return event
    }

    private mutating func alias(
        _ anchor: String,
        _ mark: Mark,
        within level: Int
    ) throws(YAMLError) -> (node: Node, levels: Int) {
        guard let anchored = anchors[anchor] else { throw YAMLError(.unknownAlias, "found undefined alias", mark) }
        try add(values: anchored.values, levels: level + anchored.levels, mark)
        return (Node(mark: mark, content: .alias(of: anchored.node)), anchored.levels)
    }

    private mutating func add(values more: Int, levels: Int, _ mark: Mark) throws(YAMLError) {
        guard levels <= limits.levels else {
            throw YAMLError(.tooManyLevels, "found more than \(limits.levels) levels", mark)
        }
        values += more
        guard values <= limits.values else {
            throw YAMLError(.tooManyValues, "found more than \(limits.values) values", mark)
        }
    }
}

// MARK: - Events

/// One event of a text.
struct Event {
    enum Kind {
        case streamStart
        case streamEnd
        case documentStart
        case documentEnd
        case alias(String)
        case scalar(String, Node.Style, anchor: String?)
        case sequenceStart(anchor: String?)
        case mappingStart(anchor: String?)
        /// The end of a sequence or a mapping.
        case end
    }
    let kind: Kind
    let mark: Mark
}

/// Reads UTF-8 to its end, or to its first error. Tags are accepted and not reported.
struct EventParser: ~Copyable {
    // Both belong to this value only and are freed with it. libyaml keeps pointers to them, so neither may move.
    private let parser: UnsafeMutablePointer<yaml_parser_t>
    private let input: UnsafeMutableBufferPointer<UInt8>

    /// A parser with a copy of the bytes, without their byte order mark.
    init(_ bytes: [UInt8]) throws(YAMLError) {
        let text = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes[3...] : bytes[...]
        let parser = UnsafeMutablePointer<yaml_parser_t>.allocate(capacity: 1)
        guard yaml_parser_initialize(parser) == 1 else {
            parser.deallocate()
            throw YAMLError(.memory, "there is no memory for a parser", Mark(line: 1, column: 1))
        }
        input = .allocate(capacity: text.count)
        _ = input.initialize(from: text)
        self.parser = parser
        // Without this call libyaml would look for UTF-16, too.
        yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
        yaml_parser_set_input_string(parser, input.baseAddress, input.count)
    }

    deinit {
        yaml_parser_delete(parser)
        parser.deallocate()
        input.deallocate()
    }

    /// The next event; must not be called after the end of the stream or an error.
    mutating func next() throws(YAMLError) -> Event {
        // A failed call leaves nothing in the event that would have to be deleted.
        var event = yaml_event_t()
        guard yaml_parser_parse(parser, &event) == 1 else { throw failure() }
        defer { yaml_event_delete(&event) }
        return Event(kind: Self.kind(event), mark: Mark(event.start_mark))
    }

    private static func kind(_ event: yaml_event_t) -> Event.Kind {
        switch event.type {
        case YAML_STREAM_START_EVENT: .streamStart
        case YAML_DOCUMENT_START_EVENT: .documentStart
        case YAML_DOCUMENT_END_EVENT: .documentEnd
        case YAML_ALIAS_EVENT: .alias(text(event.data.alias.anchor) ?? "")
        case YAML_SCALAR_EVENT: scalar(event)
        case YAML_SEQUENCE_START_EVENT: .sequenceStart(anchor: text(event.data.sequence_start.anchor))
        case YAML_MAPPING_START_EVENT: .mappingStart(anchor: text(event.data.mapping_start.anchor))
        case YAML_SEQUENCE_END_EVENT, YAML_MAPPING_END_EVENT: .end
        default: .streamEnd
        }
    }

    private static func scalar(_ event: yaml_event_t) -> Event.Kind {
        let scalar = event.data.scalar
        let style: Node.Style =
            switch scalar.style {
            case YAML_SINGLE_QUOTED_SCALAR_STYLE: .singleQuoted
            case YAML_DOUBLE_QUOTED_SCALAR_STYLE: .doubleQuoted
            case YAML_LITERAL_SCALAR_STYLE: .literal
            case YAML_FOLDED_SCALAR_STYLE: .folded
            default: .plain
            }
        // The text may contain NUL, by an escape; libyaml has checked its UTF-8. The event outlives this call.
        let bytes = UnsafeBufferPointer(start: scalar.value, count: scalar.length)
        return .scalar(String(decoding: bytes, as: UTF8.self), style, anchor: text(scalar.anchor))
    }

    // The text at a pointer, whose event outlives this call.
    private static func text(_ pointer: UnsafePointer<yaml_char_t>?) -> String? { pointer.map { String(cString: $0) } }

    private func failure() -> YAMLError {
        let state = parser.pointee
        let problem = state.problem.map { String(cString: $0) } ?? ""
        let mark = Mark(state.problem_mark)
        let context = state.context.map { YAMLError.Context(text: String(cString: $0), mark: Mark(state.context_mark)) }
        switch state.error {
        case YAML_READER_ERROR: return YAMLError(.character, problem, self.mark(at: state.problem_offset))
        case YAML_SCANNER_ERROR: return YAMLError(.token, problem, mark, context: context)
        case YAML_PARSER_ERROR: return YAMLError(.structure, problem, mark, context: context)
        default: return YAMLError(.memory, "there is no memory to read on", Mark(state.mark))
        }
    }

    /// The position of a byte: libyaml reports no line for a character that it does not accept.
    private func mark(at offset: Int) -> Mark {
        var (line, column) = (1, 1)
        var last: Unicode.Scalar?
        for scalar in String(decoding: input.prefix(offset), as: UTF8.self).unicodeScalars {
            column += 1
            if scalar.endsLine { (line, column) = (last == "\r" && scalar == "\n" ? line : line + 1, 1) }
            last = scalar
        }
        return Mark(line: line, column: column)
    }
}

extension Mark {
    fileprivate init(_ mark: yaml_mark_t) { self.init(line: mark.line + 1, column: mark.column + 1) }
}

extension Unicode.Scalar {
    /// Whether the character ends a line in YAML 1.1; the two of CRLF count as one.
    package var endsLine: Bool { ["\n", "\r", "\u{85}", "\u{2028}", "\u{2029}"].contains(self) }
}
