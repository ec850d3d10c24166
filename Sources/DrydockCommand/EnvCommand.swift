// `drydock env`: what programs are told so that they ask the daemon as their proxy.

import ArgumentParser
import Configuration
import DrydockDaemon
import ProxyServer

struct Env: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "env",
        abstract: "Print the lines by which programs ask the daemon as their proxy.",
        discussion: """
            Without a program the lines are for a POSIX shell: eval "$(drydock env)". Where forward.intercept names hosts, they \
            also say how the program trusts the local authority, as 'drydock ca lines' does. The running daemon is asked; with \
            -c FILE that file is read, and no daemon is asked.
            """
    )
    @Argument(
        help: ArgumentHelp("\(ClientLines.names.joined(separator: ", ")). Default: shell.", valueName: "program"),
        completion: .list(ClientLines.names)
    )
    var program: String?
    @Flag(help: "Print the programs, each with what its lines are for.")
    var list = false
    @OptionGroup var options: AdminOptions

    /// The document of `--json`.
    private struct Document: Encodable {
        struct Program: Encodable {
            let name: String
            let title: String
            let lines: [String]
        }

        let proxy: String
        let noProxy: String
        let intercepted: [String]
        let certificate: String?
        let programs: [Program]
    }

    func validate() throws {
        if list, program != nil { throw ValidationError("give a program or --list, not both") }
        if let program, !ClientLines.names.contains(program) {
            throw ValidationError(
                "'\(program)' is not known; there are \(ClientLines.names.joined(separator: ", "))"
            )
        }
    }

    func run() throws {
        let (listeners, forward) = try asked()
        guard forward.isEnabled else {
            throw Failure(
                message:
                    "the daemon is no proxy for other hosts than those of its services; set forward.enabled: true, or give programs the URL of a service in place of the origin's"
            )
        }
        guard let proxy = ProxyAddress(listeners: listeners) else {
            throw Failure(
                message:
                    "clients speak plain at no TCP address (\(listeners.joined(separator: ", "))), and programs ask a proxy so; add one such as localhost:8080 to 'listen'"
            )
        }
        let all = ClientLines.environment(proxy, certificate: forward.certificate)
        let chosen = program.map { name in all.filter { $0.name == name } } ?? all
        if options.json {
            let document = Document(
                proxy: proxy.url,
                noProxy: ProxyAddress.exceptions,
                intercepted: forward.intercepted,
                certificate: forward.certificate,
                programs: chosen.map { Document.Program(name: $0.name, title: $0.title, lines: $0.lines) }
            )
            return print(String(decoding: try AdminJSON.encode(document), as: UTF8.self), terminator: "")
        }
        if list {
            return print(Format.table(all.map { [$0.name, $0.title] }).joined(separator: "\n"))
        }
        print((chosen.first?.lines ?? []).joined(separator: "\n"))
        // A file of authorities takes the place of the system's in most programs.
        if forward.certificate != nil, !forward.intercepted.contains("*") {
            printError(
                "note: most programs trust this certificate alone then; for https to hosts that are not under forward.intercept, have the system trust it by 'drydock ca trust', and leave its lines out"
            )
        }
    }

    /// The addresses and the forward mode of the daemon, or of the configuration file.
    private func asked() throws -> (listeners: [String], forward: AdminStatus.Forward) {
        if let file = options.daemon.file {
            let configuration = try loadConfiguration(file)
            let forward = AdminStatus.Forward(configuration, environment: processEnvironment())
            return (configuration.listen.map(\.description), forward)
        }
        let client = try options.client
        let status = try client.request("GET", .status).successful().decode(AdminStatus.self)
        guard let forward = status.forward else {
            throw Failure(
                message: "the daemon at \(client.address) is older than this command; restart it, or give -c FILE"
            )
        }
        return (status.listen, forward)
    }
}
