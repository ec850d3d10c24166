// The sources of answers, their order, and recordings of answers.

import HTTPCaching
package import Policies

extension KeyTable {
    private static let recordingMatch = SectionDescriptor(
        name: "recordings.match",
        keys: [
            KeyDescriptor(
                "fields",
                .list(.text(.token)),
                "Request fields whose values tell recordings apart, besides method, path and query.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "body",
                .boolean,
                default: "true",
                "Whether the content of a request tells recordings apart; it may then have 1 MiB.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "credentials",
                .boolean,
                default: "true",
                "Whether a request with credentials has another recording than one without them, whatever they are.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "vary",
                .boolean,
                default: "true",
                "Whether the request fields that an answer names in Vary tell its recordings apart.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "ignore_query",
                .list(.text(.any)),
                "Query items that make no difference; a name may have a * in it.",
                inherited: .endpoints
            ),
        ]
    )

    private static let recordingRedaction = SectionDescriptor(
        name: "recordings.redact",
        keys: [
            KeyDescriptor(
                "fields",
                .list(.text(.token)),
                "Fields of answers that are recorded without their value, besides cookies and those whose name says that they are secret.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "query",
                .list(.text(.any)),
                "Query items that are recorded without their value, besides those whose name says that they are secret.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "json",
                .list(.text(.any)),
                "Members of JSON answers that are recorded without their value, such as user.token; arrays on the way are gone through.",
                inherited: .endpoints
            ),
        ]
    )

    private static let recordings = SectionDescriptor(
        name: "recordings",
        keys: [
            KeyDescriptor(
                "dir",
                .path,
                "The folder of the recordings; those of a service are in a folder of its name in it.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "match",
                .section(recordingMatch),
                "What tells recordings apart.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "redact",
                .section(recordingRedaction),
                "What is left out of recordings.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "max_size",
                .size,
                default: "8MiB",
                "How large the content of a recorded answer may be; a larger one is passed on and not recorded.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "on_failure",
                .choice(RecordingFallback.allCases.map(\.rawValue)),
                default: "error",
                "What answers where an origin that is recorded fails: error passes the failure on, replay answers with the recording of the same request.",
                inherited: .endpoints
            ),
        ]
    )

    /// The keys `source`, `from` and `recordings` of services and endpoints.
    static let recordingKeys = [
        KeyDescriptor(
            "source",
            .choice(AnswerSource.allCases.map(\.rawValue) + [RecordingConfiguration.demoSource]),
            default: "live",
            "Where answers come from: live, the origin through the store; record, the origin, and each answer is recorded; replay-or-record, the recording, or else as record; replay, the recording, and nobody is ever asked; demo, demo answers, as demo.enabled.",
            inherited: .endpoints
        ),
        KeyDescriptor(
            "from",
            .list(.choice(OrderedSource.allCases.map(\.rawValue))),
            "The places that answers come from, in the order in which they are asked, and no others; instead of 'source'.",
            inherited: .endpoints
        ),
        KeyDescriptor(
            "recordings",
            .section(recordings),
            "The recordings that 'source' makes and uses.",
            inherited: .endpoints
        ),
    ]
}

/// The values of `source`, `from` and `recordings`.
package struct RecordingConfiguration: Sendable, Equatable {
    /// The source of answers, if ``from`` is empty. Default: live.
    package var source: AnswerSource
    /// The sources of answers in their order, each once; empty if ``source`` decides.
    package var from: [OrderedSource]
    /// The absolute path of the folder of recordings; nil only if the source is live.
    package var folder: String?
    package var rules: RecordingRules

    /// Whether an origin may be asked, apart from demo answers.
    package var asksOrigin: Bool { from.isEmpty ? source != .replay : from.contains(.live) }
}

extension RecordingConfiguration {
    package init() { self.init(SectionReader(nothingOf: KeyTable.service)) }

