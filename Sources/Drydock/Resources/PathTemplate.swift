// A path with places for values: read, and filled with parameters.

import Content
import HTTPWire

/// A location up to its query, such as `/users/:id`.
struct PathTemplate {
    private enum Piece {
        case literal(String)
        case parameter(String)
    }

    private let pieces: [Piece]
    private let text: String

    /// - Parameter text: of a location, without its query.
    init(_ text: some StringProtocol) {
        self.text = String(text)
        var pieces: [Piece] = []
        var literal = ""
        var rest = Substring(text)
        while let character = rest.popFirst() {
            if character == "\\", let next = rest.first, ":.@\\".contains(next) {
                literal.append(rest.removeFirst())
            } else if character == ":", literal.last == "/", let name = Self.takeName(&rest) {
                pieces.append(.literal(literal))
                pieces.append(.parameter(name))
                literal = ""
            } else {
                literal.append(character)
            }
        }
        self.pieces = pieces + [.literal(literal)]
    }

    /// Names of what a location is filled with.
    static func names(in location: String) -> [String] {
        PathTemplate(location.prefix { $0 != "?" && $0 != "#" }).pieces.compactMap { piece in
            if case .parameter(let name) = piece { name } else { nil }
        }
    }

    /// A name begins with a letter or `_`; dots within it lead into objects.
    private static func takeName(_ rest: inout Substring) -> String? {
        guard let first = rest.first, first.isLetter || first == "_" else { return nil }
        var name = ""
        while let next = rest.first {
            let isDot = next == "." && rest.dropFirst().first.map { $0.isLetter || $0.isNumber || $0 == "_" } == true
            guard isDot || next.isLetter || next.isNumber || next == "_" else { break }
            name.append(rest.removeFirst())
        }
        return name
    }

    /// The path with its values percent-encoded.
    /// - Throws: `ServiceError.missingParameter`, and `.invalidRequest` for a value that would lead elsewhere.
    func filled(from parameters: Parameters) throws(ServiceError) -> String {
        var path = ""
        for piece in pieces {
            switch piece {
            case .literal(let literal): path += literal
            case .parameter(let name):
                let names = name.split(separator: ".").map(String.init)
                guard let found = parameters[names[0]]?.tree.value(at: names.dropFirst()), found != .null else {
                    throw .missingParameter(name, path: text.withoutUser)
                }
                guard let value = found.scalar, !value.isEmpty else {
                    throw .invalidRequest(
                        "'\(text.withoutUser)' cannot be filled: '\(name)' is \(found.scalar == nil ? "an object or a list" : "empty")"
                            + "; give it a text or a number"
                    )
                }
                // A dot needs no percent-encoding, and a server that decodes once more must find no `..` either.
                guard !Self.mayLeadElsewhere(value) else {
                    throw .invalidRequest(
                        "'\(text.withoutUser)' cannot be filled: '\(name)' would lead to another path"
                    )
                }
                path += PercentEncoding.encode(value)
            }
        }
        return path
    }

    private static func mayLeadElsewhere(_ value: String) -> Bool {
        var path = "/" + PercentEncoding.encode(value)
        return path.withUTF8 { DotSegments.mayOccur(in: UnsafeRawBufferPointer($0)) }
    }
}
