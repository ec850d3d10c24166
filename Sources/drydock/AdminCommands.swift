// `drydock status` and `reload`: the commands that ask a running daemon over its admin socket.

import ArgumentParser
import Configuration
import Drydock
import Foundation

/// Where the daemon's admin socket is, and how to print.
struct AdminOptions: ParsableArguments {
    @Option(
        help:
            "The admin address: unix:PATH, an absolute path, or HOST:PORT. Default: DRYDOCK_ADMIN, else that of ./drydock.yaml or /etc/drydock/drydock.yaml, else $XDG_RUNTIME_DIR/drydock/admin.sock, else /run/drydock/admin.sock."
    )
    var admin: String?
    @Flag(help: "Print one JSON document.")
    var json = false

    func validate() throws {
        guard let admin, !admin.hasPrefix("unix:"), !admin.hasPrefix("/"), !admin.contains(":") else { return }
        throw ValidationError("--admin '\(admin)' is no address; write unix:PATH, an absolute path, or HOST:PORT")
    }

    var client: AdminClient {
        let environment = processEnvironment()
        return AdminClient(address: admin ?? AdminClient.defaultAddress(environment, configured: Self.configured))
    }

    /// The admin address of the configuration that `serve` reads here; nil where that is none, or cannot be read.
    private static func configured(_ environment: [String: String]) -> String? {
        guard let path = ConfigurationOption.defaultPath,
            let configuration = try? Configuration.load(path: path, environment: environment)
        else { return nil }
        return configuration.admin?.listen.first?.description
    }
}

struct Status: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "What the daemon is doing.")
    @OptionGroup var options: AdminOptions

    private struct Document: Decodable {
        struct Tier: Decodable {
            let entries: Int
            let bytes: Int
            let limit: Int
        }
        struct Service: Decodable {
            let name: String
            let target: String
            let match: String
            let isDemo: Bool
        }
        let version: String
        let pid: Int
        let uptime: Int
        let configuration: String?
        let loops: Int
        let listen: [String]
        let services: [Service]
        let connections: Int
        let tunnels: Int
        let answers: Int
        let hits: Int
        let misses: Int
        let isOffline: Bool
        let clock: ClockDocument
        let memory: Tier
        let disk: Tier?
    }

    func run() throws {
        let answer = try options.client.request("GET", "/v1/status").successful()
        if options.json { return print(answer.text, terminator: "") }
        let status = try answer.decode(Document.self)
        var lines = [
            "drydock \(status.version), process \(status.pid), up \(Format.duration(status.uptime))",
            "configuration  \(status.configuration ?? "from the command line")",
            "listening on   \(status.listen.joined(separator: ", "))  (\(status.loops) loops)",
            "connections    \(status.connections), tunnels \(status.tunnels)",
            "answers        \(status.answers), hits \(status.hits), misses \(status.misses)",
            "offline        \(status.isOffline ? "yes, no origin is asked" : "no")",
            "clock          \(status.clock.line)",
            "memory         \(tier(status.memory))",
            "disk           \(status.disk.map(tier) ?? "off")",
        ]
        for service in status.services {
            lines.append(
                "service        \(service.name) \(service.match) -> \(service.isDemo ? "demo" : service.target)"
            )
        }
        print(lines.joined(separator: "\n"))
    }

    private func tier(_ tier: Document.Tier) -> String {
        "\(tier.entries) entries, \(Format.size(tier.bytes)) of \(Format.size(tier.limit))"
    }
}

struct Reload: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Tell the daemon to read its configuration again.")
    @OptionGroup var options: AdminOptions

    private struct Document: Decodable {
        let isReloaded: Bool
        let summary: String
        let errors: [String]
    }

    func run() throws {
        let answer = try options.client.request("POST", "/v1/reload")
        guard answer.status == 200 || answer.status == 422 else { throw answer.failure }
        if options.json { print(answer.text, terminator: "") }
        let result = try answer.decode(Document.self)
        guard result.isReloaded else {
            if !options.json { printError((result.errors + [result.summary]).joined(separator: "\n")) }
            throw ExitCode(1)
        }
        if !options.json { print(result.summary) }
    }
}

/// Numbers as people read them.
enum Format {
    static func size(_ bytes: Int) -> String { BatchProgress.size(Int64(bytes)) }

    static func duration(_ seconds: Int) -> String {
        switch seconds {
        case ..<120: "\(seconds)s"
        case ..<7200: "\(seconds / 60)m"
        case ..<172_800: "\(seconds / 3600)h"
        default: "\(seconds / 86400)d"
        }
    }
}
