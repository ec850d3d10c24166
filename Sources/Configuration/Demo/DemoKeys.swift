// The table of keys: `demo` of services and endpoints, its rules, their conditions, and what they remember.

import DemoMode
import Policies

extension KeyTable {
    static let failure = SectionDescriptor(
        name: "failure",
        keys: [
            KeyDescriptor(
                "chance",
                .share,
                default: "0%",
                "The percentage of answers that are failures.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "status",
                .integer(200...599),
                default: "503",
                "The status of a failure.",
                inherited: .endpoints
            ),
            KeyDescriptor("file", .demoFile, "The body of a failure, relative to files.", inherited: .endpoints),
        ] + inlineKeys(inherited: .endpoints)
    )

    /// The section `demo` of services.
    static let demo = demo(
        rule: rule(when: condition),
        [
            KeyDescriptor(
                "crud",
                .shorthand(collection, key: "file"),
                "Items over a JSON file that requests read and change, for the paths that no endpoint names.",
                inherited: .services
            )
        ]
    )
    /// The section `demo` of endpoints.
    static let endpointDemo = demo(rule: demoRule, [])

    private static let collection = SectionDescriptor(
        name: "demo.crud",
        keys: [
            KeyDescriptor(
                "file",
                .demoFile,
                "A list of items, or an object of lists, as JSON, relative to files.",
                required: true
            ),
            KeyDescriptor("id", .text(.any), default: "id", "The member that tells items apart."),
            KeyDescriptor(
                "new_ids",
                .choice(NewIDs.allCases.map(\.rawValue)),
                default: "counting",
                "How a new item gets its id: counting takes the number behind the highest one, uuid draws one."
            ),
        ]
    )

    /// The keys of a body that is written in the configuration.
    static func inlineKeys(inherited inheritance: Inheritance = .none) -> [KeyDescriptor] {
        [
            KeyDescriptor("body", .text(.any), "The body itself, in place of a file.", inherited: inheritance),
            KeyDescriptor("json", .tree, "The body itself, which is sent as JSON.", inherited: inheritance),
            KeyDescriptor(
                "template",
                .boolean,
                default: "false",
                "Whether the body is a template of Mustache; a file whose name ends in .mustache always is.",
                inherited: inheritance
            ),
        ]
    }
    /// One of `demo.rules` of an endpoint: it has all keys of the rules of services, and `params` in its condition.
    static let demoRule = rule(when: demoCondition)
    static let demoCondition = SectionDescriptor(
        name: condition.name,
        keys: condition.keys + [
            KeyDescriptor(
                "params",
                .map(.parameter, .shorthand(textTest, key: "is")),
                "Parameters of the endpoint's path, by name."
            )
        ]
    )

    private static func demo(rule: SectionDescriptor, _ more: [KeyDescriptor]) -> SectionDescriptor {
        SectionDescriptor(
            name: "demo",
            keys: demoKeys + inlineKeys(inherited: .services) + several + more + [
                KeyDescriptor(
                    "rules",
                    .sections(rule),
                    "Answers for certain requests: from top to bottom, the first rule whose 'when' holds answers.",
                    inherited: .services
                )
            ]
        )
    }

    private static let demoKeys = [
        KeyDescriptor(
            "enabled",
            .boolean,
            default: "false",
            "Whether demo answers are given instead of asking the origin.",
            inherited: .endpoints
        ),
        KeyDescriptor(
            "files",
            .path,
            "The folder of the bodies; an endpoint's file in it is NAME.json, unless file names another.",
            inherited: .endpoints
        ),
        KeyDescriptor("file", .demoFile, "The body of the answer, relative to files.", inherited: .services),
        eventsKey(inherited: .services),
        KeyDescriptor(
            "status",
            .weighted(.integer(200...599)),
            default: "200",
            "The status of the answer; or several with the share of each, such as { 200: 90%, 503: 10% }.",
            inherited: .endpoints
        ),
        KeyDescriptor(
            "headers",
            .map(.fieldName, .oneOrMore(.text(.fieldValue))),
            "Fields of the answer; several values for several lines, such as of Set-Cookie.",
            inherited: .endpoints
        ),
        KeyDescriptor(
            "latency",
            .shorthand(latency, key: "range"),
            default: "0ms",
            "How long an answer takes: a duration, a range such as 200ms..900ms, or what 'faults' knows besides.",
            inherited: .endpoints
        ),
        KeyDescriptor("failure", .section(failure), "Failures among the answers.", inherited: .endpoints),
        KeyDescriptor(
            "misbehave",
            .rules(misbehaviour, key: "kind"),
            "What answers get wrong on purpose, for whoever tests a cache: a word, a mapping, or a list of them; [] for nothing.",
            inherited: .endpoints
        ),
        KeyDescriptor(
            "unmatched",
            .choice(UnmatchedPolicy.allCases.map(\.rawValue)),
            default: "404",
            "What becomes of a request that no rule answers, where there is no other answer: 404 refuses it and says what the nearest rules want, pass goes on as if demo mode were off.",
            inherited: .endpoints
        ),
        KeyDescriptor(
            "body_limit",
            .size,
            default: "1MiB",
            "How much of a body is read for conditions; a longer one meets none of them.",
            inherited: .endpoints
        ),
        KeyDescriptor(
            "overrides",
            .word("off", or: .duration),
            default: "off",
            "Whether a request may change its own answer by the field Drydock-Override, and how long it may make it take; off: the field says nothing.",
            inherited: .endpoints
        ),
        KeyDescriptor(
            "random_seed",
            .integer(0...Int.max),
            default: "0",
            "The seed of all random draws; the same seed gives the same outcomes.",
            inherited: .endpoints
        ),
    ]

