// The files that an import reads: one, or the mappings of WireMock and the bodies that they name.

import FoundationEssentials
import Interchange

/// Files of a source, which are read within bounds.
struct ImportFiles {
    /// Mapping files of one folder.
    private static let most = 10_000

    let sources: [ImportSource]
    /// Where `bodyFileName` of WireMock is looked for.
    private let bodies: String

    /// - Throws: `Failure` where the source is not there, or cannot be read.
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

    /// A file below the folder of bodies; nil where there is none, and for a name that leads out of it.
    func body(_ name: String) -> [UInt8]? {
        guard !name.split(separator: "/").contains(".."), !name.isEmpty else { return nil }
        let path = "\(bodies)/\(name)"
        // A link may lead out of a folder that somebody else has packed.
        func real(_ path: String) -> String { URL(filePath: path).resolvingSymlinksInPath().path() }
        guard real(path).hasPrefix(real(bodies) + "/") else { return nil }
        return try? Self.read(path)
    }

    /// The last part of a path.
    static func name(of path: String) -> String { path.split(separator: "/").last.map(String.init) ?? path }

    /// `./shop` for `/home/ann/shop.har`.
    static func stem(of path: String) -> String {
        let name = name(of: path)
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return "./\(name)-drydock" }
        return "./" + name[..<dot]
    }

    private static func folder(of path: String) -> String {
        guard let end = path.lastIndex(of: "/") else { return "." }
        return end == path.startIndex ? "/" : String(path[..<end])
    }

    /// - Throws: `Failure` for a file that cannot be read, or is longer than an import reads.
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
