// Typed reading of a decoded section, with the defaults of the table of keys.

import Upstream

/// One decoded section, read with the table's defaults.
struct SectionReader {
    let entries: [Entry]
    let section: SectionDescriptor

    func entry(_ key: String) -> Entry? { entries.first { $0.key == key } }

    /// The position of a key's value; nil if the key is not given.
    func position(_ key: String) -> SourcePosition? { entry(key)?.value.position }

    /// The section under a key; an empty one if the key is not given.
    func section(_ key: String) -> SectionReader {
        let below = section.key(key)?.kind.section ?? SectionDescriptor(name: key, keys: [])
        guard case .section(let inner)? = entry(key)?.value.content else {
            return SectionReader(entries: [], section: below)
        }
        return SectionReader(entries: inner, section: below)
    }

    /// The given value of a key, or else its default; nil if there is neither.
    func value(_ key: String) -> Value? {
        entry(key)?.value ?? section.key(key).flatMap(Self.defaultValue)
    }

    func leaf(_ key: String) -> Leaf? {
        guard case .leaf(let leaf)? = value(key)?.content else { return nil }
        return leaf
    }

    /// The items of a list; empty if there is no list.
    func items(_ key: String) -> [Value] {
        guard case .list(let values)? = value(key)?.content else { return [] }
        return values
    }

    func scalars(_ key: String) -> [Scalar] {
        items(key).compactMap { value in
            guard case .leaf(let leaf) = value.content else { return nil }
            return leaf.scalar
        }
    }

    func map(_ key: String) -> [Entry] {
        guard case .map(let entries)? = entry(key)?.value.content else { return [] }
        return entries
    }

    func bool(_ key: String) -> Bool { leaf(key)?.scalar == .bool(true) }

    func int(_ key: String) -> Int? {
        guard case .int(let value)? = leaf(key)?.scalar else { return nil }
        return value
    }

    func bytes(_ key: String) -> Int? {
        guard case .bytes(let value)? = leaf(key)?.scalar else { return nil }
        return value
    }

    func nanoseconds(_ key: String) -> UInt64? {
        guard case .nanoseconds(let value)? = leaf(key)?.scalar else { return nil }
        return value
    }

    /// The percentage under a key, as 0...1.
    func share(_ key: String) -> Double? {
        guard case .share(let value)? = leaf(key)?.scalar else { return nil }
        return value
    }

    /// The lifetime under a key in whole seconds.
    func seconds(_ key: String) -> Int64? { nanoseconds(key).map { Int64($0 / 1_000_000_000) } }

    func proxies(_ key: String) -> UpstreamProxies? {
        guard case .proxies(let value)? = leaf(key)?.scalar else { return nil }
        return value
    }

    func text(_ key: String) -> String? {
        guard case .text(let value)? = leaf(key)?.scalar else { return nil }
        return value
    }

    func texts(_ key: String) -> [String] {
        scalars(key).compactMap { scalar in
            guard case .text(let text) = scalar else { return nil }
            return text
        }
    }

    /// The fields of a mapping of names to values.
    func headerValues(_ key: String) -> [HeaderValue] {
        map(key).flatMap { entry -> [HeaderValue] in
            let values: [Value] = if case .list(let values) = entry.value.content { values } else { [entry.value] }
            return values.compactMap { value in
                guard case .leaf(let leaf) = value.content, case .text(let text) = leaf.scalar else { return nil }
                return HeaderValue(name: entry.key, value: text)
            }
        }
    }

    /// The default of a key as a value; nil if it has none.
    static func defaultValue(_ descriptor: KeyDescriptor) -> Value? {
        guard let text = descriptor.defaultText else { return nil }
        if let leaf = try? ScalarDecoding.leaf(text, plain: true, descriptor.kind, file: "default") {
            let content = Value.Content.leaf(Leaf(text: leaf.text, scalar: leaf.scalar))
            return Value(position: SourcePosition(file: "default", line: 1, column: 1), content: content)
        }
        // A list is decoded from its YAML text.
        var source = SourceReader(file: "default")
        var decoder = Decoder(environment: [:])
        guard let node = source.read("\(descriptor.name): \(text)") else { return nil }
        let section = SectionDescriptor(name: "default", keys: [descriptor])
        return decoder.section(node, section, label: "").first?.value
    }
}

/// The values of keys that have a default in the table of keys.
extension SectionReader {
    /// A section that the file does not have, so that every key has its default.
    init(nothingOf section: SectionDescriptor) { self.init(entries: [], section: section) }

    /// Reads a key that has a default in the table of keys, so that there always is a value.
    func always<T>(_ read: (SectionReader) -> T?) -> T {
        // The decoder has already refused a value that cannot be read, so the result of this is never used.
        if let value = read(self) ?? read(SectionReader(nothingOf: section)) { return value }
        // No file leads here: the table lacks a default that the code counts on, and every
        // test of this module shows it.
        preconditionFailure(section.name)
    }

    func int(always key: String) -> Int { always { $0.int(key) } }
    func bytes(always key: String) -> Int { always { $0.bytes(key) } }
    func nanoseconds(always key: String) -> UInt64 { always { $0.nanoseconds(key) } }
    func seconds(always key: String) -> Int64 { always { $0.seconds(key) } }
    func text(always key: String) -> String { always { $0.text(key) } }

    /// The enum case whose raw value is the word under a key.
    func choice<T: RawRepresentable<String>>(always key: String) -> T {
        always { $0.text(key).flatMap { T(rawValue: $0) } }
    }
}

/// A field name with one value.
package struct HeaderValue: Sendable, Hashable {
    /// The field name, a token (RFC 9110 section 5.6.2), spelled as in the file.
    package let name: String
    package let value: String

    package init(name: String, value: String) {
        self.name = name
        self.value = value
    }
}
