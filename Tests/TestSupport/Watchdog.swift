// Ends the children of a test run that dies before it could end them itself, by Ctrl-C for example.

import Foundation

/// A shell that is told of every child and kills the rest when the run's end of its socket closes.
final class Watchdog: Sendable {
    /// nil when it could not be started: the run then goes on without it.
    static let shared = Watchdog()

    private let channel: Int32

    private static let script = """
        alive=" "
        while read -r sign pid; do
            case $sign in
            +) alive="$alive$pid " ;;
            -) alive="${alive%% $pid *} ${alive#* $pid }" ;;
            esac
        done
        for pid in $alive; do kill -s KILL -- "-$pid"; done
        """

    private init?() {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { return nil }
        defer { close(ends[1]) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[1], 0)
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // A group of its own, so that the Ctrl-C that ends the run does not end the watchdog first.
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP))
        let command: [String] = ["sh", "-c", Watchdog.script]
        let words = command.map { strdup($0) } + [nil]
        let variables = [strdup("PATH=/usr/bin:/bin"), nil]
        defer {
            for word in words + variables { free(word) }
        }
        var child: pid_t = 0
        guard posix_spawnp(&child, "sh", &actions, &attributes, words, variables) == 0 else {
            close(ends[0])
            return nil
        }
        channel = ends[0]
    }

    /// A child has been started; it leads a process group.
    func started(_ pid: Int32) { tell("+ \(pid)\n") }

    /// A child has been waited for, so that its number may soon be somebody else's.
    func ended(_ pid: Int32) { tell("- \(pid)\n") }

    private func tell(_ line: String) {
        _ = send(channel, line, line.utf8.count, Int32(MSG_NOSIGNAL))
    }
}
