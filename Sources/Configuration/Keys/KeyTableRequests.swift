// The table of keys: what an endpoint makes of a request before it is sent.

import Policies

extension KeyTable {
    static let parameterStyle = SectionDescriptor(
        name: "params_as",
        keys: [
            KeyDescriptor(
                "arrays",
                .choice(FormArrays.allCases.map(\.rawValue)),
                default: "brackets",
                "How a list is written in a query or a form: brackets is a[]=1&a[]=2, repeated is a=1&a=2."
            ),
            KeyDescriptor(
                "booleans",
                .choice(FormBooleans.allCases.map(\.rawValue)),
                default: "words",
                "How true and false are written in a query or a form: words, or digits for 1 and 0."
            ),
            KeyDescriptor(
                "order",
                .choice(ParameterOrder.allCases.map(\.rawValue)),
                default: "given",
                "given leaves query items and members of the content in their order; sorted orders them by name."
            ),
        ]
    )

    static let dates = SectionDescriptor(
        name: "dates",
        keys: [
            KeyDescriptor(
                "members",
                .list(.text(.memberPath)),
                "The members that are times, as names or paths such as user.born.",
                required: true
            ),
            KeyDescriptor(
                "as",
                .text(.dateForm),
                "How they are sent: seconds, milliseconds, iso8601, or a pattern such as \"%d.%m.%Y\", in UTC.",
                required: true
            ),
        ]
    )

    static let upload = SectionDescriptor(
        name: "upload",
        keys: [
            KeyDescriptor("name", .text(.partName), "The name of the part.", required: true),
            KeyDescriptor(
                "filename",
                .text(.partName),
                default: "upload",
                "The file name of the part."
            ),
            KeyDescriptor(
                "type",
                .text(.mediaType),
                "The Content-Type of the part; if it is not set, that of the client's content."
            ),
        ]
    )

    static let filePart = SectionDescriptor(
        name: "files[]",
        keys: [
            KeyDescriptor("name", .text(.partName), "The name of the part.", required: true),
            KeyDescriptor("file", .path, "The file, of at most 8 MiB.", required: true),
            KeyDescriptor("filename", .text(.partName), "The file name of the part; the file's own if it is not set."),
            KeyDescriptor(
                "type",
                .text(.mediaType),
                "The Content-Type of the part; by the file's ending if it is not set."
            ),
        ]
    )

    static let body = SectionDescriptor(
        name: "body",
        keys: [
            KeyDescriptor(
                "encode",
                .choice(ContentEncodingFormat.allCases.map(\.rawValue)),
                "What the content is sent as; if it is not set, a form stays a form and JSON stays JSON."
            ),
            KeyDescriptor(
                "defaults",
                .map(.parameter, .tree),
                "Members that are added to the content if it does not have them."
            ),
            KeyDescriptor(
                "strip_nulls",
                .boolean,
                default: "false",
                "Whether members that are null are removed, and objects that become empty by that."
            ),
            KeyDescriptor(
                "keys",
                .choice(NameStyle.allCases.map(\.rawValue)),
                "How the members are renamed: snake makes user_id of userID, camel makes userId of user_id."
            ),
            KeyDescriptor("dates", .section(dates), "The members that are times, and how they are sent."),
            KeyDescriptor(
                "data",
                .list(.text(.memberPath)),
                "The members that are data in base64: a property list has them as data, a multipart content as files."
            ),
            KeyDescriptor(
                "max",
                .size,
                default: "1MiB",
                "The longest content that is read as a whole; a longer one is refused with 413."
            ),
            KeyDescriptor(
                "upload",
                .section(upload),
                "With encode: multipart, the client's content is sent as this part, as it comes."
            ),
            KeyDescriptor(
                "files",
                .sections(filePart),
                "With encode: multipart, files that are sent as parts."
            ),
        ]
    )

    /// `auth` of an endpoint, which may do without that of its service.
    static let endpointAuth = SectionDescriptor(
        name: "auth",
        keys: [
            KeyDescriptor(
                "mode",
                .choice(["none"]),
                "none: requests of the endpoint are sent without the service's credentials."
            )
        ] + auth.keys,
        replaces: true
    )

    /// Of endpoints alone.
    static let requests: [KeyDescriptor] = [
        KeyDescriptor(
            "to",
            .target,
            "The target below base_url, such as /v2/people/:id?expand=:expand; parameters come from the path, the query, the content and params, in this order."
        ),
        KeyDescriptor(
            "params",
            .map(.parameter, .tree),
            "Defaults of parameters; those that 'to' does not use go where params_in says."
        ),
        KeyDescriptor(
            "params_in",
            .choice(ParameterPlacement.allCases.map(\.rawValue)),
            "Where parameters go that 'to' does not use; if this is not set, into the body of POST, PUT and PATCH, and into the query of other methods."
        ),
        KeyDescriptor("params_as", .section(parameterStyle), "How parameters are written."),
        KeyDescriptor("body", .section(body), "What becomes of the content of a request."),
        KeyDescriptor(
            "auth",
            .shorthand(endpointAuth, key: "mode"),
            "Credentials that are added to requests of the endpoint, in place of the service's; none adds none."
        ),
    ]
}
