// The name of a daemon whose file gives none: the same at every start, and no other daemon's.

import EventLoop
import Testing

@testable import Configuration

@Suite struct DefaultNameTests {
    private static func made(_ listen: String, machine: String = "a", process: Int32 = 1) throws -> String {
        DefaultName.made(
            listen: try load("listen: \(listen)").listen.map(\.address),
            machine: machine,
            process: process
        )
    }

    @Test func followsFromTheMachineAndTheAddresses() throws {
        let name = try Self.made("localhost:8080")
        #expect(name.wholeMatch(of: #/drydock-[0-9a-f]{8}/#) != nil)
        #expect(try Self.made("localhost:8080", process: 2) == name)
        let others = [
            try Self.made("localhost:8080", machine: "b"), try Self.made("localhost:8081"),
            try Self.made("127.0.0.1:8080"), try Self.made("[localhost:8080, localhost:8081]"),
            try Self.made("\"unix:/run/drydock/proxy.sock\""),
        ]
        #expect(Set(others + [name]).count == others.count + 1)
    }

    @Test(arguments: ["localhost:0", "[localhost:8080, \"127.0.0.1:0\"]"])
    func followsFromTheProcessWhereTheKernelChoosesThePort(_ listen: String) throws {
        #expect(try Self.made(listen) == Self.made(listen))
        #expect(try Self.made(listen) != Self.made(listen, process: 2))
    }

    @Test func isWhatAnEmptyFileSays() throws {
        let made = DefaultName.made(listen: Configuration().listen.map(\.address))
        #expect(try load("").name == made && load("name: auto").name == made)
        #expect(try load("").shown().contains("\nname: \(made)\n"))
        #expect(try load("listen: localhost:1").name == DefaultName.made(listen: [.tcp(host: "localhost", port: 1)]))
        var options = URLOptions()
        options.listen = ["localhost:1"]
        let url = try URLConfiguration.make("http://a", options, environment: [:])
        #expect(try url.name == load("listen: localhost:1").name)
    }

    @Test func isNotUsedWhereTheFileGivesOne() throws {
        #expect(try load("name: drydock").name == "drydock")
        #expect(try load("name: drydock").shown().contains("\nname: drydock\n"))
    }

    @Test func aReloadKeepsIt() throws {
        let old = try load("listen: localhost:1")
        #expect(try RestartDifference.all(in: load("listen: localhost:2"), since: old).map(\.key) == ["listen"])
        let named = try RestartDifference.all(in: load("listen: localhost:1\nname: n"), since: old)
        #expect(
            named.map(\.description) == [
                "test.yaml:2:1: 'name' cannot change from auto to n while the daemon runs; restart it, or restore the old value"
            ]
        )
    }

    @Test func whatIsNoNameIsAnError() {
        expectError("name: a b", "1:7", ["'a b' is not a token", "or 'auto'"])
    }
}
