// The decoded tree between the YAML text and the model: typed values with their positions in the text, and how a nearer
// tree is laid over the one that it inherits.

import EventLoop
import Policies
import Trees
import Upstream

/// A typed scalar.
enum Scalar: Sendable, Equatable {
    /// The word `none`, or `auto` where the key knows it.
    case none
    case bool(Bool)
    case int(Int)
    case text(String)
    case nanoseconds(UInt64)
    /// Seconds, which may be negative.
    case shift(Int64)
    case latency(ClosedRange<UInt64>)
    case distribution(LatencyPolicy)
    case bytes(Int)
    case share(Double)
    case address(ListenAddress)
    case listener(ListenPoint)
    case client(ClientRule)
    case baseURL(BaseURL)
    case proxies(UpstreamProxies)
    case endpointPath(EndpointPath)
    case target(TargetTemplate)
    case tree(ContentTree)
}

/// A scalar with the text it came from.
struct Leaf: Sendable, Equatable {
    /// The text after `${NAME}` was replaced; a path is absolute.
    var text: String
    /// Whether the value comes from the environment in part, so that it is hidden in every output.
    var fromEnvironment = false
    var scalar: Scalar
}

/// A value with its position.
struct Value: Sendable, Equatable {
    enum Content: Sendable, Equatable {
        case leaf(Leaf)
        case list([Value])
        /// A mapping whose keys the user chooses.
        case map([Entry])
        /// A mapping whose keys the table knows.
        case section([Entry])
    }
    var position: SourcePosition
    var content: Content
}

/// A key with its value; `position` is that of the key.
struct Entry: Sendable, Equatable {
    var key: String
    var position: SourcePosition
    var value: Value
}

/// The origin of a configuration: its merged tree, for `config show` and for the positions of changes.
struct ConfigurationOrigin: Sendable {
    var file = ""
    var root: [Entry] = []
    /// The trees of the services, merged with the defaults; their endpoints are merged with the service.
    var services: [[Entry]] = []
    /// The defaults that depend on another key, by dotted key.
    var followed: [(key: String, leaf: Leaf)] = []
}

extension [Entry] {
    /// The entries with a value added under a path of keys, unless it exists; missing sections on the path are made.
    func filled(_ path: ArraySlice<Substring>, with leaf: Leaf) -> [Entry] {
        guard let first = path.first else { return self }
        let nowhere = SourcePosition(file: "", line: 1, column: 1)
        var result = self
        let index = result.firstIndex { $0.key == first }
        if path.count == 1 {
            if index == nil {
                let value = Value(position: nowhere, content: .leaf(leaf))
                result.append(Entry(key: String(first), position: nowhere, value: value))
            }
        } else if let index, case .section(let inner) = result[index].value.content {
            result[index].value.content = .section(inner.filled(path.dropFirst(), with: leaf))
        } else if index == nil {
            let inner = Value(position: nowhere, content: .section([Entry]().filled(path.dropFirst(), with: leaf)))
            result.append(Entry(key: String(first), position: nowhere, value: inner))
        }
        return result
    }

    func filled(_ path: String, with leaf: Leaf) -> [Entry] { filled(path.split(separator: ".")[...], with: leaf) }
}

enum Merge {
    /// The entries of a section merged over the inherited ones.
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
