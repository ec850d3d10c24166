// The table of keys: where answers come from, and recordings of them.

import Policies

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

    /// Among the keys that services and endpoints share.
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
            .list(.choice(AnswerRung.allCases.map(\.rawValue))),
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
