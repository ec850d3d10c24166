// `drydock seed`: exports stored responses into a folder in a common form, and imports a folder into the store.

public import ArgumentParser
import DrydockDaemon
import FoundationEssentials
public import Policies
import ProxyServer

struct Seed: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Copy stored responses into a folder, or a folder into the store.",
        discussion: """
            The folder has a file HOST/PATH for each response, and beside it a JSON document with its URL, status and fields. \
            The daemon reads and writes the folder, so its user needs the permissions. A service can also use such a folder \
            directly: cache: { seed_dir: DIR }.
            """,
        subcommands: [Export.self, Import.self]
    )

    struct Export: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Write stored responses into a folder.",
            discussion:
                "Seeds of the same URL are replaced, and others stay. Responses to requests with credentials are left out."
        )
        @Argument(help: "The folder; it is created if it does not exist.", completion: .directory)
        var dir: String
        @Option(help: "Only the stored responses of this service; 'forward' is forward mode.")
        var service: String?
        @OptionGroup var options: AdminOptions

        func run() throws {
            var query: [AdminQuery.Item] = [("export", Seed.absolute(dir))]
            if let service { query.append(("service", service)) }
            try Seed.export(.seed, query, options)
        }
    }

    struct Import: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Store the responses of a folder that are not stored yet.",
            discussion: """
                A stored response stays unless the seed is newer. An imported response is stale, so its first use validates \
                it with the origin. In the docker layout a file name has only a hash of the URL's folder: Drydock tries the \
                folders of base URLs and endpoints, and --parent names others.
                """
        )
        @Argument(help: "The folder.", completion: .directory)
        var dir: String
        @Option(help: "url or docker. Default: recognized by the file names.")
        var layout: SeedLayout?
        @Option(help: "The URL of a folder from which files in the docker layout come; may be repeated.")
        var parent: [String] = []
        @OptionGroup var options: AdminOptions

        func run() throws {
            var query: [AdminQuery.Item] = [("import", Seed.absolute(dir))]
            if let layout { query.append(("layout", layout.rawValue)) }
            for url in parent { query.append(("parent", url)) }
            let answer = try Seed.order(.seed, query, options)
            let result = try answer.decode(AdminSeedImport.self)
            if options.json {
                print(answer.text, terminator: "")
            } else {
                let rest = "\(result.unknown) unknown, \(result.refused) refused, \(result.failed) failed"
                print("\(result.imported) imported, \(result.kept) stored already, \(rest)")
            }
            if let error = result.firstError { throw Failure(message: error) }
        }
    }

    /// The absolute path, since the daemon has another working folder.
    static func absolute(_ path: String) -> String {
        path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
    }

    /// Orders an export, and prints its result.
    static func export(_ path: AdminPath, _ query: [AdminQuery.Item], _ options: AdminOptions) throws {
        let answer = try order(path, query, options)
        let result = try answer.decode(AdminSeedExport.self)
        if options.json {
            print(answer.text, terminator: "")
        } else {
            print(
                "\(result.written) written (\(Format.size(result.bytes))), \(result.skipped) left out, \(result.failed) failed"
            )
        }
        if let error = result.firstError { throw Failure(message: error) }
    }

    /// Sends an order that may take long.
    private static func order(
        _ path: AdminPath,
        _ query: [AdminQuery.Item],
        _ options: AdminOptions
    ) throws -> AdminClient.Answer {
        var client = try options.client
        client.timeout = 3600
        let answer = try client.request("POST", path, query: query).successful()
        client.sayWhich()
        return answer
    }
}

extension SeedLayout: ExpressibleByArgument {}
