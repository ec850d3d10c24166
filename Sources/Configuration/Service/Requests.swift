// The changes that an endpoint makes to a request before it is sent: target, parameters and content.

import Content
import Matching
package import Policies
package import Trees

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

    /// The section `auth` of an endpoint, which may switch off that of its service.
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

    /// The keys for requests, which only endpoints have.
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

/// The changes to the requests of one endpoint.
package struct RequestConfiguration: Sendable, Equatable {
    /// The target below the base URL; nil for the client's path.
    package var to: TargetTemplate?
    /// The defaults of parameters, in the order of the file.
    package var params: [ContentTree.Member]
    /// The part of a request for parameters that `to` does not use. Default: by the method.
    package var placement: ParameterPlacement
    package var style: FormStyle
    /// Whether the style differs from the default.
    package var hasStyle: Bool
    /// The changes to the content; nil if it is sent unchanged.
    package var body: BodyConfiguration?

    /// Whether requests are sent unchanged.
    package var isEmpty: Bool { to == nil && params.isEmpty && !hasStyle && body == nil }
}

/// The changes to the content of a request.
package struct BodyConfiguration: Sendable, Equatable {
    /// The format in which the content is sent; nil for its own.
    package var encode: ContentEncodingFormat?
    /// The members that are added if the content lacks them, an object.
    package var defaults: ContentTree
    package var stripNulls: Bool
    package var keys: NameStyle?
    /// The paths of members that are times.
    package var dates: [[String]]
    /// The form in which times are sent; nil if there are none.
    package var dateForm: DateForm?
    /// The paths of members that are data.
    package var data: [[String]]
    /// The most bytes of a content that is read as a whole. Default: 1 MiB.
    package var max: Int
    package var upload: UploadConfiguration?
    package var files: [FilePartConfiguration]

    /// Whether the name of a member says that it carries credentials.
    package var hasSecrets: Bool { defaults.hasSecretNames }
}

/// The part of a multipart content that the client's content becomes.
package struct UploadConfiguration: Sendable, Equatable {
    package var name: String
    package var filename: String
    package var type: String?
}

/// A part of a multipart content that is a file.
package struct FilePartConfiguration: Sendable, Equatable {
    package var name: String
    /// The absolute path of the file.
    package var path: String
    package var filename: String
    package var type: String?
}

extension Resolver {
    /// The most bytes of a file that is a part of requests, because each request holds a copy.
    private static let largestPart = 8 << 20

    /// Reads and checks the changes to a request.
    /// - Parameter reader: an endpoint.
    mutating func request(_ reader: SectionReader, method: String) -> RequestConfiguration {
        var to: TargetTemplate?
        if case .target(let template)? = reader.leaf("to")?.scalar { to = template }
        let params = reader.trees("params")
        for entry in reader.map("params") where SecretNames.contains(entry.key) {
            fail(
                entry.position,
                "'params.\(entry.key)' looks like a credential, and parameters stand in logs and in keys of what is stored; put it under 'auth', 'headers' or 'query'"
            )
        }
        let isBody = ["POST", "PUT", "PATCH"].contains(method)
        let placement = reader.text("params_in").flatMap(ParameterPlacement.init) ?? (isBody ? .body : .query)
        if ["GET", "HEAD"].contains(method) {
            let body = reader.position("body") ?? (placement == .body ? reader.position("params_in") : nil)
            if let body {
                fail(
                    body,
                    "a \(method) has no content; remove 'body' and 'params_in: body', or write another 'method'"
                )
            }
        }
        if let to, to.hasRest, case .endpointPath(let path)? = reader.leaf("path")?.scalar, path.segments.last != .rest
        {
            fail(
                position(reader, "to"),
                "'to' ends in '*', the rest of the path, and 'path' has none; write 'path: \(path)/*', or leave it out"
            )
        }
        if let to { warn(ofUnknownParameters: to, reader, known: params.map(\.name)) }
        let style = FormStyle(reader.section("params_as"))
        let content = body(reader.section("body"))
        let changesNothing = content == body(SectionReader(nothingOf: KeyTable.body))
        return RequestConfiguration(
            to: to,
            params: params,
            placement: placement,
            style: style,
            hasStyle: style != FormStyle(SectionReader(nothingOf: KeyTable.parameterStyle)),
            body: changesNothing ? nil : content
        )
    }

