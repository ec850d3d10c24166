// `drydock seed`: stored responses into a folder that anything can read, and a folder into the store.

import ArgumentParser
import Foundation

struct Seed: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Copy what is stored into a folder, or a folder into the store.",
        discussion: """
            A folder has a file HOST/PATH for each response, and beside it a JSON document with its URL, status and fields. \
            The daemon reads and writes the folder, so that its user needs the permissions. A folder can also be used in \
            place: cache: { seed_dir: DIR }.
            """,
        subcommands: [Export.self, Import.self]
    )

    struct Export: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Write what is stored into a folder.",
            discussion:
                "Seeds of the same URL are replaced, and others stay. What only one user may have been told is left out."
        )
        @Argument(help: "The folder; it is made where there is none.")
        var dir: String
        @Option(help: "Only what is stored for this service.")
        var service: String?
        @OptionGroup var options: AdminOptions

        private struct Document: Decodable {
            let written: Int
            let bytes: Int
            let skipped: Int
            let failed: Int
            let firstError: String?
        }

        func run() throws {
            var path = "/v1/seed?export=\(AdminClient.escape(Seed.absolute(dir)))"
            if let service { path += "&service=\(AdminClient.escape(service))" }
            let answer = try options.patient.request("POST", path).successful()
            let result = try answer.decode(Document.self)
            if options.json {
                print(answer.text, terminator: "")
            } else {
                print(
                    "\(result.written) written (\(Format.size(result.bytes))), \(result.skipped) left out, \(result.failed) failed"
                )
            }
            if let error = result.firstError { throw Failure(message: error) }
        }
    }

    struct Import: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Store what a folder has and what is not stored yet.",
            discussion: """
                What is stored and as new stays. What is imported is stale from that moment on, so that its first use checks \
                it with the origin. In the old layout a name tells a hash of its folder only: those below base URLs and \
                endpoints are known, others are named with --parent.
                """
        )
        @Argument(help: "The folder.")
        var dir: String
        @Option(help: "url or docker. Default: as the names look.")
        var layout: Layout?
        @Option(help: "The URL of a folder that files of the old layout come from; may be given several times.")
        var parent: [String] = []
        @OptionGroup var options: AdminOptions

        enum Layout: String, ExpressibleByArgument, CaseIterable { case url, docker }

        private struct Document: Decodable {
            let imported: Int
            let kept: Int
            let unknown: Int
            let refused: Int
            let failed: Int
            let firstError: String?
        }

        func run() throws {
            var path = "/v1/seed?import=\(AdminClient.escape(Seed.absolute(dir)))"
            if let layout { path += "&layout=\(layout.rawValue)" }
            for url in parent { path += "&parent=\(AdminClient.escape(url))" }
            let answer = try options.patient.request("POST", path).successful()
            let result = try answer.decode(Document.self)
            if options.json {
                print(answer.text, terminator: "")
            } else {
                let rest = "\(result.unknown) unknown, \(result.refused) refused, \(result.failed) failed"
                print("\(result.imported) imported, \(result.kept) stored already, \(rest)")
            }
            if let error = result.firstError { throw Failure(message: error) }
        }
    }

    /// The daemon has a working folder of its own.
    private static func absolute(_ path: String) -> String {
        path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
    }
}

extension AdminOptions {
    /// For orders that take their time.
    fileprivate var patient: AdminClient {
        var client = client
        client.patience = 3600
        return client
    }
}
