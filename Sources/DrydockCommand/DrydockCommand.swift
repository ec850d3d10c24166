// The command line: its commands, and its exit codes.

import ArgumentParser
import DrydockDaemon
import Glibc
import ServiceCore

/// The command `drydock` with its subcommands.
struct DrydockCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "drydock",
        abstract: "A caching HTTP proxy: it keeps programs working when the origin is slow or down.",
        discussion: """
            Exit codes: 0 success, 1 failure, 2 wrong usage, 3 no daemon, 4 recordings have drifted.
            'drydock config default' prints every key of the configuration file with its default.
            """,
        version: DrydockVersion.current,
        subcommands: [
            Serve.self, Check.self, Config.self, Reload.self, Status.self, Ready.self, List.self, Explain.self,
            Offline.self, Clock.self, Log.self, Size.self, Prefetch.self, Run.self, Jobs.self, Cancel.self, Events.self,
            Top.self, Tail.self,
            Parked.self, Seed.self,
            Record.self, Drift.self, Purge.self, Pin.self, Unpin.self, Pins.self, Journal.self, Verify.self, Demo.self,
            Import.self, ExportFile.self, CA.self, Env.self,
        ]
    )
}

@main enum Main {
    static func main() async {
        do {
            var command = try DrydockCommand.parseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch let failure as Failure {
            printError(StandardErrorLog.failure("drydock: \(failure.message)", processEnvironment()))
            exit(failure.code)
        } catch {
            let code = DrydockCommand.exitCode(for: error)
            guard !code.isSuccess else { DrydockCommand.exit(withError: error) }
            // A command that has printed what is wrong ends with its code alone.
            let message = DrydockCommand.fullMessage(for: error)
            if !message.isEmpty { printError(message) }
            exit(code == .validationFailure ? 2 : code.rawValue)
        }
    }
}
