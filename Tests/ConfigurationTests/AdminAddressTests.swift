// Where commands find the daemon of a configuration file, and which errors keep them from asking any.

import EventLoop
import Foundation
import Testing

@testable import Configuration

@Suite struct AdminAddressTests {
    private func address(_ text: String, _ environment: [String: String] = [:]) throws -> String {
        let path = NSTemporaryDirectory() + "drydock-\(UUID().uuidString).yaml"
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: path) }
        do {
            return try Configuration.adminAddress(path: path, environment: environment)?.description ?? "the default"
        } catch {
            return "\(error)".replacingOccurrences(of: path, with: "FILE")
        }
    }

    @Test(
        arguments: [
            ("admin: unix:/a.sock", "unix:/a.sock"), ("admin: { listen: [127.0.0.1:1, unix:/a.sock] }", "127.0.0.1:1"),
            ("admin: \"${SOCKET}\"", "unix:/s.sock"), ("admin: localhost:9", "localhost:9"), ("", "the default"),
            ("listen: localhost:1", "the default"),
        ]
    )
    func `the first address of admin counts`(text: String, expected: String) throws {
        #expect(try address(text, ["SOCKET": "unix:/s.sock"]) == expected)
    }

    @Test(
        arguments: [
            ("listen: localhost:1\nadmin: none", "FILE:2:1: 'admin' is none, so that the daemon of this file takes no"),
            ("admin: { listen: none }", "FILE:1:1: 'admin' is none"),
            ("admin: []", "FILE:1:8: 'admin.listen' is an empty"),
            ("listen: localhost:1\nadmin:\n  listen: 192.0.2.1:1", "FILE:3:11: the admin API has no password"),
            ("admin: unix:/a.sock\nname: [", "FILE:"), ("admin: unix:/a.sock\nnmae: a", "FILE:2:1: unknown key 'nmae'"),
            ("admin: unix:/a.sock\nloops: many", "FILE:2:8: 'loops'"),
            ("admin: unix:/a.sock\nservices: [{ name: a, match: { prefix: /a } }]", "FILE:2:"),
            ("admin: \"${SOCKET}\"", "FILE:1:8: 'admin' the environment variable SOCKET is not set"),
            ("admin: \"${SOCKET}\"\nnmae: a", "FILE:2:1: unknown key 'nmae'"),
        ]
    )
    func `a file that is wrong, or wants none, is an error with its position`(text: String, expected: String) throws {
        let said = try address(text)
        #expect(said.hasPrefix(expected), "\(said)")
        #expect(!said.contains("\n"), "\(said)")
    }

    @Test(
        arguments: [
            "defaults: { headers: { set: { X-Key: \"${ABSENT_KEY}\" } } }",
            "services: [{ name: a, match: { prefix: /a }, base_url: \"${ABSENT_URL}\" }]",
            "services: [{ name: a, match: { prefix: /a }, base_url: https://a.test, tls: { ca: /absent/ca.pem } }]",
            "services: [{ name: a, match: { prefix: /a }, base_url: http://a.test, cache: { seed_dir: /absent } }]",
            "log: { access: /absent/folder/access.log }", "include: [/absent/services.yaml]",
            "cache: { disk: { path: /dev/null } }",
            "services: [{ name: a, match: { prefix: /a }, base_url: http://a.test, "
                + "cache: { fallback: { file: /absent.png } } }]",
        ]
    )
    func `what may be otherwise for the daemon is none`(rest: String) throws {
        #expect(try address("admin: unix:/a.sock\n" + rest) == "unix:/a.sock")
        #expect(try address(rest) == "the default")
    }
}
