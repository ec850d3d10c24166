// The release binary as a process, in a folder of its own, watched through its NOTIFY_SOCKET.

import Foundation

/// Where a daemon under test lives; known before its configuration is written.
package struct DaemonHome: Sendable {
    package let folder: TemporaryFolder
    package let port: Int

    package init() throws {
        folder = try TemporaryFolder("drydock-test")
        port = try freePort()
    }

    package var configuration: String { folder.file("drydock.yaml") }
    package var adminSocket: String { folder.file("admin.sock") }
    package var cache: String { folder.file("cache") }
    package var accessLog: String { folder.file("access.log") }
    /// `http://127.0.0.1:PORT`
    package var url: String { "http://127.0.0.1:\(port)" }
}

/// The parts of a configuration file that most tests share, and the rest as text.
package struct DaemonSettings: Sendable {
    /// The value of `cache.memory`.
    package var memory = "{ size: 64MiB }"
    /// The size of the disk tier, nil for a daemon without one.
    package var disk: String? = "2GiB"
    package var loops = "2"
    /// The value of `name`.
    package var name = "drydock"
    /// json | combined | text; written to `home.accessLog`.
    package var accessFormat = "json"
    package var logLevel = "info"
    /// Every other top-level key, as YAML that begins in column 0.
    package var rest: String

    package init(_ rest: String) {
        self.rest = rest
    }

    /// The text of the file for a daemon at `home`.
    package func text(at home: DaemonHome) -> String {
        var text = """
            listen: 127.0.0.1:\(home.port)
            admin: { listen: "unix:\(home.adminSocket)", mode: "0600" }
            loops: \(loops)
            name: \(name)
            log: { level: \(logLevel), access: "\(home.accessLog)", format: \(accessFormat) }
            cache:
              memory: \(memory)

            """
        if let disk { text += "  disk: { path: \"\(home.cache)\", size: \(disk), min_free: 1MiB }\n" }
        return text + rest + "\n"
    }
}