    /// The section of a rule. A key without a default here has that of the demo section around it.
    private static func rule(when condition: SectionDescriptor) -> SectionDescriptor {
        SectionDescriptor(
            name: "demo.rules[]",
            keys: [
                KeyDescriptor(
                    "name",
                    .text(.word),
                    "The name in Drydock-Demo and in messages; it is part of the key of every draw.",
                    required: true
                ),
                KeyDescriptor(
                    "when",
                    .section(condition),
                    "The requests that the rule answers; every request without it."
                ),
                KeyDescriptor(
                    "status",
                    .weighted(.integer(200...599)),
                    default: "200",
                    "The status of the answer; or several with the share of each, such as { 200: 90%, 503: 10% }."
                ),
                KeyDescriptor("file", .demoFile, "The body of the answer, relative to files."),
                eventsKey(),
                KeyDescriptor(
                    "headers",
                    .map(.fieldName, .oneOrMore(.text(.fieldValue))),
                    "Fields of the answer, beside those of the demo section."
                ),
                KeyDescriptor(
                    "latency",
                    .shorthand(latency, key: "range"),
                    "How long an answer takes, in place of the demo section's latency."
                ),
                KeyDescriptor(
                    "failure",
                    .section(failure),
                    "Failures among the rule's answers; those of the demo section are not inherited."
                ),
                KeyDescriptor(
                    "misbehave",
                    .rules(misbehaviour, key: "kind"),
                    "What answers get wrong on purpose, in place of the demo section's misbehave; [] for nothing."
                ),
                KeyDescriptor("files", .path, "The folder of the bodies, in place of the demo section's."),
                KeyDescriptor("random_seed", .integer(0...Int.max), "The seed, in place of the demo section's."),
                KeyDescriptor(
                    "state",
                    .section(scenarioStep),
                    "A step of a scenario: the rule answers in one state, and leads to the next."
                ),
                KeyDescriptor("outage", .section(outage), "The rule answers only in windows of time or of requests."),
            ] + inlineKeys() + several
        )
    }

    private static let condition = SectionDescriptor(
        name: "demo.rules[].when",
        keys: [
            KeyDescriptor("method", .oneOrMore(.text(.token)), "The method, or one of several."),
            KeyDescriptor("path", .shorthand(textTest, key: "is"), "The path behind the service's prefix, as it came."),
            KeyDescriptor(
                "query",
                .map(.queryName, .shorthand(textTest, key: "is")),
                "Items of the query, by name; one of several with that name is enough."
            ),
            KeyDescriptor(
                "only_query",
                .boolean,
                default: "false",
                "Whether the query must have no other items than those under query."
            ),
            KeyDescriptor(
                "fields",
                .map(.fieldName, .shorthand(textTest, key: "is")),
                "Fields of the request, by name."
            ),
            KeyDescriptor("cookies", .map(.parameter, .shorthand(textTest, key: "is")), "Cookies, by name."),
            KeyDescriptor("body", .section(bodyCondition), "The body of the request."),
            KeyDescriptor("nth", turn, "The one of the requests with this number, from 1."),
            KeyDescriptor("first", turn, "So many of the requests, from the first on."),
            KeyDescriptor("every", turn, "Each request whose number this divides."),
        ]
    )

    private static let turn = ValueKind.integer(1...1_000_000_000)

    private static let bodyCondition = SectionDescriptor(
        name: "demo.rules[].when.body",
        keys: [
            KeyDescriptor("is", .tree, "JSON that the body is, with members in any order."),
            KeyDescriptor("contains", .tree, "JSON that the body has in it, and perhaps more."),
            KeyDescriptor(
                "json",
                .map(.parameter, .shorthand(treeTest, key: "is")),
                "Values of a JSON body, by paths such as user.name or items.0.id."
            ),
            KeyDescriptor(
                "form",
                .map(.queryName, .shorthand(textTest, key: "is")),
                "Items of a form (application/x-www-form-urlencoded), by name."
            ),
            KeyDescriptor("text", .shorthand(textTest, key: "is"), "The body as a text."),
        ]
    )

