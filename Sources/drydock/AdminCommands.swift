// `drydock status`, `list` and `reload`: the commands that ask a running daemon over its admin socket.

import ArgumentParser
import Configuration
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

struct List: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "What is stored: URL, size, tier, age, freshness.",
        discussion: "Freshness is in seconds; below zero it is staleness."
    )
    @Argument(help: "The beginning of the URLs to list.")
    var prefix: String?
    @Option(help: "The most entries to print.")
    var limit = 1000
    @OptionGroup var options: AdminOptions

    private struct Document: Codable {
        struct Entry: Codable {
            let url: String
            let service: String
            let status: Int
            let size: Int?
            let tiers: [String]
            let age: Int
            let ttl: Int?
            let variant: [String: String]
        }
        var entries: [Entry]
        let next: String?
    }

    func validate() throws {
        if limit < 1 { throw ValidationError("--limit is \(limit); give a number from 1 on") }
    }

    func run() throws {
        var found: [Document.Entry] = []
        var after: String?
        repeat {
            var path = "/v1/entries?limit=\(min(limit - found.count, 1000))&prefix=\(AdminClient.escape(prefix ?? ""))"
            if let after { path += "&after=\(AdminClient.escape(after))" }
            let page = try options.client.request("GET", path).successful().decode(Document.self)
            // A page never splits a URL, so that it may hold more than was asked for.
            let entries = page.entries.prefix(limit - found.count)
            if !options.json { for entry in entries { print(line(entry)) } }
            found += entries
            after = page.next
        } while after != nil && found.count < limit
        guard options.json else { return }
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let document = Document(entries: found, next: after)
        print(String(decoding: try encoder.encode(document), as: UTF8.self))
    }

    private func line(_ entry: Document.Entry) -> String {
        let columns = [
            "\(entry.status)", entry.size.map(Format.size) ?? "?", entry.tiers.joined(separator: "+"),
            "age \(Format.duration(entry.age))", "ttl \(entry.ttl.map { "\($0)s" } ?? "?")",
            entry.service.isEmpty ? "forward" : entry.service, entry.url,
        ]
        let variant = entry.variant.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
        return columns.joined(separator: "  ") + (variant.isEmpty ? "" : "  [\(variant.joined(separator: ", "))]")
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
    static func size(_ bytes: Int) -> String {
        let units = ["B", "KiB", "MiB", "GiB", "TiB"]
        var value = Double(bytes)
        var unit = 0
        while value >= 1024, unit < units.count - 1 {
            value /= 1024
            unit += 1
        }
        return unit == 0 ? "\(bytes) B" : String(format: "%.1f %@", value, units[unit])
    }

    static func duration(_ seconds: Int) -> String {
        switch seconds {
        case ..<120: "\(seconds)s"
        case ..<7200: "\(seconds / 60)m"
        case ..<172_800: "\(seconds / 3600)h"
        default: "\(seconds / 86400)d"
        }
    }
}
