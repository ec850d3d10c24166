// Which daemon a command is for: never another than the one whose configuration is here.

import ArgumentParser
import Configuration
import DrydockDaemon
import Glibc
import ProxyServer

/// Where the daemon's admin socket is, and how to print.
struct AdminOptions: ParsableArguments {
    @OptionGroup var daemon: DaemonOptions
    @Flag(help: "Print one JSON document.")
    var json = false

    /// The daemon that is meant.
    /// - Throws: `Failure` where a configuration file is there and does not say which, or where no daemon is there.
    var client: AdminClient { get throws { try daemon.client } }

    /// Gives the daemon an order, says which daemon that was, and prints its answer: as it came with
    /// `--json`, or else in words.
    func order<Document: Decodable>(
        _ method: String,
        _ path: AdminPath,
        id: String = "",
        query: [AdminQuery.Item] = [],
        words: (Document) -> String
    ) throws {
        let client = try client
        let answer = try client.request(method, path, id: id, query: query).successful()
        client.sayWhich()
        if json { return print(answer.text, terminator: "") }
        print(words(try answer.decode(Document.self)))
    }
}

/// Where the daemon's admin socket is.
struct DaemonOptions: ParsableArguments {
    @Option(
        help:
            "The admin address: unix:PATH, an absolute path, or HOST:PORT. Default: that of -c FILE, else DRYDOCK_ADMIN, else that of ./drydock.yaml, else that of this user's daemon ($XDG_RUNTIME_DIR/drydock/admin.sock or /tmp/drydock-UID/admin.sock), else that of /etc/drydock/drydock.yaml, else /run/drydock/admin.sock."
    )
    var admin: String?
    @Option(
        name: [.customShort("c"), .customLong("config")],
        help: ArgumentHelp("The daemon's configuration file, which contains its admin address.", valueName: "file")
    )
    var file: String?

    func validate() throws {
        guard let admin else { return }
        if file != nil { throw ValidationError("-c FILE and --admin both name a daemon; give one of them") }
        if admin.hasPrefix("unix:") || admin.hasPrefix("/") || admin.contains(":") { return }
        throw ValidationError("--admin '\(admin)' is not an address; write unix:PATH, an absolute path, or HOST:PORT")
    }

    /// The daemon that is meant.
    /// - Throws: `Failure` where a configuration file is there and does not say which, or where no daemon is there.
    var client: AdminClient {
        get throws {
            if let admin { return AdminClient(address: admin) }
            let search = DaemonSearch(environment: processEnvironment())
            if let file { return try search.daemon(of: file) }
            if let named = search.named { return AdminClient(address: named) }
            if let path = ConfigurationOption.localPath { return try search.daemon(of: path) }
            if let own = search.own.first(where: \.isThere) { return own }
            if let path = ConfigurationOption.systemPath { return try search.daemon(of: path) }
            let known = search.own + [search.system]
            guard let found = known.first(where: \.isThere) else { throw search.nowhere(known) }
            return found
        }
    }
}

extension AdminClient {
    /// Nil where no daemon answers.
    var which: AdminStatus.Identity? { try? request("GET", .status).successful().decode(AdminStatus.Identity.self) }

    /// Says which daemon has been changed, on standard error, so that what others read stays as it is.
    func sayWhich() {
        var words = "daemon: \(address)"
        if let which { words += ", \(which.text)" }
        printError(words)
    }
}

extension AdminStatus.Identity {
    /// `process 7, configuration /etc/drydock/drydock.yaml`
    var text: String { "process \(pid), configuration \(configuration ?? "from the command line")" }
}
