// From the events of a text to the tree of its only document.

extension Node {
    /// The root of the only document of a text in UTF-8; nil where there is none, as in a text of comments.
    ///
    /// Tags are taken and not kept: the style of a scalar tells text from what can be a number.
    ///
    /// - Throws: the first thing that is wrong, in the order of the text. libyaml reads some kilobytes ahead, so that a
    ///   character that YAML takes nowhere can come before it.
    package static func read(_ bytes: [UInt8], limits: Limits) throws(YAMLError) -> Node? {
        var composer = try Composer(bytes, limits)
        return try composer.document()
    }
}

/// Builds one tree and keeps its anchors.
private struct Composer: ~Copyable {
    /// What an anchor names, and what a copy of it would add to a tree.
    private struct Anchored {
        let node: Node
        let values: Int
        let levels: Int
    }

    private var parser: EventParser
    private let limits: Limits
    /// An anchor can be set anew; an alias means the latest before it that is complete.
    private var anchors: [String: Anchored] = [:]
    /// How many values the tree has so far.
    private var values = 0

    init(_ bytes: [UInt8], _ limits: Limits) throws(YAMLError) {
        parser = try EventParser(bytes)
        self.limits = limits
    }

    mutating func document() throws(YAMLError) -> Node? {
        // The start of the stream.
        _ = try parser.next()
        guard case .documentStart = try parser.next().kind else { return nil }
        let root = try node(parser.next(), within: 0).node
        // The end of the document.
        _ = try parser.next()
        let further = try parser.next()
        guard case .streamEnd = further.kind else {
            throw YAMLError(.secondDocument, "found another document", further.mark)
        }
        return root
    }

    /// The node that an event begins, within so many sequences and mappings, and how many levels it has itself.
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
            // libyaml puts a scalar or an error where a node is missing.
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
