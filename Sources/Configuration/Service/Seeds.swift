// Seed folders: responses that exist before anything was fetched.

package import Policies
import Upstream

extension KeyTable {
    /// The keys of seeds in `cache` of services, endpoints and forward mode.
    static let seeds: [KeyDescriptor] = [
        KeyDescriptor(
            "seed_dir",
            .path,
            "A folder of responses that exist before anything was fetched.",
            inherited: .endpoints
        ),
        KeyDescriptor(
            "seed_mode",
            .choice(SeedUse.allCases.map(\.rawValue)),
            default: "pinned",
            "pinned searches the folder first, and its responses never become stale; import copies responses that are not stored yet, as stale responses, so that their first use validates them.",
            inherited: .endpoints
        ),
        KeyDescriptor(
            "seed_layout",
            .choice(SeedLayout.allCases.map(\.rawValue)),
            default: "url",
            "url has files named HOST/PATH; docker has files named MD5(PARENT)_NAME, with property lists of dates.",
            inherited: .endpoints
        ),
    ]
}

/// A seed folder of a service, an endpoint or forward mode.
package struct SeedConfiguration: Sendable, Hashable {
    /// The absolute path of a folder that existed when the configuration was read.
    package var path: String
    /// The use of the folder. Default: pinned.
    package var mode: SeedUse
    /// The names of the files in the folder. Default: url.
    package var layout: SeedLayout
}

extension SeedConfiguration {
    package init(path: String) { self.init(path: path, SectionReader(nothingOf: KeyTable.serviceCache)) }

    /// Reads the settings of a seed folder.
    /// - Parameter reader: a section `cache`.
    init(path: String, _ reader: SectionReader) {
        self.path = path
        mode = reader.choice(always: "seed_mode")
        layout = reader.choice(always: "seed_layout")
    }
}

extension Resolver {
    mutating func seed(_ reader: SectionReader) -> SeedConfiguration? {
        guard let path = reader.text("seed_dir") else { return nil }
        let result = SeedConfiguration(path: path, reader)
        if let problem = FileChecks.isFolder(path) {
            fail(position(reader, "seed_dir"), file: "'cache.seed_dir' \(problem)")
        }
        return result
    }
}
