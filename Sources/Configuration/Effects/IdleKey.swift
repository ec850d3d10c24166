// Keys that are accepted and do nothing, because the key is missing that would give them an effect: a warning for each.

import HTTPCaching
import Policies

/// A row of the table of keys that do nothing without another one. A key without its switch is a warning and no error, so
/// that the switch can be commented out while the keys beside it stay.
struct IdleKey: Sendable {
    /// The keys, as dotted paths in their section; `[]` behind a name stands for each item of a list.
    let keys: [(name: String, path: [Substring])]
    /// The key that switches them on: one beside them, or one of the section that the table is for.
    let switchKey: String
    /// What the keys fail to do.
    let says: String
    /// The words behind the reason: how the keys get an effect.
    let remedy: String
    /// The reason why a key does nothing, from the section that it stands in; nil if it has an effect.
    let reason: @Sendable (KeyScope, SectionReader) -> String?

    init(
        _ keys: [String],
        without switchKey: String,
        says: String = "does nothing",
        remedy: String,
        since reason: @escaping @Sendable (KeyScope, SectionReader) -> String?
    ) {
        self.keys = keys.map { ($0, $0.split(separator: ".")) }
        self.switchKey = switchKey
        self.says = says
        self.remedy = remedy
        self.reason = reason
    }
}

/// A table of idle keys by the first name of their paths, because a section has few of the keys that it might have.
private struct IdleIndex {
    let rows: [Substring: [(row: IdleKey, name: String, path: [Substring])]]

    init(_ table: [IdleKey]) {
        let keys = table.flatMap { row in row.keys.map { (row: row, name: $0.name, path: $0.path) } }
        rows = Dictionary(grouping: keys) { $0.path[0].prefix { $0 != "[" } }
    }

    static let ofDaemon = IdleIndex(IdleKey.ofDaemon)
    static let ofForward = IdleIndex(IdleKey.ofForward)
    static let ofProfiles = IdleIndex(IdleKey.ofProfiles)
    static let ofServices = IdleIndex(IdleKey.ofServices)
    static let ofRoutes = IdleIndex(IdleKey.ofRoutes)
}

/// The section that a table of idle keys is for, with every inherited key, and what was made of it.
struct KeyScope {
    /// What stands before the names of keys in messages, such as `forward.`.
    var label = ""
    let reader: SectionReader
    /// The daemon without its services.
    let daemon: Configuration
    /// Nil for the daemon and for forward mode.
    var service: ServiceConfiguration?
    /// The settings of a service or an endpoint; nil for the daemon and for forward mode.
    var settings: RouteSettings?
    /// The states of each scenario of the service that its rules reach, the initial one among them.
    var states: [String: Set<String>] = [:]
}

/// A key that the file has, in the section in which it stands.
private struct GivenKey {
    let entry: Entry
    let descriptor: KeyDescriptor?
    let section: SectionReader
}

extension SectionReader {
    /// The keys of the file under a dotted path.
    fileprivate func given(_ path: ArraySlice<Substring>) -> [GivenKey] {
        guard let first = path.first else { return [] }
        let isList = first.hasSuffix("[]")
        let name = isList ? String(first.dropLast(2)) : String(first)
        guard let entry = entry(name) else { return [] }
        if path.count == 1 { return [GivenKey(entry: entry, descriptor: section.key(name), section: self)] }
        guard isList else { return section(name).given(path.dropFirst()) }
        let below = section.key(name)?.kind.section ?? SectionDescriptor(name: name, keys: [])
        return items(name).flatMap { value -> [GivenKey] in
            guard case .section(let entries) = value.content else { return [] }
            return SectionReader(entries: entries, section: below).given(path.dropFirst())
        }
    }
}

extension GivenKey {
    /// Whether the key says anything: a value that equals the default does not, if the switch is there as well, for
    /// `config show` writes both.
    func isSaid(without switchKey: String, in scope: SectionReader) -> Bool {
        if section.text("mode") == CacheMode.library.rawValue, let usual = Resolver.libraryLifetimes[entry.key],
            section.seconds(entry.key) == usual
        {
            return false
        }
        let holder = [section, scope].first { $0.section.key(switchKey) != nil }
        let isWritten = holder?.section.key(switchKey)?.defaultText == nil || holder?.entry(switchKey) != nil
        return !isWritten || Self.differs(entry, descriptor)
    }

