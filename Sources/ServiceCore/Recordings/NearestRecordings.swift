// The recordings nearest to a request that has none, with their differences, for the error text.

import HTTPWire
import Matching

/// Compares the keys of recordings with the key of a request.
struct NearestRecordings {
    /// The largest number of documents that are read: those with the nearest file names.
    static let mostRead = 32
    private static let mostTold = 3
    /// The largest distance of a recording that is shown, in hundredths of the longer request.
    private static let farthest = 60
    /// The largest number of characters that are shown of a target or a value.
    private static let longestTold = 160

    private let key: RecordingKey
    private let request: Fields
    private var near: [(distance: Int, text: String)] = []

    init(_ key: RecordingKey, _ request: Fields) {
        self.key = key
        self.request = request
    }

    /// The file names that are worth reading, the nearest first.
    func candidates(_ names: [String]) -> [String] {
        let own = Array(key.name.utf8)
        let ranked = names.map { (TextDistance.between(own, Array($0.utf8)), $0) }.sorted { $0 < $1 }
        return ranked.prefix(Self.mostRead).map(\.1)
    }

    mutating func add(_ document: RecordingDocument) {
        let other = document.key
        let distance = TextDistance.between(Array(key.request.utf8), Array(other.request.utf8))
        guard distance <= Self.farthest else { return }
        let differences = differences(other, document.vary)
        let text = "'\(other.request.prefix(Self.longestTold))'" + (differences.isEmpty ? "" : " (\(differences))")
        near.append((distance * 10 + differences.utf8.count / 10, text))
    }

    /// The nearest recordings, such as `'GET /users/8' (another path)`; nil if none is near.
    var told: String? {
        let first = near.sorted { $0.distance < $1.distance }.prefix(Self.mostTold)
        return first.isEmpty ? nil : first.map(\.text).joined(separator: ", ")
    }

    private func differences(_ other: RecordingKey, _ vary: [[String]]?) -> String {
        var found: [String] = []
        let (mine, theirs) = (Self.parts(key.request), Self.parts(other.request))
        if mine.method != theirs.method { found.append("the method is \(theirs.method)") }
        if mine.path != theirs.path { found.append("another path") }
        found += Self.difference(mine.query, theirs.query, of: "query")
        found += Self.difference(key.fields.map(Self.line), other.fields.map(Self.line), of: "field")
        if key.body != other.body {
            found.append(other.body == nil ? "without content" : key.body == nil ? "with content" : "other content")
        }
        for pair in vary ?? [] where !RecordingVary.matches([pair], request) {
            let own = RecordingVary.pair(pair.first ?? "", request)
            found.append("Vary: recorded \(Self.line(pair)), asked \(Self.line(own))")
        }
        return found.joined(separator: "; ")
    }

    private static func parts(_ request: String) -> (method: Substring, path: Substring, query: [String]) {
        let method = request.prefix { $0 != " " }
        let target = request[method.endIndex...].dropFirst()
        let path = target.prefix { $0 != "?" }
        let query = target[path.endIndex...].dropFirst().split(separator: "&").map(String.init)
        return (method, path, query)
    }

    /// A pair of a field as text: `accept-language: de`, or `no accept-language`.
    private static func line(_ pair: [String]) -> String {
        pair.count == 2 ? "\(pair[0]): \(pair[1].prefix(longestTold))" : "no \(pair.first ?? "")"
    }

    private static func difference(_ mine: [String], _ theirs: [String], of what: String) -> [String] {
        let more = theirs.filter { !mine.contains($0) }.map { "with \($0.prefix(longestTold))" }
        let less = mine.filter { !theirs.contains($0) }.map { "without \($0.prefix(longestTold))" }
        let all = (more + less).prefix(4)
        return all.isEmpty ? [] : ["\(what) " + all.joined(separator: ", ")]
    }
}
