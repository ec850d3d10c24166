// What every command prints, in words and as JSON, as the transcripts in Texts have it.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct CommandTexts {
        /// The transcripts, each a session of its own.
        private static let names = ["commands.txt", "commands-json.txt", "commands-errors.txt"]

        @Test(arguments: names) func whatCommandsPrintIsAsTheFileHasIt(name: String) throws {
            let file = GoldenFile(name)
            let transcript = try Transcript(file.text)
            let text = try transcript.text(performing: CommandWorld(StillClock()).perform)
            let difference = try file.difference(from: text, filter: "CommandTexts")
            #expect(difference == nil, "\(difference ?? "")")
        }

        @Test func everyCommandIsInATranscriptInWordsAndAsJSON() throws {
            let words = try Transcript(GoldenFile("commands.txt").text).commands
            let json = try Transcript(GoldenFile("commands-json.txt").text).commands.filter { $0.contains("--json") }
            // A command with subcommands is one of them, or prints its help, which HelpTexts compares.
            let commands = try CommandDescription.all().filter { !$0.hasSubcommands }
            #expect(commands.count >= 50 && commands.count { $0.takesJSON } >= 40)
            for command in commands {
                let name = command.words.joined(separator: " ")
                #expect(
                    words.contains { $0.starts(with: command.words) },
                    "commands.txt has no step '$ drydock \(name)'"
                )
                guard command.takesJSON else { continue }
                #expect(
                    json.contains { $0.starts(with: command.words) },
                    "commands-json.txt has no step '$ drydock \(name) --json'"
                )
            }
        }
    }
}
