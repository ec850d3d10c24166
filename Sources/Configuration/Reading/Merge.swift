// Inheritance: the nearest wins, lists replace, maps merge.

enum Merge {
    /// The entries of a section laid over those it inherits.
    static func merged(_ near: [Entry], over far: [Entry], _ section: SectionDescriptor) -> [Entry] {
        if section.replaces, !near.isEmpty { return near }
        var result = far
        for entry in near {
            guard let index = result.firstIndex(where: { $0.key == entry.key }) else {
                result.append(entry)
                continue
            }
            result[index] = merged(entry, over: result[index], section.key(entry.key)?.kind)
        }
        return result
    }

    /// The entries that an endpoint inherits from its service, at every depth.
    static func handedToEndpoints(_ entries: [Entry], _ section: SectionDescriptor) -> [Entry] {
        entries.compactMap { entry in
            guard let descriptor = section.key(entry.key), descriptor.inheritance == .endpoints else { return nil }
            guard case .section(let inner) = entry.value.content, let below = descriptor.kind.section else {
                return entry
            }
            var entry = entry
            entry.value.content = .section(handedToEndpoints(inner, below))
            return entry
        }
    }

    private static func merged(_ near: Entry, over far: Entry, _ kind: ValueKind?) -> Entry {
        var result = near
        switch (kind, near.value.content, far.value.content) {
        case (.section(let section)?, .section(let inner), .section(let outer)):
            result.value.content = .section(merged(inner, over: outer, section))
        case (.map(let keys, _)?, .map(let inner), .map(let outer)):
            var entries = outer
            for entry in inner {
                if let index = entries.firstIndex(where: { same($0.key, entry.key, keys) }) {
                    entries[index] = entry
                } else {
                    entries.append(entry)
                }
            }
            result.value.content = .map(entries)
        default: break
        }
        return result
    }

    private static func same(_ a: String, _ b: String, _ keys: MapKey) -> Bool {
        if case .fieldName = keys { return a.lowercased() == b.lowercased() }
        return a == b
    }
}
