// What the compiler of Swift 6.3 makes of errors of one type, so that a compiler that does better is noticed.

import Foundation
import LibrarySupport
import TestSupport
import Testing

@Suite struct CompilerTests {
    private static let declarations = """
        enum Failure: Error { case cancelled, other(String) }
        func download() async throws(Failure) -> Int { throw .cancelled }

        """

    /// At the top level of a program.
    private static func program(_ statement: String, _ catches: String) -> String {
        "\(declarations)\(statement) { print(try await download()) } \(catches)\n"
    }

    /// Compiles and runs a program that has a file `main.swift` alone.
    /// - Returns: what the compiler said; then what the program printed, nil where it did not compile.
    private func run(_ text: String) async throws -> (said: String, printed: String?) {
        let folder = try TemporaryFolder("drydock-compiler")
        try Data(text.utf8).write(to: URL(fileURLWithPath: folder.file("main.swift")))
        let compiled = try await end(of: ["swiftc", "-swift-version", "6", "main.swift", "-o", "main"], in: folder)
        guard compiled.isSuccess else { return (compiled.text, nil) }
        return (compiled.text, try await end(of: [folder.file("main")], in: folder).text)
    }

    private func end(of command: [String], in folder: TemporaryFolder) async throws -> (isSuccess: Bool, text: String) {
        let output = folder.file("output")
        let process = try ChildProcess(
            "/usr/bin/env",
            command,
            environment: Shell.cleanEnvironment(adding: ["SWIFT_BACKTRACE": "enable=no"]),
            folder: folder.path,
            output: output,
            errors: output
        )
        #expect(await eventually { !process.isRunning })
        return (process.waitForEnd() == .exited(0), readText(output))
    }

    @Test(arguments: ["catch .cancelled { print(\"cancelled\") }", "catch Failure.cancelled { print(\"cancelled\") }"])
    func aLastCatchWithoutACaseIsCompiled(first: String) async throws {
        let (said, printed) = try await run(Self.program("do", "\(first) catch { print(error) }"))
        #expect(printed == "cancelled\n", "\(said)")
    }

    /// Where this fails, the compiler is mended: the articles on downloading and on errors need no advice about
    /// a last `catch` any more.
    @Test func withoutOneTheCompilerCrashesAtTheTopLevel() async throws {
        let (said, printed) = try await run(Self.program("do", "catch .cancelled { print(\"cancelled\") }"))
        #expect(printed == nil && said.contains("Found ownership error"), "\(said) \(printed ?? "")")
    }
}
