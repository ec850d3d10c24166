// What --help says of every command, as Texts/help.txt has it.

import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct HelpTexts {
        /// As wide as a page; a terminal's width would be another on each machine.
        private static let width = ["COLUMNS": "100"]

        @Test func theTextsAreAsTheFileHasThem() throws {
            let commands = try CommandDescription.all().map(\.words)
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
    }
}