    /// The tests of a text; several tests must all pass.
    static let textTest = SectionDescriptor(
        name: "test",
        keys: textTests + [KeyDescriptor("not", .shorthand(otherTextTest, key: "is"), "A test that must fail.")]
    )

    private static let otherTextTest = SectionDescriptor(name: "test.not", keys: textTests)

    private static let textTests = [
        KeyDescriptor("is", .text(.any), "The text that it is."),
        KeyDescriptor("contains", .text(.any), "A text that it has in it."),
        KeyDescriptor("matches", .text(.pattern), "A regular expression (PCRE2) that is found in it."),
        KeyDescriptor("one_of", .list(.text(.any)), "The texts of which it is one."),
        KeyDescriptor("present", .boolean, "Whether it is there at all."),
    ]

    /// The tests of a JSON value; several tests must all pass.
    static let treeTest = SectionDescriptor(
        name: "test",
        keys: treeTests + [KeyDescriptor("not", .shorthand(otherTreeTest, key: "is"), "A test that must fail.")]
    )

    private static let otherTreeTest = SectionDescriptor(name: "test.not", keys: treeTests)

    private static let treeTests = [
        KeyDescriptor("is", .tree, "The value that it is."),
        KeyDescriptor(
            "contains",
            .tree,
            "What it has in it: members of an object, elements of an array, part of a text."
        ),
        KeyDescriptor("matches", .text(.pattern), "A regular expression (PCRE2) that is found in it."),
        KeyDescriptor("one_of", .list(.tree), "The values of which it is one."),
        KeyDescriptor("present", .boolean, "Whether it is there at all."),
    ]
}

extension KeyTable {
    /// The keys for several answers instead of one, in rules and in the demo sections themselves.
    static let several = [
        KeyDescriptor(
            "sequence",
            .sections(step),
            "Answers one after the other; after says what comes then.",
            inherited: .services
        ),
        KeyDescriptor(
            "after",
            .choice(SequenceEnd.allCases.map(\.rawValue)),
            default: "last",
            "What answers behind the end of sequence: the sequence once more (repeat), its last answer, or a 404.",
            inherited: .services
        ),
        KeyDescriptor(
            "answers",
            .sections(weightedAnswer),
            "Answers of which one is drawn, each as often as its weight says.",
            inherited: .services
        ),
        KeyDescriptor(
            "count",
            .choice(CountScope.allCases.map(\.rawValue)),
            default: "request",
            "Which requests are counted together for sequence, nth, first and every: those with one method and target (request), or all that reach the rule (rule).",
            inherited: .services
        ),
    ]

    static let step = SectionDescriptor(name: "demo.sequence[]", keys: ofAnswers)

    static let weightedAnswer = SectionDescriptor(
        name: "demo.answers[]",
        keys: [
            KeyDescriptor("weight", .share, "How often it is drawn; all of them add up to 100%.", required: true)
        ] + ofAnswers
    )

    /// The keys of one answer among several.
    private static let ofAnswers =
        [
            KeyDescriptor("status", .integer(200...599), default: "200", "The status of the answer."),
            KeyDescriptor("file", .demoFile, "The body of the answer, relative to files."),
            KeyDescriptor(
                "headers",
                .map(.fieldName, .oneOrMore(.text(.fieldValue))),
                "Fields of the answer, beside those of all the answers."
            ),
        ] + inlineKeys()

    static let scenarioStep = SectionDescriptor(
        name: "state",
        keys: [
            KeyDescriptor("scenario", .text(.word), "The scenario, one of the service's.", required: true),
            KeyDescriptor(
                "is",
                .text(.word),
                default: ScenarioStep.initial,
                "The state in which the rule answers; every scenario begins in 'started'."
            ),
            KeyDescriptor("then", .text(.word), "The state after the answer; without it the state stays."),
        ]
    )

    static let outage = SectionDescriptor(
        name: "outage",
        keys: [
            KeyDescriptor(
                "after",
                .duration,
                default: "0s",
                "When the first window begins, from the start of the daemon or from the last 'drydock demo reset'."
            ),
            KeyDescriptor("for", .duration, "How long a window lasts; without it, for ever."),
            KeyDescriptor("every", .duration, "The time from one window to the next; without it there is one."),
            KeyDescriptor(
                "after_requests",
                .integer(0...1_000_000_000),
                default: "0",
                "How many requests that reach the rule come before its window."
            ),
            KeyDescriptor(
                "for_requests",
                .integer(1...1_000_000_000),
                "How many requests are in it; without it, all that come."
            ),
        ]
    )
}
