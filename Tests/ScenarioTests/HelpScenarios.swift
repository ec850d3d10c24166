// What --help says of every command, as Texts/help.txt has it.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct HelpTexts {
        /// As wide as a page; a terminal's width would be another on each machine.
        private static let width = ["COLUMNS": "100"]

        @Test func theTextsAreAsTheFileHasThem() throws {
            let commands = try Self.commands()
            #expect(commands.count >= 30 && commands.first == [])
            var text = "What every command says for --help. HelpTexts compares; DRYDOCK_WRITE_TEXTS=1 writes it anew.\n"
            for command in commands {
                let words = command + ["--help"]
                text += "\n=== drydock \(words.joined(separator: " "))\n"
                text += try Shell.must(Daemon.binary(), words, environment: Self.width)
            }
            let difference = try GoldenFile("help.txt").difference(from: text, filter: "HelpTexts")
            #expect(difference == nil, "\(difference ?? "")")
        }

        /// The words of all commands, each before its subcommands.
        private static func commands() throws -> [[String]] {
            let dump = try Shell.must(Daemon.binary(), ["--experimental-dump-help"])
            let json = try #require(try JSONSerialization.jsonObject(with: Data(dump.utf8)) as? [String: Any])
            var found: [[String]] = []
            func add(_ command: [String: Any], _ words: [String]) {
                found.append(words)
                for below in command["subcommands"] as? [[String: Any]] ?? [] {
                    // The library's own: it says what --help says.
                    guard let name = below["commandName"] as? String, name != "help" else { continue }
                    add(below, words + [name])
                }
            }
            add(try #require(json["command"] as? [String: Any]), [])
            return found
        }
    }
}
