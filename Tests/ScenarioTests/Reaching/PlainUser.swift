// A user without rights, and daemons as such a user starts them by hand: no admin address, no service manager.

import Foundation
import TestSupport

/// Who runs programs, and the folder that is this user's home.
struct PlainUser {
    let id: UInt32
    let home: TemporaryFolder
    /// The daemon's program, where this user may run it.
    let binary: String

    /// Whether this process can be other users.
    static let canChange = geteuid() == 0

    /// - Parameter id: of a user that need not be known to the machine; nil is this process's own.
    init(_ id: UInt32? = nil) throws {
        self.id = id ?? geteuid()
        home = try TemporaryFolder("user")
        let program = try Daemon.binary()
        try Self.own(home.path, self.id, 0o755)
        guard self.id != geteuid() else {
            binary = program
            return
        }
        let mayRun = try Shell.run("setpriv", Self.switched(self.id) + ["test", "-x", program]).succeeded
        binary = mayRun ? program : home.file("drydock")
        if !mayRun { try Shell.must("install", ["-m", "0755", program, binary]) }
    }

    /// A user that nobody else is, so that its folder in /tmp is this scenario's alone.
    static func fresh() throws -> PlainUser { try PlainUser(UInt32.random(in: 100_000..<1_000_000_000)) }

    /// The folder for sockets that such a user has in /tmp.
    var privateFolder: String { "/tmp/drydock-\(id)" }

    /// A folder of this user's that nobody else may look into.
    func runtimeFolder(_ name: String = "run") throws -> String {
        let path = try home.folder(name)
        try Self.own(path, id, 0o700)
        return path
    }

    private static func own(_ path: String, _ id: UInt32, _ mode: mode_t) throws {
        guard chmod(path, mode) == 0, chown(path, id, geteuid() == 0 ? id : gid_t.max) == 0 else {
            throw TestSupportError.system(call: "chown \(path)", code: errno)
        }
    }

    private static func switched(_ id: UInt32) -> [String] { ["--reuid=\(id)", "--regid=\(id)", "--clear-groups"] }

    /// Program and arguments that run these as the user.
    func command(_ words: [String]) -> (program: String, arguments: [String]) {
        id == geteuid() ? (words[0], Array(words.dropFirst())) : ("setpriv", Self.switched(id) + words)
    }

    func variables(_ more: [String: String]) -> [String: String] { ["HOME": home.path].merging(more) { $1 } }

    /// Runs `drydock` with these arguments in the home.
    func drydock(
        _ arguments: String...,
        environment: [String: String] = [:],
        input: String = "",
        folder: String? = nil
    ) throws -> ShellResult {
        let (program, words) = command([binary] + arguments)
        return try Shell.run(
            program,
            words,
            environment: variables(environment),
            folder: folder ?? home.path,
            input: Array(input.utf8)
        )
    }

    func removePrivateFolder() { try? FileManager.default.removeItem(atPath: privateFolder) }
}

/// A daemon of a user; killed when nobody holds it any more.
final class PlainDaemon {
    let process: ChildProcess
    private let log: TemporaryFolder

    /// Starts `drydock serve` with these arguments, and waits until it serves, or has ended.
    convenience init(
        _ user: PlainUser,
        _ arguments: String...,
        environment: [String: String] = [:],
        input: String = "/dev/null"
    ) throws {
        try self.init(user, program: [user.binary, "serve"] + arguments, environment: environment, input: input)
    }

    init(
        _ user: PlainUser,
        program words: [String],
        environment: [String: String] = [:],
        folder: String? = nil,
        input: String = "/dev/null"
    ) throws {
        log = try TemporaryFolder("daemon")
        let (program, arguments) = user.command(words)
        process = try ChildProcess(
            program,
            arguments,
            environment: Shell.cleanEnvironment(adding: user.variables(environment)),
            folder: folder ?? user.home.path,
            input: input,
            output: log.file("output"),
            errors: log.file("errors")
        )
        // What a start says ends with where commands go.
        _ = eventually { !process.isRunning || says("commands are taken") }
    }

    deinit { process.signal(SIGKILL, group: true) }

    var output: String { log.text("output") }
    var errors: String { log.text("errors") }

    func says(_ text: String) -> Bool { errors.contains(text) }
}
