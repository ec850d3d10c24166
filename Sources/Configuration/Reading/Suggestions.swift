// What an error about an unknown key suggests.

import Matching

extension Suggestions {
    /// The end of a message about an unknown key: the same key one level down, the nearest key here, or
    /// the list of what is known.
    static func help(forKey key: String, in section: SectionDescriptor) -> String {
        let known = section.keys.map(\.name)
        for candidate in section.keys where candidate.kind.section?.key(key) != nil {
            return "did you mean '\(candidate.name).\(key)'?"
        }
        if let near = nearest(to: key, among: known) { return "did you mean '\(near)'?" }
        return "known here: \(known.joined(separator: ", "))"
    }
}
