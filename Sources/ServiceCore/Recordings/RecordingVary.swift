// The fields of a request that an answer names in Vary, as they tell its recordings apart.

import HTTPWire

enum RecordingVary {
    /// Names in lower case, sorted, with their values, or alone where the request has no such field. Of a secret there is
    /// only that it was sent: the recordings of one user answer another one.
    ///
    /// `Accept-Encoding` is not among them, since recordings have no content coding, and neither is `*`, which says
    /// nothing that could be compared.
    static func pairs(_ answer: Fields, _ request: Fields) -> [[String]] {
        let names = answer.all(.vary).flatMap { $0.split(separator: ",") }
            .map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() }
        return Set(names).subtracting(["", "*", "accept-encoding"]).sorted().map { pair($0, request) }
    }

    /// Whether a request has the values that an answer was recorded for.
    /// - Parameter pairs: nil matches every request.
    static func matches(_ pairs: [[String]]?, _ request: Fields) -> Bool {
        (pairs ?? []).allSatisfy { known in
            guard let name = known.first else { return true }
            return pair(name.lowercased(), request).dropFirst().elementsEqual(known.dropFirst())
        }
    }

    static func pair(_ name: String, _ request: Fields) -> [String] {
        guard let value = request.combined(name) else { return [name] }
        return [name, Redaction.isHidden(name) ? Redaction.mark : value]
    }
}
