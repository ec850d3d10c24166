// `drydock status` and `reload`: the commands that ask a running daemon over its admin socket.

import ArgumentParser
import DrydockDaemon

struct Status: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Show what the daemon is doing.")
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
            /// Nil from an older daemon.
            let isPartlyDemo: Bool?

            var goal: String { isPartlyDemo == true ? "demo and \(target)" : isDemo ? "demo" : target }
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
            lines.append("service        \(service.name) \(service.match) -> \(service.goal)")
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
        let client = try options.client
        let answer = try client.request("POST", "/v1/reload")
        guard answer.status == 200 || answer.status == 422 else { throw answer.failure }
        client.sayWhich()
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
