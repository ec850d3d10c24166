// The result of an import so far: services and body files with unique names, and notes.

import Contracts
import HTTPWire
import Trees

/// Collects files and notes while a source is read.
struct ImportDraft {
    /// The most rules and endpoints of one import, so that it stays within the limits of a configuration.
    static let mostRules = 5000
    /// The most bytes of one body, which is the limit of a demo file.
    static let largestBody = 64 << 20

    let keepsSecrets: Bool
    private(set) var files: [ImportedFile] = []
    private(set) var notes: [ImportNote] = []
    private(set) var secrets = 0
    private(set) var examples: [ImportExample] = []
    private var namesByBytes: [[UInt8]: String] = [:]
    private var names: Set<String> = []

    init(_ options: ImportOptions) { keepsSecrets = options.keepsSecrets }

    mutating func leaveOut(_ location: DocumentLocation, _ reason: String) {
        notes.append(ImportNote(location, .leftOut, reason))
    }

    /// The note on a query item that is ignored because the query has another one of its name.
    static func repeated(_ name: String) -> String {
        "the item '\(name)' stands there more than once: the rule asks for its first value"
    }

    mutating func change(_ location: DocumentLocation, _ reason: String) {
        notes.append(ImportNote(location, .changed, reason))
    }

    mutating func countSecret() { secrets += 1 }

    /// Keeps the request that a rule was made from, if there is one.
    mutating func prove(_ example: ImportExample?) {
        if let example { examples.append(example) }
    }

    /// The name of a file with these bytes; equal bodies share one.
    /// - Parameters:
    ///   - type: the value of Content-Type, if there is one.
    ///   - name: the name of the rule.
    /// - Returns: nil for no bytes.
    mutating func file(_ bytes: [UInt8], type: String?, near name: String) -> String? {
        if bytes.isEmpty { return nil }
        let ending = FileEnding.of(type: type, bytes)
        if let known = namesByBytes[bytes], known.hasSuffix("." + ending) { return known }
        let stem = name.hasSuffix("." + ending) ? String(name.dropLast(ending.utf8.count + 1)) : name
        let file = WordName.unique(stem, ending: "." + ending, among: &names)
        namesByBytes[bytes] = file
        files.append(ImportedFile(name: file, bytes: bytes))
        return file
    }
}

/// Names that a configuration accepts: letters, digits, `.`, `_` and `-`.
enum WordName {
    /// A name made from a text; other characters become hyphens.
    static func word(_ text: String, or other: String, atMost length: Int = 48) -> String {
        var result = ""
        for byte in text.utf8 {
            let isPlain =
                byte >= 48 && byte <= 57 || byte | 0x20 >= 97 && byte | 0x20 <= 122 || byte == 46 || byte == 95
            if isPlain {
                result += String(Unicode.Scalar(byte))
            } else if !result.isEmpty, !result.hasSuffix("-") {
                result += "-"
            }
            if result.utf8.count == length { break }
        }
        while let last = result.last, last == "-" || last == "." { result.removeLast() }
        return result.isEmpty ? other : result
    }

    /// The name of a request from its method and the end of its path, such as `get-users-7` for `GET /v1/users/7`.
    static func of(_ method: String?, _ path: String) -> String {
        let segments = path.split(separator: "/").suffix(2).joined(separator: "-")
        return word("\(method?.lowercased() ?? "any")-\(segments.isEmpty ? "root" : segments)", or: "rule")
    }

    /// The name, or the name with a number if it is taken.
    static func unique(_ name: String, ending: String = "", among names: inout Set<String>) -> String {
        var result = name + ending
        var number = 2
        while !names.insert(result.lowercased()).inserted {
            result = "\(name)-\(number)\(ending)"
            number += 1
        }
        return result
    }
}

/// Names for texts of a source, a different one for each.
struct DistinctWords {
    private var known: [String: String]
    private var used: Set<String>

    /// - Parameter known: the names of some texts.
    init(_ known: [String: String] = [:]) {
        self.known = known
        used = Set(known.values)
    }

