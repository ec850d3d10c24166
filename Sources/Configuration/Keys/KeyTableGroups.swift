// The table of keys: groups of calls.

import Policies

extension KeyTable {
    static let group = SectionDescriptor(
        name: "groups[]",
        keys: [
            KeyDescriptor("name", .text(.word), "The name for 'drydock run' and in 'drydock jobs'.", required: true),
            KeyDescriptor(
                "mode",
                .choice(GroupMode.allCases.map(\.rawValue)),
                default: "serial",
                "Whether the calls are made one after the other, or all at once."
            ),
            KeyDescriptor(
                "on_error",
                .choice(GroupFailurePolicy.allCases.map(\.rawValue)),
                default: "stop",
                "What happens to the other calls when a call fails."
            ),
            KeyDescriptor(
                "every",
                .duration,
                "The time from one run to the next; without it only 'drydock run' runs the group."
            ),
            KeyDescriptor(
                "at_start",
                .boolean,
                default: "false",
                "With 'every': whether the first run begins as soon as the configuration is in force."
            ),
            KeyDescriptor("calls", .sections(groupCall), "The calls; a group without calls is done at once."),
        ]
    )

    private static let groupCall = SectionDescriptor(
        name: "groups[].calls[]",
        keys: [
            KeyDescriptor("service", .text(.any), "The service that is called.", required: true),
            KeyDescriptor("endpoint", .text(.any), "The endpoint of the service, for its method and path."),
            KeyDescriptor("params", .map(.queryName, .text(.any)), "The parameters of the endpoint's path."),
            KeyDescriptor("path", .text(.requestPath), "In place of 'endpoint': the path below the service."),
            KeyDescriptor("method", .text(.token), "With 'path': the method; POST with a body, otherwise GET."),
            KeyDescriptor("query", .map(.queryName, .text(.any)), "Query items; they are percent-encoded."),
            KeyDescriptor("headers", .map(.fieldName, .text(.fieldValue)), "Fields of the request."),
            KeyDescriptor("body", .text(.any), "The body of the request."),
            KeyDescriptor(
                "take",
                .map(.valueName, .text(.takenPath)),
                "Values for later calls, which write $(NAME): body.KEY.KEY, header.NAME or status."
            ),
            KeyDescriptor("when", .section(groupCondition), "A condition; the call is skipped if it is not met."),
        ]
    )

    private static let groupCondition = SectionDescriptor(
        name: "groups[].calls[].when",
        keys: [
            KeyDescriptor("value", .text(.any), "The name of a value that an earlier call takes.", required: true),
            KeyDescriptor("is", .text(.any), "The text that the value must be."),
            KeyDescriptor("is_not", .text(.any), "In place of 'is': the text that the value must not be."),
        ]
    )
}
