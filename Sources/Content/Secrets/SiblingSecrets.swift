// The values of one object, form or element that are secret only if one of their siblings says what they are for.

/// The siblings that have been seen so far.
struct SiblingSecrets {
    private var hasCompanion = false
    private var waiting: [Range<Int>] = []

    /// Sees a name with its value.
    /// - Parameters:
    ///   - value: where the value stands; nil: it is none that could be hidden.
    ///   - ranges: gets what is hidden.
    mutating func see(_ name: SecretNames.ContentName, value: Range<Int>?, _ ranges: inout [Range<Int>]) {
        if name.contains(.companion) { hasCompanion = true }
        guard let value, !value.isEmpty else { return }
        if name.contains(.secret) { ranges.append(value) } else if name.contains(.beside) { waiting.append(value) }
    }

    /// Ends the object, form or element.
    func end(_ ranges: inout [Range<Int>]) {
        if hasCompanion { ranges += waiting }
    }
}

/// What names of a content say, each read once: a long list has the same ones again and again.
struct ContentNames {
    private let rules: SecretContent
    private var known: [ArraySlice<UInt8>: SecretNames.ContentName] = [:]

    init(_ rules: SecretContent) { self.rules = rules }

    private static let mostKnown = 512
    /// Longer names are not read.
    private static let longest = 128
    /// One of these is in each name that says something.
    private static let hints = [
        "token", "pass", "secret", "saml", "assertion", "cvv", "cvc", "code", "otp", "pin", "grant",
    ]
    .map { Array($0.utf8) }

    /// - Parameter name: as it is meant, without escapes.
    mutating func content(_ name: ArraySlice<UInt8>) -> SecretNames.ContentName {
        guard name.count <= Self.longest, Self.hasHint(name) else { return [] }
        if let said = known[name] { return said }
        let said = rules.name(String(decoding: name, as: UTF8.self))
        // The slice would hold the whole content; the names are as many as the bound says.
        if known.count < Self.mostKnown { known[ArraySlice(Array(name))] = said }
        return said
    }

    private static func hasHint(_ name: ArraySlice<UInt8>) -> Bool {
        for place in name.indices {
            let first = name[place] | 0x20
            for hint in hints where hint[0] == first && name.endIndex - place >= hint.count {
                if zip(name[place...], hint).allSatisfy({ $0 | 0x20 == $1 }) { return true }
            }
        }
        return false
    }
}
