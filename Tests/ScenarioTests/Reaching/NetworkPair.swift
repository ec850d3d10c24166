// A network of two hosts, made of two namespaces of the kernel and a cable between them, which nothing leaves.

import Foundation
import TestSupport

/// Gone with the object.
final class NetworkPair: Sendable {
    struct Host: Sendable {
        let namespace: String
        let address: String

        /// What a program and its arguments are put behind, to run on this host.
        var launcher: [String] { ["ip", "netns", "exec", namespace] }

        /// Runs a program on this host to its end.
        func run(_ command: String..., environment: [String: String] = [:]) throws -> ShellResult {
            try Shell.run("ip", launcher.dropFirst() + command, environment: environment)
        }
    }

    let server: Host
    let client: Host
    private static let made = Counter()

    /// - Parameter names: names of the server, which both hosts know as those of Docker Compose know one another's.
    /// - Throws: `TestSupportError.failed` where the kernel lets nobody make networks.
    init(_ names: [String]) throws {
        Self.made.add()
        let mark = "drydock-\(getpid())-\(Self.made.value)"
        server = Host(namespace: mark + "-a", address: "10.213.7.1")
        client = Host(namespace: mark + "-b", address: "10.213.7.2")
        do {
            for host in [server, client] { try Self.ip("netns", "add", host.namespace) }
            try Self.ip(
                "-n",
                server.namespace,
                "link",
                "add",
                "cable",
                "type",
                "veth",
                "peer",
                "name",
                "cable",
                "netns",
                client.namespace
            )
            for host in [server, client] {
                try Self.ip("-n", host.namespace, "addr", "add", "\(host.address)/24", "dev", "cable")
                for device in ["lo", "cable"] { try Self.ip("-n", host.namespace, "link", "set", device, "up") }
                // Put in the place of /etc/hosts by `ip netns exec`.
                let folder = "/etc/netns/\(host.namespace)"
                try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
                let lines = ["127.0.0.1 localhost", "\(server.address) \(names.joined(separator: " "))"]
                try Data((lines.joined(separator: "\n") + "\n").utf8).write(to: URL(fileURLWithPath: folder + "/hosts"))
            }
        } catch {
            Self.remove([server, client])
            throw error
        }
    }

    deinit { Self.remove([server, client]) }

    private static func remove(_ hosts: [Host]) {
        for host in hosts {
            try? ip("netns", "del", host.namespace)
            try? FileManager.default.removeItem(atPath: "/etc/netns/\(host.namespace)")
        }
        // Goes only where nobody else has something in it.
        rmdir("/etc/netns")
    }

    private static func ip(_ arguments: String...) throws { try Shell.must("ip", arguments) }

    /// Only root may make networks, and not in every container.
    static let isPossible = geteuid() == 0 && (try? NetworkPair(["server"])) != nil
}
