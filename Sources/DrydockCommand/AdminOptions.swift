// The configuration and the daemon of a command: named by its options, by a configuration file, or found by the sockets
// of this user's daemons.

import ArgumentParser
import Configuration
import DrydockDaemon
import EventLoop
import Glibc
import ProxyServer

/// The options for the daemon's admin socket and the form of the output.
struct AdminOptions: ParsableArguments {
    @OptionGroup var daemon: DaemonOptions
    @Flag(help: "Print one JSON document.")
    var json = false

    /// The client of the chosen daemon.
    /// - Throws: `Failure` if there is a configuration file that does not name one, or if no daemon is found.
    var client: AdminClient { get throws { try daemon.client } }

    /// Sends an order to the daemon, reports which daemon that was, and prints its answer: unchanged with `--json`,
    /// otherwise in words.
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

/// The options for the daemon's admin socket.
struct DaemonOptions: ParsableArguments {
    @Option(
        help:
            "The admin address: unix:PATH, an absolute path, or HOST:PORT. Default: that of -c FILE, else DRYDOCK_ADMIN, else that of ./drydock.yaml, else that of this user's daemon ($XDG_RUNTIME_DIR/drydock/admin.sock or /tmp/drydock-UID/admin.sock), else that of /etc/drydock/drydock.yaml, else /run/drydock/admin.sock."
    )
    var admin: String?
    @Option(
        name: [.customShort("c"), .customLong("config")],
        help: ArgumentHelp("The daemon's configuration file, which contains its admin address.", valueName: "file"),
        completion: .file()
    )
    var file: String?

    func validate() throws {
        guard let admin else { return }
        if file != nil { throw ValidationError("-c FILE and --admin both name a daemon; give one of them") }
        if admin.hasPrefix("unix:") || admin.hasPrefix("/") || admin.contains(":") { return }
        throw ValidationError("--admin '\(admin)' is not an address; write unix:PATH, an absolute path, or HOST:PORT")
    }

    /// The client of the chosen daemon.
    /// - Throws: `Failure` if there is a configuration file that does not name one, or if no daemon is found.
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
    /// The identity of the daemon; nil if none answers.
    var which: AdminStatus.Identity? { try? request("GET", .status).successful().decode(AdminStatus.Identity.self) }

    /// Reports which daemon has been changed, on standard error, so that standard output stays as it is.
    func sayWhich() {
        var words = "daemon: \(address)"
        if let which { words += ", \(which.text)" }
        printError(words)
    }
}

extension AdminStatus.Identity {
    /// The identity as text, such as `process 7, configuration /etc/drydock/drydock.yaml`.
    var text: String { "process \(pid), configuration \(configuration ?? "from the command line")" }
}

// MARK: - The configuration file

/// The option for the configuration file.
struct ConfigurationOption: ParsableArguments {
    @Option(
        name: [.customShort("c"), .customLong("config")],
        help: "The configuration file; - is standard input. Default: ./drydock.yaml, else /etc/drydock/drydock.yaml.",
        completion: .file()
    )
    var file: String?

    /// The paths of the file in the working folder, and of the machine's; nil if there is none.
    static var localPath: String? { present("drydock.yaml") }
    static var systemPath: String? { present("/etc/drydock/drydock.yaml") }

    private static func present(_ path: String) -> String? { access(path, F_OK) == 0 ? path : nil }

    /// The path of the file to read.
    /// - Parameter alternative: the text about another way to name one.
    /// - Throws: `Failure` if no file is named and none is where it usually is.
    func path(alternative: String = "") throws -> String {
        if let path = file ?? Self.localPath ?? Self.systemPath { return path }
        throw Failure(
            message: "there is no ./drydock.yaml and no /etc/drydock/drydock.yaml; name a file with -c FILE"
                + alternative
        )
    }
}

// MARK: - A daemon that no option names

/// The search for a daemon that the options do not name: by a configuration file, or by the sockets of this user's
/// daemons.
struct DaemonSearch {
    let environment: [String: String]

    /// The address in `DRYDOCK_ADMIN`.
    var named: String? { environment["DRYDOCK_ADMIN"].flatMap { $0.isEmpty ? nil : $0 } }

    /// The default sockets of this user's daemons; only those in folders that only this user can write to.
    var own: [AdminClient] {
        DefaultAdmin.folders(environment: environment).filter { DefaultAdmin.distrust($0) == nil }.map {
            AdminClient(address: "unix:" + DefaultAdmin.socket(in: $0))
        }
    }

    var system: AdminClient { AdminClient(address: "unix:" + DefaultAdmin.systemSocket) }

    /// The daemon of a configuration file. A file with a mistake never leads to another daemon, and neither does one
    /// that leaves the address to the default.
    /// - Throws: `Failure`, with code 3 if no daemon is there.
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

    /// Whether two paths name the same file.
    private static func isSame(_ path: String, _ other: String) -> Bool {
        if other == Configuration.standardInput { return path == Configuration.standardInputName }
        var (one, two) = (stat(), stat())
        guard stat(path, &one) == 0, stat(other, &two) == 0 else { return false }
        return one.st_dev == two.st_dev && one.st_ino == two.st_ino
    }

    /// The failure if no daemon listens at any of the addresses.
    func nowhere(_ clients: [AdminClient]) -> Failure {
        var reasons = clients.map { client in
            client.isThere ? "no daemon at \(client.address): it has just come" : client.refusal(errno)
        }
        if named == nil {
            // A folder is named that exists and that others can write to; a missing one needs no warning.
            let folders = DefaultAdmin.folders(environment: environment).filter { access($0, F_OK) == 0 }
            reasons += folders.compactMap { DefaultAdmin.distrust($0).map { "\($0), so that nothing in it was asked" } }
            if own.isEmpty { reasons.insert("this user has no daemon", at: 0) }
        }
        return .noDaemon("\(reasons.joined(separator: "; ")); \(remedy(clients))")
    }

    /// What helps if none of the addresses can be used: other rights, or a daemon of another user.
    private func remedy(_ clients: [AdminClient]) -> String {
        for client in clients {
            guard !client.isThere, let remedy = AdminClient.remedy(errno) else { continue }
            return remedy
        }
        // Whoever writes 'sudo' before a command of a daemon of one's own asks root's daemon.
        if geteuid() == 0, let user = environment["SUDO_UID"].flatMap({ UInt32($0) }) {
            let sockets = DefaultAdmin.folders(environment: [:], user: user).map { DefaultAdmin.socket(in: $0) }
            if let socket = sockets.first(where: { AdminClient(address: "unix:\($0)").isThere }) {
                let name = environment["SUDO_USER"] ?? "\(user)"
                return "the daemon of \(name) is at unix:\(socket): leave out sudo, or give --admin unix:\(socket)"
            }
        }
        return "start one, or name it with --admin or -c"
    }
}