    /// Warns of a parameter of `to` that is nearly one of the path, which `to` leaves out.
    private mutating func warn(ofUnknownParameters to: TargetTemplate, _ reader: SectionReader, known: [String]) {
        guard case .endpointPath(let path)? = reader.leaf("path")?.scalar else { return }
        let parameters = path.parameters
        let left = parameters.filter { !to.parameters.contains($0) }
        for name in to.parameters where !(parameters + known).contains(name) {
            guard let near = Suggestions.nearest(to: name, among: left) else { continue }
            warnings.append(
                ConfigurationError(
                    position: position(reader, "to"),
                    message:
                        "'to' has ':\(name)', which neither 'path' nor 'params' has, and leaves out ':\(near)'; write ':\(near)' if that is meant"
                )
            )
        }
    }

    private mutating func body(_ reader: SectionReader) -> BodyConfiguration {
        let dates = reader.section("dates")
        let encode = reader.text("encode").flatMap(ContentEncodingFormat.init)
        let hasUpload = reader.entry("upload") != nil
        for key in ["upload", "files"] {
            guard let position = reader.position(key), encode != .multipart else { continue }
            fail(position, "'body.\(key)' is for 'body.encode: multipart'; set that, or remove '\(key)'")
        }
        for key in ["strip_nulls", "keys", "dates", "data"] where hasUpload {
            guard let position = reader.position(key) else { continue }
            fail(
                position,
                "'body.\(key)' changes members, and with 'body.upload' the content goes on as it comes; remove one"
            )
        }
        var files: [FilePartConfiguration] = []
        for value in reader.items("files") {
            guard case .section(let entries) = value.content else { continue }
            let file = SectionReader(entries: entries, section: KeyTable.filePart)
            guard let name = file.text("name"), let path = file.text("file") else { continue }
            if let problem = FileChecks.readable(path, atMost: Self.largestPart) {
                fail(position(file, "file"), file: "'body.files.file' \(problem)")
            }
            demoFiles.append(path)
            files.append(
                FilePartConfiguration(
                    name: name,
                    path: path,
                    filename: file.text("filename") ?? String(path.split(separator: "/").last ?? ""),
                    type: file.text("type")
                )
            )
        }
        let upload = reader.section("upload")
        return BodyConfiguration(
            encode: encode,
            defaults: .object(reader.trees("defaults")),
            stripNulls: reader.bool("strip_nulls"),
            keys: reader.text("keys").flatMap(NameStyle.init),
            dates: dates.paths("members"),
            dateForm: dates.text("as").flatMap { DateForm($0) },
            data: reader.paths("data"),
            max: reader.bytes(always: "max"),
            upload: upload.text("name").flatMap { name in
                guard hasUpload else { return nil }
                return UploadConfiguration(
                    name: name,
                    filename: upload.text(always: "filename"),
                    type: upload.text("type")
                )
            },
            files: files
        )
    }
}

extension FormStyle {
    fileprivate init(_ reader: SectionReader) {
        self.init(
            arrays: reader.choice(always: "arrays"),
            booleans: reader.choice(always: "booleans"),
            order: reader.choice(always: "order")
        )
    }
}

extension SectionReader {
    /// The members of a mapping of trees.
    fileprivate func trees(_ key: String) -> [ContentTree.Member] {
        map(key).compactMap { entry in
            guard case .leaf(let leaf) = entry.value.content, case .tree(let tree) = leaf.scalar else { return nil }
            return ContentTree.Member(entry.key, tree)
        }
    }

    /// The paths of members in a list.
    fileprivate func paths(_ key: String) -> [[String]] {
        texts(key).map { $0.split(separator: ".").map(String.init) }
    }
}
