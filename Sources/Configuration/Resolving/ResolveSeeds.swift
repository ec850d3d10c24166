// Seeds and stored files: what their keys need beside them.

import HTTPCaching

extension Resolver {
    mutating func seed(_ reader: SectionReader) -> SeedConfiguration? {
        guard let path = reader.text("seed_dir") else { return nil }
        let result = SeedConfiguration(path: path, reader)
        if let problem = FileChecks.isFolder(path) {
            fail(place(reader, "seed_dir"), file: "'cache.seed_dir' \(problem)")
        }
        return result
    }

    /// A file is one resource's: two of them would overwrite each other.
    mutating func checkStoredFiles(_ endpoints: [(EndpointConfiguration, SectionReader)]) {
        for (endpoint, reader) in endpoints {
            guard let file = endpoint.cache.storeAs else { continue }
            let place = self.place(reader.section("cache"), "store_as")
            let isOne = endpoint.path.segments.allSatisfy { if case .literal = $0 { true } else { false } }
            if !isOne || endpoint.method != "GET" {
                fail(
                    place,
                    "'cache.store_as' keeps one resource as a file, but '\(endpoint.method) \(endpoint.path)' is not one resource; use it for a GET of one path"
                )
                continue
            }
            if !hasDiskTier || !endpoint.cache.disk || endpoint.cache.mode == .none {
                fail(
                    place,
                    "'cache.store_as' is a path under the disk tier, which this endpoint does not use; set the daemon's 'cache.disk' and the endpoint's 'cache.disk: true'"
                )
                continue
            }
            if let other = storedFiles.updateValue(endpoint.name, forKey: file) {
                fail(place, "the endpoint '\(other)' is already stored as '\(file)'; choose another name")
            }
        }
    }

    private var hasDiskTier: Bool {
        SectionReader(entries: root, section: KeyTable.root).section("cache").entry("disk") != nil
    }
}
