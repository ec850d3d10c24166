// Parses `on_client_abort`: what happens to a fetch whose clients have left.

import Policies

extension ClientAbort {
    /// `finish`, `abort` or `finish-if N%`; nil where the words are none of these.
    init?(words text: String) {
        let words = text.split(separator: " ")
        switch words.count {
        case 1 where words[0] == "finish": self = .finish
        case 1 where words[0] == "abort": self = .abort
        case 2 where words[0] == "finish-if":
            guard let share = try? Units.share(String(words[1])) else { return nil }
            self = .finishIf(share)
        default: return nil
        }
    }
}
