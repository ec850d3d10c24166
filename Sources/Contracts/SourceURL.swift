// URLs as documents of other tools write them.

import Trees

/// An `http` or `https` URL.
package struct SourceURL: Equatable {
    /// The scheme, host and port, without user information.
    package let origin: String
    /// The host in lower case, without the port.
    package let host: String
    package let port: String?
    /// The path as the source has it; `/` if there is none.
    package let path: String
    /// The items of the query, decoded, in their order.
    package let query: [(name: String, value: String)]

    package static func == (left: SourceURL, right: SourceURL) -> Bool {
        left.origin == right.origin && left.path == right.path
            && left.query.elementsEqual(right.query) { $0 == $1 }
    }

    /// Reads a URL; nil if it is not http or https, or if no service could have its host.
    package init?(_ text: String) {
        guard let mark = text.firstRange(of: "://") else { return nil }
        let scheme = text[..<mark.lowerBound].lowercased()
        guard scheme == "http" || scheme == "https" else { return nil }
        let rest = text[mark.upperBound...].prefix { $0 != "#" }
        let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        var authority = rest[..<end]
        if let at = authority.lastIndex(of: "@") { authority = authority[authority.index(after: at)...] }
        var port: String?
        if let colon = authority.lastIndex(of: ":") {
            guard let number = UInt16(authority[authority.index(after: colon)...]), number > 0 else { return nil }
            port = number == (scheme == "http" ? 80 : 443) ? nil : String(number)
            authority = authority[..<colon]
        }
        host = authority.lowercased()
        guard Self.isHost(host) else { return nil }
        self.port = port
        origin = "\(scheme)://\(host)" + (port.map { ":\($0)" } ?? "")
        (path, query) = Self.target(rest[end...])
    }

    /// The path and the query items of a target.
    package static func target(_ target: Substring) -> (path: String, query: [(name: String, value: String)]) {
        let mark = target.firstIndex(of: "?") ?? target.endIndex
        let path = target[..<mark].isEmpty ? "/" : encoded(String(target[..<mark]))
        return (path, FormItems.list(target[mark...].dropFirst()))
    }

    /// The path with those characters encoded that a client has to encode.
    package static func encoded(_ path: String) -> String {
        if path.utf8.allSatisfy({ $0 > 32 && $0 < 127 }) { return path }
        var result = ""
        for byte in path.utf8 {
            result += byte > 32 && byte < 127 ? String(Unicode.Scalar(byte)) : PercentEncoding.encode([byte])
        }
        return result
    }

    private static func isHost(_ host: String) -> Bool {
        let labels = host.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        func isAlphanumeric(_ byte: UInt8) -> Bool {
            byte >= 48 && byte <= 57 || byte >= 97 && byte <= 122
        }
        let isName = labels.allSatisfy { label in
            !label.isEmpty && label.count <= 63 && label.allSatisfy { isAlphanumeric($0) || $0 == 45 || $0 == 95 }
                && label.first != 45 && label.last != 45
        }
        guard host.utf8.count <= 253, isName, let last = labels.last else { return false }
        let isNumber = last.allSatisfy { $0 >= 48 && $0 <= 57 }
        return !isNumber
            || labels.count == 4
                && labels.allSatisfy { UInt8(Substring($0)) != nil && ($0.count == 1 || $0.first != 48) }
    }
}
