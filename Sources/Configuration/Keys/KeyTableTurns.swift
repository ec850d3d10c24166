// The table of keys: what rules of demo mode remember, and answers one after the other or by weight.

import Policies

extension KeyTable {
    /// Several answers in place of one, of rules and of services and endpoints themselves.
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

    /// Of one answer among several.
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