    /// Reads the sources of answers.
    /// - Parameter reader: a service or an endpoint.
    init(_ reader: SectionReader) {
        let section = reader.section("recordings")
        let (match, redact) = (section.section("match"), section.section("redact"))
        // Demo answers, if they are on, come before the origin.
        source = Self.isDemo(reader) ? .live : reader.choice(always: "source")
        from = reader.texts("from").compactMap(OrderedSource.init)
        folder = section.text("dir")
        rules = RecordingRules(
            fields: match.texts("fields"),
            matchesBody: match.bool("body"),
            ignoredQuery: match.texts("ignore_query"),
            redactedFields: redact.texts("fields"),
            redactedQuery: redact.texts("query"),
            redactedMembers: redact.texts("json").compactMap(MemberPath.read),
            maximumSize: section.bytes(always: "max_size"),
            onFailure: section.choice(always: "on_failure")
        )
        rules.matchesCredentials = match.bool("credentials")
        rules.matchesVary = match.bool("vary")
    }
}

/// The path of a member in a JSON document.
enum MemberPath {
    /// Parses the path of a member, such as `user.token`, and the forms of other tools: `$.user.token`,
    /// `$.items[*].token`.
    /// - Returns: nil if the text is no path.
    static func read(_ text: String) -> [String]? {
        var text = text[...]
        if text == "$" || text.hasPrefix("$.") { text = text.dropFirst(2) }
        let names = text.replacing("[*]", with: "").split(separator: ".", omittingEmptySubsequences: false)
        let isPath = names.allSatisfy { !$0.isEmpty && $0 != "*" && !$0.contains { "[]$".contains($0) } }
        return isPath && !text.hasPrefix("/") ? names.map(String.init) : nil
    }
}

extension RecordingConfiguration {
    /// The word of `source` for demo answers, which `demo.enabled` switches on, too.
    static let demoSource = "demo"

    static func isDemo(_ reader: SectionReader) -> Bool { reader.text("source") == demoSource }
}

extension Resolver {
    /// Reads and checks the recordings of a route.
    /// - Parameters:
    ///   - reader: a service or an endpoint, with inherited keys.
    ///   - own: the same without inherited keys.
    mutating func recording(_ reader: SectionReader, own: SectionReader) -> RecordingConfiguration {
        let result = RecordingConfiguration(reader)
        let section = own.section("recordings")
        for value in section.section("redact").items("json") {
            guard case .leaf(let leaf) = value.content, MemberPath.read(leaf.text) == nil else { continue }
            fail(
                value.position,
                "'recordings.redact.json' names members by their path, such as user.token or items.token for one in each of a list; '\(leaf.text)' is no such path"
            )
        }
        guard result.source != .live else { return result }
        guard let folder = result.folder else {
            if own.entry("source") != nil || own.entry("recordings") != nil {
                fail(
                    position(own, "source"),
                    "'source: \(result.source.rawValue)' needs a folder for recordings; add recordings: { dir: ./recordings }"
                )
            }
            return result
        }
        if result.source == .replay, let problem = FileChecks.isFolder(folder),
            let position = reader.section("recordings").position("dir")
        {
            fail(position, file: "'recordings.dir' \(problem)")
        }
        return result
    }
}

/// The properties of a service that the sources of answers depend on.
struct SourceNeeds {
    /// Whether the service has a `base_url`.
    var hasOrigin: Bool
    /// Whether calls of the service wait for its origin if it is away.
    var isParked: Bool
}

