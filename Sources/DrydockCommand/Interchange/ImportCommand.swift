// `drydock import`: makes a configuration and its bodies from the files of another tool.

import ArgumentParser
import Configuration
import Contracts
import FoundationEssentials
import Interchange
import Plans
import ProxyServer

struct Import: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Make a configuration of demo answers out of a file of another tool.",
        discussion: """
            Reads HAR 1.2, OpenAPI 3, collections of Postman, and mappings of WireMock: a file, or a folder with mappings and __files. Writes \
            DIR/drydock.yaml and the bodies of its answers, and says of everything that it could not keep where it stands \
            and why. Credentials are replaced.
            """
    )

    @Argument(help: "The file or folder.", completion: .file())
    var source: String
    @Option(help: "What the source is. Default: its content says.")
    var format: ImportFormat?
    @Option(
        help: ArgumentHelp(
            "The folder to write to. Default: ./NAME, the source's name without its extension.",
            valueName: "dir"
        ),
        completion: .directory
    )
    var to: String?
    @Option(help: "Of a HAR file, only the requests to this host; may be repeated.")
    var host: [String] = []
    @Option(help: "The name of the service, if there is only one.")
    var service: String?
    @Option(help: "The seed of values that are made from the schemas of OpenAPI.")
    var seed: UInt64 = 0
    @Flag(help: "Keep credentials as they are in the source.")
    var keepSecrets = false
    @Flag(help: "Write over files of an earlier import.")
    var force = false
    @Flag(help: "Fail where a request of the source is answered by another rule than the one that was made of it.")
    var strict = false
    @Flag(help: "Print one JSON document.")
    var json = false

    func run() throws {
        var options = ImportOptions()
        options.keepsSecrets = keepSecrets
        options.hosts = host.map { $0.lowercased() }
        options.service = service
        options.seed = seed
        let found = try ImportFiles(source)
        let imported: ImportedConfiguration
        do throws(DocumentError) {
            imported = try Importer.read(found.sources, format, options, bodyFile: found.body)
        } catch {
            throw Failure(message: "nothing was written: \(error)")
        }
        let path = try write(imported)
        let written: Configuration
        do throws(ConfigurationErrors) {
            written = try Configuration.load(path: path, environment: processEnvironment())
        } catch {
            throw Failure(message: "\(path) was written, but is not right:\n\(error.description)")
        }
        let proof = try ImportProof(imported, written)
        if json {
            print(try ImportReport(imported, proof, path: path).text, terminator: "")
        } else {
            report(imported, proof, path)
        }
        if strict, !proof.notes.isEmpty {
            let others = Format.count(proof.notes.count, "request of the source is", "requests of the source are")
            throw Failure(message: "\(others) answered by other rules (--strict)")
        }
    }

    private func report(_ imported: ImportedConfiguration, _ proof: ImportProof, _ path: String) {
        for note in imported.notes + proof.notes { print(note) }
        let leftOut = imported.notes.count { $0.kind == .leftOut }
        let secrets =
            imported.secrets == 0 ? "" : ", \(Format.count(imported.secrets, "value")) of credentials replaced"
        let rules = Format.count(imported.rules, "rule")
        let bodies = Format.count(imported.files.count, "body", "bodies")
        print(
            "\(rules) in \(path), \(bodies); \(leftOut) left out, \(imported.notes.count - leftOut) changed\(secrets)"
        )
        let asked = Format.count(proof.asked, "request")
        print("\(asked) of the source asked again, \(proof.notes.count) answered by other rules")
    }

    /// Writes all files, or none if one exists already.
    /// - Returns: the path of the configuration.
    private func write(_ imported: ImportedConfiguration) throws -> String {
        let folder = to ?? ImportFiles.stem(of: source)
        let path = folder + "/drydock.yaml"
        let bodies = "\(folder)/\(ImportedConfiguration.bodies)"
        let text = imported.text(comment: [
            "Made by 'drydock import' of \(ImportFiles.name(of: source)): drydock serve -c \(path)",
            "A request that no rule answers gets a 404.",
        ])
        var files = imported.files.map { (path: "\(bodies)/\($0.name)", content: Data($0.bytes)) }
        files.append((path, Data(text.utf8)))
        let manager = FileManager.default
        if !force, let taken = files.last(where: { manager.fileExists(atPath: $0.path) })?.path {
            throw Failure(
                message: "\(taken) is there already; name another folder with --to, or write over it with --force"
            )
        }
        do {
            try manager.createDirectory(atPath: bodies, withIntermediateDirectories: true)
            for file in files { try file.content.write(to: URL(filePath: file.path)) }
        } catch {
            throw Failure(message: "\(folder) cannot be written: \(error)")
        }
        return path
    }
}

extension ImportFormat: ExpressibleByArgument {}