    /// Whether a value differs from the default of its key, or that of a section from all defaults.
    private static func differs(_ entry: Entry, _ descriptor: KeyDescriptor?) -> Bool {
        switch entry.value.content {
        case .section(let entries):
            let below = descriptor?.kind.section
            return entries.contains { differs($0, below?.key($0.key)) }
        case .list(let values) where values.isEmpty: return descriptor?.defaultText.map { $0 != "[]" } ?? false
        case .map(let entries) where entries.isEmpty: return false
        default:
            let usual = descriptor.flatMap(SectionReader.defaultValue)
            return usual.map { words($0) != words(entry.value) } ?? true
        }
    }

    /// The values of a scalar or a list, without their positions.
    private static func words(_ value: Value) -> [Scalar?] {
        switch value.content {
        case .leaf(let leaf): [leaf.scalar]
        case .list(let values): values.flatMap { words($0) }
        case .map, .section: [nil]
        }
    }
}

/// What was found of the keys of all sections. A key that several sections inherit is idle only where none of them uses it.
private struct IdleFindings {
    /// A key of the file, which several sections may have.
    private struct Key: Hashable {
        let name: String
        let position: SourcePosition
    }

    private var used: Set<Key> = []
    private var idle: [Key: String] = [:]

    var warnings: [ConfigurationError] {
        idle.filter { !used.contains($0.key) }.map { ConfigurationError(position: $0.key.position, message: $0.value) }
    }

    /// Goes through the keys of a section. A key is used by it if no row has a reason why not.
    fileprivate mutating func look(at scope: KeyScope, _ index: IdleIndex) {
        var found: [Key: String?] = [:]
        for entry in scope.reader.entries {
            for (row, name, path) in index.rows[entry.key[...]] ?? [] {
                for given in scope.reader.given(path[...])
                where given.isSaid(without: row.switchKey, in: scope.reader) {
                    let position = given.entry.value.position
                    // A value that the file does not have, but the shown configuration.
                    guard !position.file.isEmpty else { continue }
                    let key = Key(name: name, position: position)
                    if case .some(.some) = found[key] { continue }
                    found[key] = .some(
                        row.reason(scope, given.section).map { reason in
                            "'\(scope.label)\(name)' \(row.says), since \(reason); \(row.remedy), or remove '\(given.entry.key)'"
                        }
                    )
                }
            }
        }
        for (key, message) in found {
            if let message { idle[key] = message } else { used.insert(key) }
        }
    }
}

extension Resolver {
    /// Warns of every key that does nothing. Only for a configuration without errors.
    mutating func warnOfIdleKeys(_ root: SectionReader, _ configuration: Configuration) {
        var findings = IdleFindings()
        findings.look(at: KeyScope(reader: root, daemon: configuration), .ofDaemon)
        if configuration.forward.enabled {
            let forward = KeyScope(label: "forward.", reader: root.section("forward"), daemon: configuration)
            findings.look(at: forward, .ofForward)
        }
        for rules in root.map("fault_profiles") {
            let entry = Entry(key: "faults", position: rules.position, value: rules.value)
            let profile = SectionReader(entries: [entry], section: KeyTable.service)
            findings.look(at: KeyScope(reader: profile, daemon: configuration), .ofProfiles)
        }
        for (service, tree) in zip(configuration.services, trees) {
            let reader = SectionReader(entries: tree, section: KeyTable.service)
            var scope = KeyScope(reader: reader, daemon: configuration, service: service, settings: service.settings)
            scope.states = service.reachedStates
            findings.look(at: scope, .ofServices)
            for (endpoint, value) in zip(service.endpoints, reader.items("endpoints")) {
                guard case .section(let entries) = value.content else { continue }
                let reader = SectionReader(entries: entries, section: KeyTable.endpoint)
                var inner = KeyScope(reader: reader, daemon: configuration, service: service)
                (inner.settings, inner.states) = (endpoint.settings, scope.states)
                findings.look(at: inner, .ofRoutes)
            }
        }
        warnings += findings.warnings
    }
}

extension ServiceConfiguration {
    /// The states of each scenario that rules of the service lead to, one after the other from the initial one.
    fileprivate var reachedStates: [String: Set<String>] {
        let steps = (settings.demo.rules + endpoints.flatMap(\.settings.demo.rules)).compactMap(\.gate?.step)
        return Dictionary(grouping: steps, by: \.scenario).mapValues { steps in
            let next = Dictionary(grouping: steps, by: \.state).mapValues { $0.compactMap(\.next) }
            var reached: Set<String> = [ScenarioStep.initial]
            var waiting = Array(reached)
            while let state = waiting.popLast() {
                waiting += (next[state] ?? []).filter { reached.insert($0).inserted }
            }
            return reached
        }
    }
}
