// The commands of the binary, as it describes them itself.

import Foundation
import TestSupport

/// A command by what `--experimental-dump-help` says of it.
struct CommandDescription {
    /// The words that call it, without `drydock`.
    let words: [String]
    let hasSubcommands: Bool
    /// Whether it has the option `--json`.
    let takesJSON: Bool

    private struct Dump: Decodable {
        let command: Command
    }

    private struct Command: Decodable {
        struct Argument: Decodable {
            let valueName: String?
        }

        let commandName: String
        let subcommands: [Command]?
        let arguments: [Argument]?
    }

    /// All commands, each before its subcommands; the first is `drydock` itself, which has no words.
    static func all() throws -> [CommandDescription] {
        let dump = try Shell.must(try Daemon.binary(), ["--experimental-dump-help"])
        var found: [CommandDescription] = []
        func add(_ command: Command, _ words: [String]) {
            // The library's own: it says what --help says.
            let below = (command.subcommands ?? []).filter { $0.commandName != "help" }
            found.append(
                CommandDescription(
                    words: words,
                    hasSubcommands: !below.isEmpty,
                    takesJSON: command.arguments?.contains { $0.valueName == "json" } ?? false
                )
            )
            for command in below { add(command, words + [command.commandName]) }
        }
        add(try JSONDecoder().decode(Dump.self, from: Data(dump.utf8)).command, [])
        return found
    }
}