/// The report of an import for programs.
private struct ImportReport: Encodable {
    private struct Note: Encodable {
        let file: String
        let pointer: String
        let kind: String
        let reason: String
    }

    private let configuration: String
    private let rules: Int
    private let bodies: Int
    private let credentialsReplaced: Int
    private let asked: Int
    private let answeredByOthers: Int
    private let notes: [Note]

    private enum CodingKeys: String, CodingKey {
        case configuration, rules, bodies, notes, asked
        case answeredByOthers = "answered_by_others"
        case credentialsReplaced = "credentials_replaced"
    }

    init(_ imported: ImportedConfiguration, _ proof: ImportProof, path: String) {
        configuration = path
        rules = imported.rules
        bodies = imported.files.count
        credentialsReplaced = imported.secrets
        asked = proof.asked
        answeredByOthers = proof.notes.count
        notes = (imported.notes + proof.notes).map { note in
            let kind =
                switch note.kind {
                case .leftOut: "left_out"
                case .changed: "changed"
                case .answeredByOther: "answered_by_other"
                }
            return Note(file: note.location.file, pointer: note.location.pointer, kind: kind, reason: note.reason)
        }
    }

    var text: String {
        get throws {
            String(decoding: try AdminJSON.encode(self), as: UTF8.self)
        }
    }
}

// MARK: - The files that are read

/// The files of a source, which are read within limits.
struct ImportFiles {
    /// The most mapping files of one folder.
    private static let most = 10_000

    let sources: [ImportSource]
    /// The folder in which `bodyFileName` of WireMock is looked up.
    private let bodies: String

    /// - Throws: `Failure` if the source does not exist, or cannot be read.
    init(_ path: String) throws {
        let manager = FileManager.default
        var isFolder = false
        guard manager.fileExists(atPath: path, isDirectory: &isFolder) else {
            throw Failure(message: "\(path) does not exist; name a file, or a folder with mappings of WireMock")
        }
        let folder = isFolder ? path : Self.folder(of: path)
        guard isFolder else {
            sources = [ImportSource(name: Self.name(of: path), bytes: try Self.read(path))]
            let beside = folder + "/__files"
            bodies = manager.fileExists(atPath: beside) ? beside : folder + "/../__files"
            return
        }
        let below = manager.fileExists(atPath: folder + "/mappings") ? "mappings/" : ""
        bodies = below.isEmpty ? folder + "/../__files" : folder + "/__files"
        let found = (try? manager.subpathsOfDirectory(atPath: folder + "/" + below)) ?? []
        let files = found.filter { $0.hasSuffix(".json") }.map { below + $0 }
        guard files.count <= Self.most else {
            throw Failure(message: "\(path) has more than \(Self.most) mapping files")
        }
        var sources: [ImportSource] = []
        var size = 0
        for file in files.sorted() {
            let bytes = try Self.read("\(folder)/\(file)")
            size += bytes.count
            guard size <= Importer.largestFile else {
                throw Failure(message: "the mapping files of \(path) have more than \(Importer.largestFile) bytes")
            }
            sources.append(ImportSource(name: file, bytes: bytes))
        }
        self.sources = sources
    }

    /// A file below the folder of bodies; nil if there is none, or if the name leads out of it.
    func body(_ name: String) -> [UInt8]? {
        guard !name.split(separator: "/").contains(".."), !name.isEmpty else { return nil }
        let path = "\(bodies)/\(name)"
        // A link may lead out of a folder that another person has packed.
        func real(_ path: String) -> String { URL(filePath: path).resolvingSymlinksInPath().path() }
        guard real(path).hasPrefix(real(bodies) + "/") else { return nil }
        return try? Self.read(path)
    }

    /// The last part of a path.
    static func name(of path: String) -> String { path.split(separator: "/").last.map(String.init) ?? path }

    /// The default target of a source, such as `./shop` for `/home/ann/shop.har`.
    static func stem(of path: String) -> String {
        let name = name(of: path)
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return "./\(name)-drydock" }
        return "./" + name[..<dot]
    }

    private static func folder(of path: String) -> String {
        guard let end = path.lastIndex(of: "/") else { return "." }
        return end == path.startIndex ? "/" : String(path[..<end])
    }

    /// Reads a file.
    /// - Throws: `Failure` if it cannot be read, or is longer than an import reads.
    static func read(_ path: String) throws -> [UInt8] {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        guard attributes?[.type] as? FileAttributeType != .typeDirectory else {
            throw Failure(message: "\(path) is a folder; name a file")
        }
        if let size = attributes?[.size] as? Int, size > Importer.largestFile {
            throw Failure(
                message: "\(path) has \(size) bytes, and \(Importer.largestFile) are read at most; make it smaller"
            )
        }
        do { return [UInt8](try Data(contentsOf: URL(filePath: path))) } catch {
            throw Failure(message: "\(path) cannot be read: \(error)")
        }
    }
}