extension Resolver {
    /// Reports sources of answers that make no sense, and switches demo answers on or off as `from` says.
    /// - Parameters:
    ///   - reader: a service or an endpoint, with inherited keys.
    ///   - settings: the settings of the route; demo answers are on if they are among the sources.
    mutating func check(sources reader: SectionReader, _ needs: SourceNeeds, _ settings: inout RouteSettings) {
        guard let here = reader.position("from") else { return }
        let recording = settings.recording
        let sources = recording.from
        guard !sources.isEmpty else {
            return fail(
                here,
                "'from' is empty, so that nothing would answer; name places, such as [fresh, live, stale]"
            )
        }
        if recording.source != .live {
            fail(
                here,
                "'from' and 'source: \(recording.source.rawValue)' both say where answers come from; remove one of them"
            )
        }
        var seen: Set<OrderedSource> = []
        for source in sources where !seen.insert(source).inserted {
            fail(here, "'from' names '\(source.rawValue)' twice, and each place is asked once; remove one of the two")
        }
        if seen.count == sources.count { checkOrder(sources, here) }
        checkNeeds(sources, here, needs, settings)
        let isOrigin = sources.firstIndex(of: .live)
        if needs.isParked, let isOrigin, isOrigin + 1 < sources.count {
            fail(
                here,
                "'from' names '\(sources[isOrigin + 1].rawValue)' behind live, and with 'park' a request waits for its origin instead; remove 'park', or what is behind live"
            )
        }
        settings.demo.enabled = sources.contains(.demo) && settings.demo.hasAnswer
        if sources.count > 1 { settings.demo.unmatched = .pass }
    }

    /// Checks the order of the sources: those of the cache have a fixed order, and a fallback is the last one.
    private mutating func checkOrder(_ sources: [OrderedSource], _ here: SourcePosition) {
        let order = OrderedSource.ofCache
        let own = sources.filter { order.contains($0) }
        for (first, second) in zip(own, own.dropFirst()) {
            guard let index = order.firstIndex(of: first), let other = order.firstIndex(of: second), other < index
            else {
                continue
            }
            let why =
                switch (second, first) {
                case (.seed, _): "a seed hides what is stored, and what the origin would answer"
                case (.fresh, .live):
                    "an answer of the origin takes the place of what is fresh, and is stale when it fails"
                case (.fresh, _): "a stored response is stale only when it is not fresh"
                default: "a stale response stands in for an origin that has failed"
                }
            fail(
                here,
                "'from' names '\(second.rawValue)' behind '\(first.rawValue)', which cannot be had: \(why); write '\(second.rawValue)' before '\(first.rawValue)'"
            )
        }
        if let index = sources.firstIndex(of: .fallback), index + 1 < sources.count {
            fail(
                here,
                "'from' names '\(sources[index + 1].rawValue)' behind 'fallback', which answers whatever comes so far, so that it is never asked; put fallback at the end"
            )
        }
    }

    private mutating func checkNeeds(
        _ sources: [OrderedSource],
        _ here: SourcePosition,
        _ needs: SourceNeeds,
        _ settings: RouteSettings
    ) {
        let (cache, demo) = (settings.cache, settings.demo)
        for (index, source) in sources.enumerated() {
            switch source {
            case .seed:
                if cache.seed?.mode != .pinned {
                    fail(
                        here,
                        "'from' names seed, and there is no pinned seed folder; set cache.seed_dir, or remove seed"
                    )
                }
            case .fresh, .stale:
                if cache.mode == .none {
                    fail(
                        here,
                        "'from' names \(source.rawValue), and 'cache.mode: none' stores nothing; choose another mode, or remove \(source.rawValue)"
                    )
                }
            case .live:
                if !needs.hasOrigin {
                    fail(here, "'from' names live, and the service has no 'base_url' to ask; add one, or remove live")
                }
            case .recording:
                if settings.recording.folder == nil {
                    fail(
                        here,
                        "'from' names recording, and there is no folder for recordings; add recordings: { dir: ./recordings }"
                    )
                }
            case .demo:
                if !demo.hasAnswer {
                    fail(here, "'from' names demo, and there are no demo answers; add demo: { … }, or remove demo")
                } else if demo.hasOwnAnswer || demo.rules.contains(where: \.isUnconditional), index + 1 < sources.count
                {
                    fail(
                        here,
                        "'from' names '\(sources[index + 1].rawValue)' behind demo, which answers every request, so that it is never asked; put demo behind it, or give its answers conditions (demo.rules)"
                    )
                }
            case .fallback:
                if cache.fallback == nil {
                    fail(here, "'from' names fallback, and 'cache.fallback' is not set; set it, or remove fallback")
                }
            }
        }
    }
}
