// The state of one resolving: from decoded entries to the model, with every error that is left after decoding.

import Policies

/// Resolves one configuration; collects every error that is left after decoding.
struct Resolver {
    let root: [Entry]
    /// The services of the main file and the included ones, in order.
    let services: [Value]
    /// The sections and lists that did not decode; a key that they lack is no further error.
    let broken: Set<SourcePosition>
    let file: String
    var errors: [ConfigurationError] = []
    var warnings: [ConfigurationError] = []
    var notes: [ConfigurationError] = []
    /// The demo files, for `--watch`.
    var demoFiles: [String] = []
    /// The rules of each fault profile, by its name.
    var faultProfiles: [String: [FaultPolicy]] = [:]
    /// The services' trees with everything that they inherit.
    var trees: [[Entry]] = []
    /// The names of endpoints by the file under which `store_as` keeps their response.
    var storedFiles: [String: String] = [:]
    /// The defaults that depend on another key, by dotted key.
    var followed: [(key: String, leaf: Leaf)] = []

    init(root: [Entry], services: [Value], broken: Set<SourcePosition>, file: String) {
        self.root = root
        self.services = services
        self.broken = broken
        self.file = file
    }

    mutating func fail(_ position: SourcePosition, _ message: String) {
        errors.append(ConfigurationError(position: position, message: message))
    }

    /// Reports an error of a file or folder that the configuration names.
    mutating func fail(_ position: SourcePosition, file message: String) {
        errors.append(ConfigurationError(position: position, message: message, isOfProcess: true))
    }

    /// The position of a key's value, or the beginning of the file if the key is not given.
    func position(_ reader: SectionReader, _ key: String) -> SourcePosition {
        reader.position(key) ?? SourcePosition(file: file, line: 1, column: 1)
    }

    /// Reads a part that cannot be larger than its whole: a larger default becomes the whole, a larger given value is
    /// an error.
    mutating func bounded(
        _ reader: SectionReader,
        _ key: String,
        by bound: Int,
        _ other: String,
        of label: String
    ) -> Int {
        let value = reader.always { $0.bytes(key) ?? $0.int(key) }
        if value > bound, let position = reader.position(key) {
            fail(position, "'\(label).\(key)' is larger than '\(label).\(other)'; lower it, or raise '\(other)'")
        } else if value > bound {
            let isSize = reader.bytes(key) != nil
            let leaf = Leaf(
                text: isSize ? Units.sizeText(bound) : String(bound),
                scalar: isSize ? .bytes(bound) : .int(bound)
            )
            followed.append(("\(label).\(key)", leaf))
        }
        return min(value, bound)
    }
}
