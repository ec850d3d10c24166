// A process that a test starts: its output goes to files, it is waited for by a thread, and it never outlives the test.

import Foundation

/// How a process ended.
package enum ProcessEnd: Sendable, Equatable {
    case exited(Int32)
    case signalled(Int32)
}

/// A child in a process group of its own, so that its own children end with it.
package final class ChildProcess: Sendable {
    package let pid: Int32
    private let end = Monitor<ProcessEnd?>(nil)

    /// Starts `program` (a path, or a name looked up in PATH) with standard input from a file and outputs to files.
    package init(
        _ program: String,
        _ arguments: [String],
        environment: [String: String],
        folder: String? = nil,
        input: String = "/dev/null",
        output: String = "/dev/null",
        errors: String = "/dev/null"
    ) throws {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, input, O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        posix_spawn_file_actions_addopen(&actions, 2, errors, O_WRONLY | O_CREAT | O_APPEND, 0o600)

        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var defaults = sigset_t()
        sigfillset(&defaults)
        var unblocked = sigset_t()
        sigemptyset(&unblocked)
        posix_spawnattr_setsigdefault(&attributes, &defaults)
        posix_spawnattr_setsigmask(&attributes, &unblocked)
        posix_spawnattr_setpgroup(&attributes, 0)
        let flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP
        posix_spawnattr_setflags(&attributes, Int16(flags))

        // `env -C` changes the folder and then becomes the program, so the pid stays the same.
        let command = (folder.map { ["env", "-C", $0] } ?? []) + [program] + arguments
        let words = command.map { strdup($0) } + [nil]
        let variables = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer {
            for word in words + variables { free(word) }
        }
        let (result, child) = Sockets.withoutNewDescriptors {
            var child: pid_t = 0
            return (posix_spawnp(&child, command[0], &actions, &attributes, words, variables), child)
        }
        guard result == 0 else { throw TestSupportError.system(call: "start \(program)", code: result) }
        pid = child
        Watchdog.shared?.started(child)
        let end = end
        Threads.start("wait for \(program)") { ChildProcess.reap(child, end) }
    }

    deinit {
        signal(SIGKILL, group: true)
    }

    /// Whether the process has not ended yet.
    package var isRunning: Bool { end.read { $0 == nil } }

    /// Sends a signal to the process, or its whole group, unless it has ended.
    package func signal(_ number: Int32, group: Bool = false) {
        // The lock keeps the pid from being reaped, and so from being somebody else's, meanwhile.
        end.read { ended in
            if ended == nil { _ = kill(group ? -pid : pid, number) }
        }
    }

    /// Blocks until the process has ended; nil when `seconds` (default 120) passed first.
    package func waitForEnd(seconds: Double = 120) -> ProcessEnd? {
        end.wait(seconds) { $0 != nil }
        return end.read { $0 }
    }

    private static func reap(_ pid: pid_t, _ end: Monitor<ProcessEnd?>) {
        var information = siginfo_t()
        while waitid(P_PID, id_t(pid), &information, WEXITED | WNOWAIT) != 0 && errno == EINTR {}
        end.update { ended in
            Watchdog.shared?.ended(pid)
            var status: Int32 = 0
            while waitpid(pid, &status, 0) < 0 && errno == EINTR {}
            let number = status & 0x7F
            ended = number == 0 ? .exited((status >> 8) & 0xFF) : .signalled(number)
        }
    }
}
