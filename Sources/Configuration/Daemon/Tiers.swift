// The memory tier and the disk tier: their keys, their model, and how large they may be.

extension KeyTable {
    static let memoryTier = SectionDescriptor(
        name: "memory",
        keys: [
            KeyDescriptor("size", .size, default: "256MiB", "The limit for all entries of the memory tier, in bytes."),
            KeyDescriptor(
                "objects",
                .integer(1...1_000_000_000),
                default: "100000",
                "The limit for the number of entries in the memory tier."
            ),
            KeyDescriptor("max_object", .size, default: "8MiB", "The largest entry of the memory tier."),
            KeyDescriptor(
                "pressure",
                .choice(MemoryTierConfiguration.Pressure.allCases.map(\.rawValue)),
                default: "shed",
                "What happens while memory is short: shed evicts entries and returns their memory to the kernel, ignore keeps them; a reload can change this key."
            ),
        ]
    )

    static let diskTier = SectionDescriptor(
        name: "disk",
        keys: [
            KeyDescriptor(
                "path",
                .path,
                default: "/var/cache/drydock",
                "The folder of the disk tier: an empty one, one that does not exist yet, or one that Drydock has marked."
            ),
            KeyDescriptor("size", .size, default: "10GiB", "The limit for all files of the disk tier, in bytes."),
            KeyDescriptor("max_object", .size, default: "2GiB", "The largest stored response of the disk tier."),
            KeyDescriptor("min_free", .size, default: "512MiB", "The space that stays free on the file system."),
        ]
    )

    static let tiers = SectionDescriptor(
        name: "cache",
        keys: [
            KeyDescriptor("memory", .section(memoryTier), "The memory tier; a change needs a restart."),
            KeyDescriptor(
                "disk",
                .section(diskTier),
                "The disk tier; without it nothing survives a restart; a change needs a restart."
            ),
        ]
    )
}

/// The settings of the two tiers of the store.
package struct TierConfiguration: Sendable, Equatable {
    package var memory = MemoryTierConfiguration()
    /// The settings of the disk tier; nil for a store without one.
    package var disk: DiskTierConfiguration?

    package init() {}
}

/// The settings of the memory tier.
package struct MemoryTierConfiguration: Sendable, Equatable {
    /// The most bytes of all entries, with everything that an entry holds. Default: 256 MiB.
    package var size: Int
    /// The most entries. Default: 100,000.
    package var objects: Int
    /// The most bytes of one entry. Default: 8 MiB.
    package var maxObject: Int
    /// The reaction to a shortage of memory on the machine, or in the daemon's control group. Default: shed.
    package var pressure: Pressure

    package enum Pressure: String, Sendable, CaseIterable {
        /// Entries are evicted, and their memory is returned to the kernel.
        case shed
        case ignore
    }
}

/// The settings of the disk tier.
package struct DiskTierConfiguration: Sendable, Equatable {
    /// The absolute path of the tier's folder. A change needs a restart.
    package var path: String
    /// The most bytes of all files. Default: 10 GiB.
    package var size: Int
    /// The most bytes of one stored response. Default: 2 GiB.
    package var maxObject: Int
    /// The bytes that stay free on the file system. Default: 512 MiB.
    package var minFree: Int
}

extension MemoryTierConfiguration {
    package init() { self.init(SectionReader(nothingOf: KeyTable.memoryTier)) }

    init(_ reader: SectionReader) {
        size = reader.bytes(always: "size")
        objects = reader.int(always: "objects")
        maxObject = reader.bytes(always: "max_object")
        pressure = reader.choice(always: "pressure")
    }
}

extension DiskTierConfiguration {
    package init(path: String) { self.init(path: path, SectionReader(nothingOf: KeyTable.diskTier)) }

    init(path: String, _ reader: SectionReader) {
        self.path = path
        size = reader.bytes(always: "size")
        maxObject = reader.bytes(always: "max_object")
        minFree = reader.bytes(always: "min_free")
    }
}

extension Resolver {
    mutating func tiers(_ reader: SectionReader) -> TierConfiguration {
        var result = TierConfiguration()
        let memory = reader.section("memory")
        result.memory = MemoryTierConfiguration(memory)
        result.memory.maxObject = bounded(memory, "max_object", by: result.memory.size, "size", of: "cache.memory")
        guard reader.entry("disk") != nil else { return result }
        let disk = reader.section("disk")
        guard let path = disk.text("path") else { return result }
        var tier = DiskTierConfiguration(path: path, disk)
        tier.maxObject = bounded(disk, "max_object", by: tier.size, "size", of: "cache.disk")
        if let problem = FileChecks.canHoldStore(path) {
            fail(disk.position("path") ?? position(reader, "disk"), file: "'cache.disk.path' \(problem)")
        }
        result.disk = tier
        return result
    }
}