    mutating func word(_ text: String, or other: String) -> String {
        if let word = known[text] { return word }
        let word = WordName.unique(WordName.word(text, or: other, atMost: 200), among: &used)
        known[text] = word
        return word
    }
}

/// The ending of a file's name, which decides the type of a demo answer.
enum FileEnding {
    private static let endings: [String: String] = [
        "application/json": "json", "text/html": "html", "text/plain": "txt", "text/css": "css", "text/csv": "csv",
        "text/javascript": "js", "application/javascript": "js", "application/x-javascript": "js",
        "application/xml": "xml", "text/xml": "xml", "image/png": "png", "image/jpeg": "jpg", "image/gif": "gif",
        "image/webp": "webp", "image/svg+xml": "svg", "image/x-icon": "ico", "image/vnd.microsoft.icon": "ico",
        "font/woff": "woff", "font/woff2": "woff2", "application/pdf": "pdf", "application/zip": "zip",
        "application/wasm": "wasm", "application/yaml": "yaml",
    ]

    static func of(type: String?, _ bytes: [UInt8]) -> String {
        guard let type = type.map(MediaType.essence), !type.isEmpty else {
            let tree = try? JSONReader.read(bytes)
            if tree?.members != nil || tree?.elements != nil { return "json" }
            let isText =
                String(validating: bytes, as: UTF8.self) != nil && bytes.allSatisfy { $0 >= 32 || 9...13 ~= $0 }
            return isText ? "txt" : "bin"
        }
        if let known = endings[type] { return known }
        return type.hasSuffix("+json")
            ? "json" : type.hasSuffix("+xml") ? "xml" : type.hasPrefix("text/") ? "txt" : "bin"
    }
}

// MARK: - Services

/// A service that answers by its rules.
struct ImportedService {
    var name: String
    var prefix: String
    /// The URL to which requests would go if demo mode were off.
    var baseURL: String?
    var rules: [ImportedRule] = []
    /// The endpoints in the form of a configuration.
    var endpoints: [ContentTree] = []

    var tree: ContentTree {
        let demo = ContentTree.object(of: [
            "enabled": .bool(true),
            "files": .string("./" + ImportedConfiguration.bodies),
            "rules": .array(rules.map(\.tree)),
        ])
        // A service without its own answers would forward all other requests to the origin.
        let hasRules = !rules.isEmpty
        return .object(of: [
            "name": .string(name),
            "match": .object(of: ["prefix": .string(prefix)]),
            "base_url": baseURL.map { .string($0) },
            "unlisted": hasRules ? nil : .string("404"),
            "demo": hasRules ? demo : nil,
            "endpoints": endpoints.isEmpty ? nil : .array(endpoints),
        ])
    }
}

extension ImportDraft {
    /// Keeps the requests that the rules of a service were made from.
    mutating func prove(_ service: ImportedService) {
        for rule in service.rules {
            guard let location = rule.location else { continue }
            prove(ImportExample(rule, at: location, of: service.name, path: rule.path))
        }
    }
}

extension ImportedConfiguration {
    /// The most values of an import; a configuration file may have 200,000.
    private static let mostValues = 150_000

    /// - Throws: an error if nothing is left, or more than a configuration may hold.
    init(_ services: [ContentTree], rules: Int, _ draft: ImportDraft, _ location: DocumentLocation)
        throws(DocumentError)
    {
        guard rules > 0 else {
            let why = draft.notes.first.map { "; the first reason is at \($0)" } ?? ""
            throw DocumentError(location, "nothing in it can be made into a rule" + why)
        }
        let size = services.reduce(0) { $0 + $1.size }
        guard rules <= ImportDraft.mostRules, size <= Self.mostValues else {
            throw DocumentError(
                location,
                "it would be \(rules) rules with \(size) values, and a configuration takes \(ImportDraft.mostRules) and \(Self.mostValues); import it in parts"
            )
        }
        self.init(
            services: services,
            files: draft.files,
            notes: draft.notes,
            rules: rules,
            secrets: draft.secrets,
            examples: draft.examples
        )
    }
}
