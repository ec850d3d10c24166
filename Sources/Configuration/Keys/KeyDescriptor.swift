// The shape of the table of keys: what a key holds, what it means, and how far it is inherited.

/// The kind of value that a key holds.
package indirect enum ValueKind: Sendable {
    case boolean
    case integer(ClosedRange<Int>)
    /// A word, such as `auto` or `none`, or else a value of the other kind.
    case word(String, or: ValueKind)
    case choice([String])
    case duration
    /// A duration of whole seconds.
    case lifetime
    /// A duration of whole seconds, with or without a sign.
    case shift
    case size
    case share
    /// A value, or a mapping of statuses to shares.
    case weighted(ValueKind)
    /// A duration, or a range of two.
    case latency
    /// A duration, a range of two, or the name of a distribution with its numbers in parentheses.
    case distribution
    /// A size per second, such as `64KiB/s`.
    case rate
    /// Octal permissions such as `0660`.
    case permissions
    /// A text that the rule accepts.
    case text(TextRule)
    /// A path, relative to the file that names it.
    case path
    /// A path relative to `demo.files`, which stays as written until that folder is known.
    case demoFile
    /// The target of a log: `stdout`, `stderr`, `off` or a path.
    case logTarget
    case address
    /// The same, and how clients speak there.
    case listener
    case client
    case baseURL
    /// The URL below which a collector of spans takes them.
    case collector
    /// The proxy of a service: `none`, `env`, or the URL of an HTTP proxy.
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
    /// A section or a list of sections; a section may be written as the value of one of its keys.
    case rules(SectionDescriptor, key: String)
    /// A rule of `response.map`: a key path, or a mapping of names to rules.
    case mappingRule
    /// A section, which may be written as the value (or the values) of one of its keys.
    case shorthand(SectionDescriptor, key: String)
}

/// The kind of keys in a mapping whose keys the user chooses.
package enum MapKey: Sendable {
    /// Names of HTTP fields: tokens, compared without regard to case.
    case fieldName
    case queryName
    /// Names of the values of a group of calls.
    case valueName
    case status
    /// Names of parameters and members.
    case parameter
    /// Percentiles from 0 to 100.
    case percentile
    /// Names of fault profiles.
    case profile
    /// Names of modules of the daemon's own log.
    case logModule
}

/// The sections that inherit a key.
package enum Inheritance: Sendable {
    /// No section inherits the key.
    case none
    /// Services inherit the key from `defaults`.
    case services
    /// Services inherit the key from `defaults`, and endpoints from their service.
    case endpoints
}

/// One key, and the only mention of its name, kind and description.
package struct KeyDescriptor: Sendable {
    package let name: String
    package let kind: ValueKind
    /// The default in the form of a configuration file; nil if there is none.
    package let defaultText: String?
    /// The description, one sentence for the schema and for `config default`.
    package let doc: String
    package let inheritance: Inheritance
    /// Whether the value is hidden in every output of a configuration.
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
    /// The name of the section in messages, such as `cache` or `services[]`.
    package let name: String
    package let keys: [KeyDescriptor]
    /// Whether a given section replaces the inherited one as a whole, because its keys exclude each other.
    var replaces = false
    /// Whether keys that begin with `x-` are allowed, for YAML anchors; they have no effect.
    var hasOwnKeys = false

    package func key(_ name: String) -> KeyDescriptor? { keys.first { $0.name == name } }
}

extension ValueKind {
    /// The section of the kind; nil for a kind without one.
    package var section: SectionDescriptor? {
        switch self {
        case .section(let section), .sections(let section), .shorthand(let section, key: _),
            .rules(let section, key: _):
            section
        default: nil
        }
    }
    /// Whether the kind is a list of sections.
    package var isList: Bool {
        switch self {
        case .sections, .rules: true
        default: false
        }
    }
}

/// The table of all keys that a file may have; any other key is an error. The file of each feature adds its keys by an
/// extension.
package enum KeyTable {}
