// From the target that an origin was asked for back to the one that a client asks for it with.

import Content
import Policies

extension RequestShape {
    /// What a client asks for so that this target is asked for; nil where the target is none of this endpoint's, or
    /// does not say it.
    /// - Parameter target: below the base URL.
    func rest(leadingTo target: String) -> String? {
        guard let to else { return (try? fill(target))?.rest == target ? target : nil }
        let halves = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard var found = Self.match(halves.first ?? "", to.path[...]) else { return nil }
        let own = Self.items(to.query ?? [])
        var extra: [String] = []
        for item in halves.count < 2 ? [] : halves[1].split(separator: "&").map(TargetParts.Item.init) {
            guard let template = own.first(where: { $0.name == item.name }) else {
                extra.append(String(item.text))
                continue
            }
            if let parameter = template.parameter { found.values[parameter] = item.value }
        }
        guard let path = path(found) else { return nil }
        let inPath = Set(pattern.segments.compactMap(\.parameterName))
        var items: [String] = []
        for (name, value) in found.values.sorted(by: { $0.key < $1.key }) where !inPath.contains(name) {
            if parameters.first(where: { $0.name == name })?.value.scalar.map({ Array($0.utf8) }) == value { continue }
            items.append("\(PercentEncoding.encode(name))=\(PercentEncoding.encode(value))")
        }
        items += extra
        let rest = items.isEmpty ? path : path + "?" + items.joined(separator: "&")
        return (try? fill(rest))?.rest == target ? rest : nil
    }

    /// The client's path.
    private func path(_ found: Found) -> String? {
        var path = ""
        for segment in pattern.segments {
            switch segment {
            case .literal(let bytes): path += "/" + String(decoding: bytes, as: UTF8.self)
            case .rest: path += found.tail
            case .parameter(let name):
                guard let value = found.values[name] else { return nil }
                path += "/" + PercentEncoding.encode(value)
            }
        }
        return path.isEmpty ? "/" : path
    }

    /// What parameters stand for.
    private struct Found {
        var values: [String: [UInt8]] = [:]
        var tail = ""
    }

    /// A parameter ends where the literal behind it begins for the first time.
    private static func match(_ path: Substring, _ pieces: ArraySlice<TargetTemplate.Piece>) -> Found? {
        var (path, pieces, found) = (path, pieces, Found())
        while let piece = pieces.popFirst() {
            switch piece {
            case .literal(let text):
                guard path.hasPrefix(text) else { return nil }
                path = path.dropFirst(text.count)
            case .rest:
                found.tail = String(path)
                return found
            case .parameter(let name):
                var end = path.firstIndex(of: "/") ?? path.endIndex
                if case .literal(let next)? = pieces.first, !next.hasPrefix("/") {
                    guard let place = path.firstRange(of: next)?.lowerBound else { return nil }
                    end = place
                }
                let value = PercentEncoding.decode(path[..<end].utf8)
                if let other = found.values.updateValue(value, forKey: name), other != value { return nil }
                path = path[end...]
            }
        }
        return path.isEmpty ? found : nil
    }

    /// The items of a template's query, by their names, with the one parameter that is a whole value.
    private static func items(_ pieces: [TargetTemplate.Piece]) -> [(name: [UInt8], parameter: String?)] {
        var items: [(name: [UInt8], parameter: String?)] = []
        var (text, parameters): (String, [String]) = ("", [])
        func flush() {
            guard !text.isEmpty || !parameters.isEmpty else { return }
            let isWhole = parameters.count == 1 && text.hasSuffix("=") && text.count { $0 == "=" } == 1
            items.append((TargetParts.Item(text[...]).name, isWhole ? parameters[0] : nil))
            (text, parameters) = ("", [])
        }
        for piece in pieces {
            switch piece {
            case .rest: break
            case .parameter(let name): parameters.append(name)
            case .literal(let literal):
                for (place, part) in literal.split(separator: "&", omittingEmptySubsequences: false).enumerated() {
                    if place > 0 { flush() }
                    // What follows a parameter in its item makes its value a part.
                    text += part
                }
            }
        }
        flush()
        return items
    }
}

extension PathPattern.Segment {
    fileprivate var parameterName: String? {
        if case .parameter(let name) = self { name } else { nil }
    }
}
