// The keys that a reload cannot change.

import EventLoop

/// A key whose change needs a restart.
package struct RestartDifference: Sendable, Equatable, CustomStringConvertible {
    /// The dotted key, such as `listen` or `cache.disk.path`.
    package let key: String
    /// The position of the key in the new configuration; of the nearest section, or of the file's beginning, if the key is
    /// absent.
    package let position: SourcePosition
    package let old: String
    package let new: String
    /// The key, or the section around it, that the running configuration's file has and the new one lacks; nil if there
    /// is none.
    package let gone: String?

    /// The message with its position: `FILE:LINE:COL: message`.
    package var description: String {
        let change = "cannot change from \(old) to \(new) while the daemon runs"
        guard let gone else { return "\(position): '\(key)' \(change); restart it, or restore the old value" }
        let subject = gone == key ? "" : "'\(key)' "
        return "\(position): '\(gone)' is gone from the file, but \(subject)\(change); restart it, or restore '\(gone)'"
    }
}

extension RestartDifference {
    /// The keys that differ from a running configuration and that only a restart can change; empty if a reload is
    /// enough. If a section is absent, the first of its keys stands for all.
    package static func all(in new: Configuration, since old: Configuration) -> [RestartDifference] {
        func text(_ addresses: [ListenAddress]) -> String {
            addresses.isEmpty ? "none" : addresses.map(\.description).joined(separator: ", ")
        }
        var pairs: [(key: String, before: String, now: String)] = []
        func compare<Value>(_ key: String, _ value: (Configuration) -> Value?, _ show: (Value) -> String) {
            pairs.append((key, value(old).map(show) ?? "none", value(new).map(show) ?? "none"))
        }
        compare("listen", { $0.listen }) { $0.map(\.description).joined(separator: ", ") }
        compare("loops", { $0.loops ?? 0 }) { $0 == 0 ? "auto" : "\($0)" }
        compare("name", { $0.givenName ?? "auto" }) { $0 }
        compare("cache.memory.size", { $0.cache.memory.size }, Units.sizeText)
        compare("cache.memory.objects", { $0.cache.memory.objects }, String.init)
        compare("cache.memory.max_object", { $0.cache.memory.maxObject }, Units.sizeText)
        compare("cache.disk.path", { $0.cache.disk?.path }) { $0 }
        compare("cache.disk.size", { $0.cache.disk?.size }, Units.sizeText)
        compare("cache.disk.max_object", { $0.cache.disk?.maxObject }, Units.sizeText)
        compare("cache.disk.min_free", { $0.cache.disk?.minFree }, Units.sizeText)
        pairs.append(
            (
                "admin.listen", old.admin.map { text($0.listen) } ?? "the default",
                new.admin.map { text($0.listen) } ?? "the default"
            )
        )
        compare("admin.mode", { $0.admin?.mode }) { "0" + String($0, radix: 8) }
        compare("admin.group", { $0.admin?.group }) { $0 }
        compare("metrics", { $0.metrics.isEmpty ? nil : $0.metrics }, text)
        var told: Set<String> = []
        return pairs.compactMap { key, before, now in
            if before == now { return nil }
            let gone = old.origin.firstPart(of: key, notIn: new.origin)
            if let gone, !told.insert(gone).inserted { return nil }
            return RestartDifference(
                key: key,
                position: new.origin.position(of: key),
                old: before,
                new: now,
                gone: gone
            )
        }
    }
}

extension ConfigurationOrigin {
    /// The position of a dotted key, of the section nearest to it, or of the file's beginning.
    func position(of key: String) -> SourcePosition {
        path(to: key).last?.position ?? SourcePosition(file: file, line: 1, column: 1)
    }

    /// The first part of a dotted key that exists here and not in `other`: the key itself, or a missing section.
    func firstPart(of key: String, notIn other: ConfigurationOrigin) -> String? {
        let parts = key.split(separator: ".")
        let known = other.path(to: key).count
        guard known < path(to: key).count else { return nil }
        return parts.prefix(known + 1).joined(separator: ".")
    }

    /// The entries on the way to a dotted key, as far as the file has them.
    private func path(to key: String) -> [Entry] {
        var path: [Entry] = []
        var entries = root
        for part in key.split(separator: ".") {
            guard let entry = entries.first(where: { $0.key == part }) else { break }
            path.append(entry)
            guard case .section(let inner) = entry.value.content else { break }
            entries = inner
        }
        return path
    }
}
