// Reads files of other tools: recognizes their format, and makes a configuration from them.

package import Contracts
import HTTPWire
import Trees

/// Converts bytes to a configuration; it neither reads nor writes files.
package enum Importer {
    /// The most bytes of one file.
    package static let largestFile = DocumentReader.largestFile
    private static let limits = TreeLimits(depth: 64, values: 2_000_000)

    /// Reads files as a configuration.
    /// - Parameters:
    ///   - sources: one file, or the mappings of WireMock.
    ///   - format: the format of the files; nil to recognize it.
    ///   - bodyFile: reads a file that a stub of WireMock names; nil if there is none.
    /// - Throws: an error if a file cannot be read, or nothing in it can be kept.
    package static func read(
        _ sources: [ImportSource],
        _ format: ImportFormat?,
        _ options: ImportOptions,
        bodyFile: @escaping (String) -> [UInt8]?
    ) throws(DocumentError) -> ImportedConfiguration {
        var trees: [(tree: ContentTree, location: DocumentLocation)] = []
        for source in sources { trees.append((try tree(of: source, format), DocumentLocation(file: source.name))) }
        guard let first = trees.first else {
            throw DocumentError(DocumentLocation(file: "mappings"), "there is no file in it whose name ends in .json")
        }
        let known: ImportFormat
        if let format { known = format } else { known = try guess(first.tree, first.location) }
        switch known {
        case .har: return try HARImport.read(first.tree, at: first.location, options)
        case .openapi: return try OpenAPIImport.read(first.tree, at: first.location, options)
        case .postman: return try PostmanImport.read(first.tree, at: first.location, options)
        case .wiremock: return try WireMockImport.read(trees, options, bodyFile: bodyFile)
        }
    }

    private static func tree(
        of source: ImportSource,
        _ format: ImportFormat?
    ) throws(DocumentError) -> ContentTree {
        let location = DocumentLocation(file: source.name)
        guard source.bytes.count <= largestFile else {
            throw DocumentError(
                location,
                "it has \(source.bytes.count) bytes, and \(largestFile) are read at most; make it smaller"
            )
        }
        do throws(TreeError) {
            // Only OpenAPI documents are written in YAML.
            let isJSON = format.map { $0 != .openapi } ?? (bytes(source).first.map { "[{\"".utf8.contains($0) } ?? true)
            if isJSON { return try JSONReader.read(source.bytes, limits: limits, repeats: true) }
            return try DocumentReader.read(source.bytes)
        } catch {
            throw DocumentError(location, "this cannot be read: \(error)")
        }
    }

    /// The bytes without white space at their beginning.
    private static func bytes(_ source: ImportSource) -> ArraySlice<UInt8> {
        let text = source.bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? source.bytes[3...] : source.bytes[...]
        return text.drop { " \n\r\t".utf8.contains($0) }
    }

    /// The format of a document, recognized by its members.
    private static func guess(_ tree: ContentTree, _ location: DocumentLocation) throws(DocumentError) -> ImportFormat {
        if tree["log"]?["entries"] != nil { return .har }
        if tree["openapi"] != nil || tree["swagger"] != nil { return .openapi }
        if tree["info"] != nil, tree["item"]?.elements != nil { return .postman }
        if tree["collection"]?["item"] != nil {
            throw DocumentError(
                location.within("collection"),
                "a collection is within another document; export it by itself"
            )
        }
        if tree["mappings"] != nil || tree["request"] != nil && tree["response"] != nil { return .wiremock }
        let known = ImportFormat.allCases.map(\.rawValue).joined(separator: ", ")
        throw DocumentError(location, "it looks like none of \(known); say what it is with --format")
    }
}
