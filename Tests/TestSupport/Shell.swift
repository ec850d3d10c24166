// Runs a client program to its end, bounded in time, and hands back what it printed.

import Foundation

/// What a program left behind.
package struct ShellResult: Sendable {
    /// nil when it ran out of time and was killed.
    package var end: ProcessEnd?
    package var output: String
    package var errors: String

    package var succeeded: Bool { end == .exited(0) }

    /// Everything a failed expectation should show.
    package var report: String {
        "\(end.map { "\($0)" } ?? "timed out")\n--- stdout\n\(output.suffix(4000))\n--- stderr\n\(errors.suffix(4000))"
    }
}

package enum Shell {
    /// The environment without proxies and without the settings of the clients that tests drive.
    package static func cleanEnvironment(adding variables: [String: String] = [:]) -> [String: String] {
        let personal = ["PIP_", "GIT_", "CURL_", "DRYDOCK_", "NOTIFY_", "LISTEN_", "XDG_"]
        var environment = ProcessInfo.processInfo.environment.filter { name, _ in
            !name.lowercased().hasSuffix("_proxy") && !personal.contains { name.hasPrefix($0) }
        }
        environment["LC_ALL"] = "C.UTF-8"
        return environment.merging(variables) { _, new in new }
    }

    /// Runs a program and waits for its end.
    ///
    /// - Parameters:
    ///   - environment: added to the clean environment.
    ///   - seconds: after that it is killed (default 120).
    package static func run(
        _ program: String,
        _ arguments: [String] = [],
        environment: [String: String] = [:],
        folder: String? = nil,
        input: [UInt8] = [],
        seconds: Double = 120
    ) throws -> ShellResult {
        let scratch = try TemporaryFolder("shell")
        let inputPath = input.isEmpty ? "/dev/null" : try scratch.write("input", input)
        let child = try ChildProcess(
            program,
            arguments,
            environment: cleanEnvironment(adding: environment),
            folder: folder,
            input: inputPath,
            output: scratch.file("output"),
            errors: scratch.file("errors")
        )
        let end = child.waitForEnd(seconds: seconds)
        if end == nil {
            child.signal(SIGKILL, group: true)
            _ = child.waitForEnd()
        }
        return ShellResult(end: end, output: scratch.text("output"), errors: scratch.text("errors"))
    }

    /// Runs a program that has to succeed; returns what it printed.
    ///
    /// - Throws: `TestSupportError.failed` with both outputs otherwise.
    @discardableResult
    package static func must(
        _ program: String,
        _ arguments: [String] = [],
        environment: [String: String] = [:],
        folder: String? = nil,
        seconds: Double = 120
    ) throws -> String {
        let result = try run(program, arguments, environment: environment, folder: folder, seconds: seconds)
        guard result.succeeded else {
            throw TestSupportError.failed("\(program) \(arguments.joined(separator: " ")): \(result.report)")
        }
        return result.output
    }
}

/// SHA-256 by `sha256sum`, as hexadecimal digits.
package enum SHA256 {
    /// - Throws: when the file cannot be read.
    package static func file(_ path: String) throws -> String {
        String(try Shell.must("sha256sum", ["--", path]).prefix(64))
    }

    package static func bytes(_ bytes: [UInt8]) throws -> String {
        String(try Shell.run("sha256sum", input: bytes).output.prefix(64))
    }
}