/// A running daemon; killed when nobody holds it any more.
package final class Daemon: Sendable {
    package let home: DaemonHome
    package let notify: NotifySocket
    private let child: Monitor<ChildProcess>
    private let environment: [String: String]
    private let launcher: [String]

    /// The path of the release binary: `DRYDOCK_BINARY`, else `.build/release/drydock` of this package.
    ///
    /// - Throws: `TestSupportError.missing` with the command that builds it.
    package static func binary() throws -> String {
        let source = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let root = source.deletingLastPathComponent().deletingLastPathComponent().path
        let path = ProcessInfo.processInfo.environment["DRYDOCK_BINARY"] ?? "\(root)/.build/release/drydock"
        guard access(path, X_OK) == 0 else {
            throw TestSupportError.missing(
                "the release binary \(path); run `swift build -c release --static-swift-stdlib`, or set DRYDOCK_BINARY"
            )
        }
        return path
    }

    /// Writes the configuration, starts `drydock serve -c FILE` and waits for READY.
    ///
    /// - Throws: `TestSupportError.failed` with the daemon's own output when it ends or says nothing for two minutes.
    package convenience init(
        _ settings: DaemonSettings,
        at home: DaemonHome? = nil,
        environment: [String: String] = [:]
    ) throws {
        let home = try home ?? DaemonHome()
        try self.init(text: settings.text(at: home), at: home, environment: environment)
    }

    /// As above, with the whole text of the file.
    /// - Parameter launcher: a program with its first arguments that becomes the daemon, such as `ip netns exec NAME`.
    package init(
        text: String,
        at home: DaemonHome,
        environment: [String: String] = [:],
        launcher: [String] = []
    ) throws {
        self.home = home
        self.environment = environment
        self.launcher = launcher
        try home.folder.write("drydock.yaml", text)
        notify = try NotifySocket(home.folder.file("notify.sock"))
        child = Monitor(try Daemon.start(home, notify, environment, launcher))
        try waitUntilReady()
    }

    /// As above, with only the text of the remaining keys.
    package convenience init(_ rest: String) throws {
        try self.init(DaemonSettings(rest))
    }

    deinit { process.signal(SIGKILL, group: true) }

    package var port: Int { home.port }
    package var url: String { home.url }
    package var process: ChildProcess { child.read { $0 } }
    package var pid: Int32 { process.pid }
    /// Everything the process wrote to its standard output and standard error, over all its starts.
    package var output: String { home.folder.text("stdout.log") }
    package var errors: String { home.folder.text("stderr.log") }
    /// The access log, a line per answer; without a line whose end is not written yet.
    package var accessLog: [String] {
        let text = readText(home.accessLog)
        return text[..<(text.lastIndex(of: "\n") ?? text.startIndex)].split(separator: "\n").map(String.init)
    }

    /// A new connection to the daemon.
    package func client(seconds: Double = 120, receiveBuffer: Int? = nil) throws -> RawClient {
        try RawClient(port: port, seconds: seconds, receiveBuffer: receiveBuffer)
    }

    /// A GET over a connection of its own.
    package func exchange(_ target: String, fields: [(String, String)] = []) throws -> RawResponse {
        try exchange("GET", target, fields: fields)
    }

    /// A request over a connection of its own.
    package func exchange(
        _ method: String,
        _ target: String,
        fields: [(String, String)] = [],
        body: [UInt8]? = nil
    ) throws -> RawResponse {
        try client().exchange(method, target, host: "127.0.0.1:\(port)", fields: fields, body: body)
    }

    /// Runs `drydock` with this daemon's admin socket in `DRYDOCK_ADMIN`.
    package func command(_ arguments: String...) throws -> ShellResult { try command(arguments) }

    package func command(_ arguments: [String]) throws -> ShellResult {
        let admin = ["DRYDOCK_ADMIN": "unix:\(home.adminSocket)"]
        return try Shell.run(try Daemon.binary(), arguments, environment: admin)
    }

    /// The value of a metric, written as `/metrics` has it: `drydock_cache_total{outcome="hit"}`.
    /// - Throws: that there is no such metric.
    package func metric(_ name: String) throws -> Int {
        let text = try RawClient(unix: home.adminSocket).exchange("/metrics").text
        let line = text.split(separator: "\n").first { $0.hasPrefix("\(name) ") }
        guard let value = line.flatMap({ Int($0.dropFirst(name.utf8.count + 1)) }) else {
            throw TestSupportError.failed("there is no metric \(name)")
        }
        return value
    }

    /// Replaces the configuration file; the daemon does not know until it reloads.
    package func rewrite(_ settings: DaemonSettings) throws {
        try home.folder.write("drydock.yaml", settings.text(at: home))
    }

    package func signal(_ number: Int32) { process.signal(number) }

    /// Ends it by `signal` (SIGTERM drains, SIGKILL does not) and says how it ended; nil after `seconds`.
    @discardableResult
    package func end(_ number: Int32 = SIGTERM, seconds: Double = 120) -> ProcessEnd? {
        signal(number)
        return process.waitForEnd(seconds: seconds)
    }

    /// Ends it by `signal` and starts it again in the same folder, on the same port.
    package func restart(_ number: Int32 = SIGTERM) throws {
        guard end(number) != nil else { throw TestSupportError.timedOut("the daemon did not end: \(errors)") }
        let readies = notify.received.count { $0 == "READY=1" }
        let fresh = try Daemon.start(home, notify, environment, launcher)
        child.update { $0 = fresh }
        try waitUntilReady(after: readies)
    }

    /// Starts another daemon in the same folder, which takes over from this one, and waits until it is ready.
    /// - Returns: the process before, which finishes its answers.
    @discardableResult
    package func takeOver() throws -> ChildProcess {
        let before = process
        let readies = notify.received.count { $0 == "READY=1" }
        let fresh = try Daemon.start(home, notify, environment, launcher, ["--take-over"])
        child.update { $0 = fresh }
        try waitUntilReady(after: readies)
        return before
    }

    private func waitUntilReady(after readies: Int = 0) throws {
        for _ in 0..<1200 {
            if notify.wait(for: "READY=1", count: readies + 1, seconds: 0.1) { return }
            if !process.isRunning { break }
        }
        throw TestSupportError.failed("the daemon is not ready\n\(output)\n\(errors)")
    }

    private static func start(
        _ home: DaemonHome,
        _ notify: NotifySocket,
        _ environment: [String: String],
        _ launcher: [String],
        _ options: [String] = []
    ) throws -> ChildProcess {
        var variables = Shell.cleanEnvironment(adding: environment)
        variables["NOTIFY_SOCKET"] = notify.path
        let command = launcher + [try binary(), "serve", "-c", home.configuration] + options
        return try ChildProcess(
            command[0],
            Array(command.dropFirst()),
            environment: variables,
            folder: home.folder.path,
            output: home.folder.file("stdout.log"),
            errors: home.folder.file("stderr.log")
        )
    }
}

// MARK: - what the kernel says about it

extension Daemon {
    /// Resident memory in bytes that no file of a disk backs.
    package var anonymousMemory: Int { ((status("RssAnon") ?? 0) + (status("RssShmem") ?? 0)) * 1024 }

    /// Bytes of all that is in memory (VmRSS).
    package var residentMemory: Int { (status("VmRSS") ?? 0) * 1024 }

    package var threads: Int { status("Threads") ?? 0 }

    package var openFiles: Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/fd").count) ?? 0
    }

    private func status(_ name: String) -> Int? {
        for line in readText("/proc/\(pid)/status").split(separator: "\n") where line.hasPrefix("\(name):") {
            return line.split(whereSeparator: { " \t".contains($0) }).dropFirst().first.flatMap { Int($0) }
        }
        return nil
    }
}
