// Which configuration and which daemon a command is for: by its options, by a configuration file, or by the sockets of
// this user's daemons.

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

// MARK: - The configuration file

/// Which configuration file is meant.
struct ConfigurationOption: ParsableArguments {
    @Option(
        name: [.customShort("c"), .customLong("config")],
        help: "The configuration file; - is standard input. Default: ./drydock.yaml, else /etc/drydock/drydock.yaml."
    )
    var file: String?

    /// The file of the working folder, and that of the machine; nil where there is none.
    static var localPath: String? { present("drydock.yaml") }
    static var systemPath: String? { present("/etc/drydock/drydock.yaml") }

    private static func present(_ path: String) -> String? { access(path, F_OK) == 0 ? path : nil }

    /// The file to read.
    /// - Parameter alternative: what else can be given.
    /// - Throws: `Failure` where none is named and none is in its usual place.
    func path(alternative: String = "") throws -> String {
        if let path = file ?? Self.localPath ?? Self.systemPath { return path }
        throw Failure(
            message: "there is no ./drydock.yaml and no /etc/drydock/drydock.yaml; name a file with -c FILE"
                + alternative
        )
    }
}

// MARK: - A daemon that no option names

/// How a command finds a daemon that its options do not name: by a configuration file, or by the sockets of this user's
/// daemons.
struct DaemonSearch {
    let environment: [String: String]

    /// The address in `DRYDOCK_ADMIN`.
    var named: String? { environment["DRYDOCK_ADMIN"].flatMap { $0.isEmpty ? nil : $0 } }

    /// The default sockets of this user's daemons; only in folders that this user alone can write to.
    var own: [AdminClient] {
        DefaultAdmin.folders(environment: environment).filter { DefaultAdmin.distrust($0) == nil }.map {
            AdminClient(address: "unix:" + DefaultAdmin.socket(in: $0))
        }
    }

    var system: AdminClient { AdminClient(address: "unix:" + DefaultAdmin.systemSocket) }

    /// The daemon of a configuration file. A file that is there and wrong never leads to another daemon, and neither
    /// does one that leaves the address to the default.
    /// - Throws: `Failure`, with code 3 where no daemon is there.
    func daemon(of file: String) throws -> AdminClient {
        let address: ListenAddress?
        do throws(ConfigurationErrors) {
            address = try Configuration.adminAddress(path: file, environment: environment)
        } catch {
            printError(error.description)
            throw Failure(message: "no daemon was asked; correct the file, or name the daemon with --admin ADDRESS")
        }
        if let address { return AdminClient(address: address.description) }
        let known = named.map { [AdminClient(address: $0)] } ?? own + [system]
        let there = known.filter(\.isThere)
        if there.isEmpty { throw nowhere(known) }
        var others: [String] = []
        for client in there {
            guard let which = client.which else { continue }
            if let path = which.configuration, Self.isSame(path, file) { return client }
            others.append("the daemon at \(client.address) is another one (\(which.text))")
        }
        if others.isEmpty { others = there.map { "what listens at \($0.address) does not answer" } }
        throw Failure.noDaemon(
            "no daemon of \(file) was found, and none was asked: \(others.joined(separator: "; ")); start it, write 'admin: unix:/PATH' into the file, or name the daemon with --admin ADDRESS"
        )
    }

    /// Whether two paths lead to one file.
    private static func isSame(_ path: String, _ other: String) -> Bool {
        if other == Configuration.standardInput { return path == Configuration.standardInputName }
        var (one, two) = (stat(), stat())
        guard stat(path, &one) == 0, stat(other, &two) == 0 else { return false }
        return one.st_dev == two.st_dev && one.st_ino == two.st_ino
    }

    /// The failure that no daemon listens at any of the places.
    func nowhere(_ places: [AdminClient]) -> Failure {
        var reasons = places.map { place in
            let reason = place.isThere ? "it has just come" : String(cString: strerror(errno))
            return "no daemon at \(place.address): \(reason)"
        }
        if named == nil {
            // Name a folder that exists and that others can write to; a missing one needs no warning.
            let folders = DefaultAdmin.folders(environment: environment).filter { access($0, F_OK) == 0 }
            reasons += folders.compactMap { DefaultAdmin.distrust($0).map { "\($0), so that nothing in it was asked" } }
            if own.isEmpty { reasons.insert("this user has no daemon", at: 0) }
        }
        return .noDaemon("\(reasons.joined(separator: "; ")); start one, or name it with --admin or -c")
    }
}
