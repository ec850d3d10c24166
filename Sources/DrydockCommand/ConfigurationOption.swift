// Which configuration file a command reads.

import ArgumentParser
import Glibc

/// Which configuration file is meant.
struct ConfigurationOption: ParsableArguments {
    @Option(
        name: [.customShort("c"), .customLong("config")],
        help: "The configuration file; - is standard input. Default: ./drydock.yaml, else /etc/drydock/drydock.yaml."
    )
    var file: String?

    /// The file of the working folder, and that of the machine; nil where there is none.
    static var localPath: String? { present("drydock.yaml") }
    static var systemPath: String? { present("/etc/drydock/drydock.yaml") }

    private static func present(_ path: String) -> String? { access(path, F_OK) == 0 ? path : nil }

    /// The file to read.
    /// - Parameter alternative: what else can be given.
    /// - Throws: `Failure` where none is named and none is in its usual place.
    func path(alternative: String = "") throws -> String {
        if let path = file ?? Self.localPath ?? Self.systemPath { return path }
        throw Failure(
            message: "there is no ./drydock.yaml and no /etc/drydock/drydock.yaml; name a file with -c FILE"
                + alternative
        )
    }
}
