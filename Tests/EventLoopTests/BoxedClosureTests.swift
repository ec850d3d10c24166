// What keeps closures out of mutexes finds one, however it is hidden, and nothing else.

import Foundation
import TestSupport
import Testing

@Suite struct BoxedClosureTests {
    private static let script = URL(filePath: #filePath).appending(path: "../../../.ci/check-shape").standardizedFileURL

    /// What the check says of a package with these two files.
    private func findings(_ text: String, beside other: String = "") throws -> [String] {
        let folder = try TemporaryFolder()
        try folder.write("Sources/A/One.swift", text)
        try folder.write("Sources/A/Other.swift", other)
        try folder.write("Tests/ATests/Test.swift", "")
        let result = try Shell.run(Self.script.path, [folder.path])
        let lines = result.errors.split(separator: "\n").map(String.init)
        #expect(result.end == .exited(lines.isEmpty ? 0 : 1), "\(result.report)")
        #expect(lines.allSatisfy { $0.contains("a closure under a Mutex") }, "\(result.report)")
        return lines
    }

    @Test(arguments: [
        ("let a = Mutex<() -> Void>({})", ""),
        ("let a: Mutex<@Sendable (Int, [String: Int]) -> Int?>", ""),
        ("let a = Mutex<(@Sendable () async throws(E) -> Void)?>(nil)", ""),
        ("let a = Mutex<[UInt64: [@Sendable () -> Void]]>([:])", ""),
        ("let a = Mutex<(last: Int, all: [() -> Void])>((0, []))", ""),
        ("let a: Mutex<\n    @Sendable () -> Void\n>", ""),
        ("let a = Mutex { print(1) }\nlet b = Mutex({ print(1) })", ""),
        ("let a = Mutex<Act?>(nil)\ntypealias Act = @Sendable () -> Void", ""),
        ("let a = Mutex<Act?>(nil)", "package typealias Act =\n    @Sendable (Int)\n    -> Void"),
        ("let a = Mutex<[Acts]>([])", "typealias Acts = [Int: Act]\ntypealias Act = () -> Void"),
        ("let a = Mutex<Outer.Act?>(nil)", "enum Outer { typealias Act = () -> Void }"),
    ])
    func `a closure is found`(text: String, other: String) throws {
        let found = try findings(text, beside: other)
        #expect(found.count == 1, "\(found)")
        #expect(found.first?.contains("Sources/A/One.swift:") == true, "\(found)")
    }

    @Test(arguments: [
        ("let a = Mutex<[Int]>([])\nfunc b() -> Int { 1 }", ""),
        ("let a = Mutex<Box?>(nil)\nfinal class Box { let act: () -> Void }", ""),
        ("let a = Mutex(State())\nstruct State { var act: (() -> Void)? }", ""),
        // A name means what its own file says.
        ("let a = Mutex<Act?>(nil)\nfinal class Act {}", "struct Outer { typealias Act = () -> Void }"),
        ("// let a = Mutex<() -> Void>({})\nlet text = \"Mutex<() -> Void>\"", ""),
        ("let a = Mutex(made())\nlet b: (Int) -> Int", ""),
    ])
    func `nothing else is`(text: String, other: String) throws {
        #expect(try findings(text, beside: other) == [])
    }
}
