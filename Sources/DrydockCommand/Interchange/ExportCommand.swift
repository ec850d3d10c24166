// `drydock export`: demo answers and recordings of a configuration, for other tools.

import ArgumentParser
import Configuration
import Content
import FoundationEssentials
import Interchange
import ServiceCore

struct ExportFile: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write demo answers and recordings into a file of another tool.",
        discussion: """
            Reads the configuration, its demo files and its recordings; no daemon is asked. What the other tool has nothing \
            for is told on standard error. Recordings have no credentials; those of demo rules are written as they stand.
            """
    )

    @Argument(help: "har, or wiremock for one document with mappings.")
    var format: ExportFormat
    @OptionGroup var option: ConfigurationOption
    @Option(help: "Only this service.")
    var service: String?
    @Option(help: ArgumentHelp("The file to write. Default: standard output.", valueName: "file"))
    var to: String?
    @Flag(help: "Write over a file that is there already.")
    var force = false

    func run() throws {
        let configuration = try loadConfiguration(option.path())
        if let service, !configuration.services.contains(where: { $0.name == service }) {
            throw Failure(message: "there is no service '\(service)' in the configuration")
        }
        var source = ExportSource()
        for own in configuration.services where service == nil || own.name == service { try source.add(own) }
        guard !source.rules.isEmpty else {
            for note in source.notes { printError("\(note)") }
            throw Failure(message: "there is no demo answer and no recording to write")
        }
        let export = Export.write(source.rules, format, version: DrydockVersion.current)
        let text = String(decoding: JSONWriter.bytes(export.tree), as: UTF8.self) + "\n"
        for note in source.notes + export.notes { printError("\(note)") }
        guard let to else { return print(text, terminator: "") }
        guard force || !FileManager.default.fileExists(atPath: to) else {
            throw Failure(message: "\(to) is there already; name another file, or write over it with --force")
        }
        do { try Data(text.utf8).write(to: URL(filePath: to)) } catch {
            throw Failure(message: "\(to) cannot be written: \(error)")
        }
        print("\(export.count) answers in \(to)")
    }
}

extension ExportFormat: ExpressibleByArgument {}
