// What endpoints make of requests: read, and checked against what the requests of their methods can be.

import Content
import Policies

extension Resolver {
    /// The longest file that is a part of requests, in bytes: each request holds a copy.
    private static let largestPart = 8 << 20

    /// - Parameter reader: of an endpoint.
    mutating func request(_ reader: SectionReader, method: String) -> RequestConfiguration {
        var to: TargetTemplate?
        if case .target(let template)? = reader.leaf("to")?.scalar { to = template }
        let params = reader.trees("params")
        for entry in reader.map("params") where SecretNames.contains(entry.key) {
            fail(
                entry.place,
                "'params.\(entry.key)' looks like a credential, and parameters stand in logs and in keys of what is stored; put it under 'auth', 'headers' or 'query'"
            )
        }
        let isBody = ["POST", "PUT", "PATCH"].contains(method)
        let placement = reader.text("params_in").flatMap(ParameterPlacement.init) ?? (isBody ? .body : .query)
        if let place = reader.place("params_in"), params.isEmpty {
            fail(place, "'params_in' needs 'params', which is not set; set it, or remove 'params_in'")
        }
        if ["GET", "HEAD"].contains(method) {
            let body = reader.place("body") ?? (placement == .body ? reader.place("params_in") : nil)
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
                place(reader, "to"),
                "'to' ends in '*', the rest of the path, and 'path' has none; write 'path: \(path)/*', or leave it out"
            )
        }
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

    private mutating func body(_ reader: SectionReader) -> BodyConfiguration {
        let dates = reader.section("dates")
        let encode = reader.text("encode").flatMap(ContentEncodingFormat.init)
        let hasUpload = reader.entry("upload") != nil
        for key in ["upload", "files"] {
            guard let place = reader.place(key), encode != .multipart else { continue }
            fail(place, "'body.\(key)' is for 'body.encode: multipart'; set that, or remove '\(key)'")
        }
        for key in ["strip_nulls", "keys", "dates", "data"] where hasUpload {
            guard let place = reader.place(key) else { continue }
            fail(
                place,
                "'body.\(key)' changes members, and with 'body.upload' the content goes on as it comes; remove one"
            )
        }
        var files: [FilePartConfiguration] = []
        for value in reader.items("files") {
            guard case .section(let entries) = value.content else { continue }
            let file = SectionReader(entries: entries, section: KeyTable.filePart)
            guard let name = file.text("name"), let path = file.text("file") else { continue }
            if let problem = FileChecks.readable(path, atMost: Self.largestPart) {
                fail(place(file, "file"), file: "'body.files.file' \(problem)")
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

    /// A list of paths of members.
    fileprivate func paths(_ key: String) -> [[String]] {
        texts(key).map { $0.split(separator: ".").map(String.init) }
    }
}
