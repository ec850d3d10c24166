// The shape of the table of keys: what a key holds, what it means, and how far it is inherited.

/// What a key holds.
package indirect enum ValueKind: Sendable {
    case boolean
    case integer(ClosedRange<Int>)
    /// A word, such as `auto` or `none`, or else a value of the other kind.
    case word(String, or: ValueKind)
    case choice([String])
    case duration
    /// A duration of whole seconds.
    case lifetime
    /// The same with a sign, or without one.
    case shift
    case size
    case share
    /// A value, or a mapping of statuses to shares.
    case weighted(ValueKind)
    /// A duration, or a range of two.
    case latency
    /// The same, or the name of a distribution with its numbers in parentheses.
    case distribution
    /// A size in each second, such as `64KiB/s`.
    case rate
    /// Octal permissions such as `0660`.
    case permissions
    /// Text that the rule accepts.
    case text(TextRule)
    /// A path, relative to the file that names it.
    case path
    /// A path relative to `demo.files`; kept as written until that is known.
    case demoFile
    /// `stdout`, `stderr`, `off` or a path.
    case logTarget
    case address
    case client
    case baseURL
    /// `none`, `env`, or the URL of an HTTP proxy.
    case upstreamProxy
    case endpointPath
    /// The target of an endpoint on its origin.
    case target
    /// A value of any shape.
    case tree
    case list(ValueKind)
    /// One value, or a list of them.
    case oneOrMore(ValueKind)
    /// A mapping whose keys the user chooses.
    case map(MapKey, ValueKind)
    case section(SectionDescriptor)
    /// A list of sections.
    case sections(SectionDescriptor)
    /// A section or a list of them, of which each may be just the value of one of its keys.
    case rules(SectionDescriptor, key: String)
    /// A rule of `response.map`: a key path, or a mapping of names to rules.
    case mappingRule
    /// A section, or just the value (or the values) of one of its keys.
    case shorthand(SectionDescriptor, key: String)
}

/// What the keys of a user's mapping are.
package enum MapKey: Sendable {
    /// HTTP field names: tokens, the same in any case.
    case fieldName
    case queryName
    /// The name of a value of a group.
    case valueName
    case status
    /// Names of parameters and members.
    case parameter
    /// Percentiles from 0 to 100.
    case percentile
    /// Names of rules.
    case profile
}

/// How far a key of a service reaches.
package enum Inheritance: Sendable {
    /// No section inherits it.
    case none
    /// From `defaults` to services.
    case services
    /// From `defaults` to services, and from a service to its endpoints.
    case endpoints
}

/// One key: the only place with its name, its kind and its description.
package struct KeyDescriptor: Sendable {
    package let name: String
    package let kind: ValueKind
    /// The default, as a file would have it; nil if there is none.
    package let defaultText: String?
    /// One sentence for the schema and for `config default`.
    package let doc: String
    package let inheritance: Inheritance
    /// Whether the value is hidden where values are shown.
    package let secret: Bool
    package let required: Bool

    init(
        _ name: String,
        _ kind: ValueKind,
        default defaultText: String? = nil,
        _ doc: String,
        inherited inheritance: Inheritance = .none,
        secret: Bool = false,
        required: Bool = false
    ) {
        self.name = name
        self.kind = kind
        self.defaultText = defaultText
        self.doc = doc
        self.inheritance = inheritance
        self.secret = secret
        self.required = required
    }
}

/// A mapping with known keys.
package struct SectionDescriptor: Sendable {
    /// What messages call it, such as `cache` or `services[]`.
    package let name: String
    package let keys: [KeyDescriptor]
    /// Whether a nearer section replaces a farther one wholly, since its keys exclude each other.
    var replaces = false
    /// Whether keys that begin with `x-` are the user's own, for YAML anchors, and mean nothing here.
    var hasOwnKeys = false

    package func key(_ name: String) -> KeyDescriptor? { keys.first { $0.name == name } }
}

extension ValueKind {
    /// The section behind the kind, if any.
    package var section: SectionDescriptor? {
        switch self {
        case .section(let section), .sections(let section), .shorthand(let section, key: _),
            .rules(let section, key: _):
            section
        default: nil
        }
    }
    /// Whether it holds several sections.
    package var isList: Bool {
        switch self {
        case .sections, .rules: true
        default: false
        }
    }
}

/// Every key that a file may hold. A key that is not here is an error. Each file of a feature extends it by its own keys.
package enum KeyTable {}
