// A URL as logs and events show it: without the secrets in its query.

import Content
import HTTPWire

package enum ShownQuery {
    /// A text with a query, without the values of items whose names say that they are secrets (`token=***`), and without
    /// secret items of services.
    /// - Parameter secrets: the secret query items that services add.
    package static func text(_ value: String, _ secrets: SecretQuery) -> String {
        guard value.utf8.contains(UInt8(ascii: "?")) else { return value }
        let value = secrets.removed(from: value)
        guard let mark = value.firstIndex(of: "?") else { return value }
        var text = String(value[...mark])
        var rest = value[value.index(after: mark)...]
        while !rest.isEmpty {
            let end = rest.firstIndex { $0 == "&" || $0 == ";" } ?? rest.endIndex
            text += hidden(rest[..<end])
            guard end < rest.endIndex else { break }
            text.append(rest[end])
            rest = rest[rest.index(after: end)...]
        }
        return text
    }

    /// An item of a query, without its value where its name says that it is a secret.
    private static func hidden(_ item: Substring) -> String {
        guard let sign = item.firstIndex(of: "="), sign < item.index(before: item.endIndex),
            SecretNames.contains(decoded(item[..<sign]))
        else { return String(item) }
        return item[...sign] + "***"
    }

    private static func decoded(_ name: Substring) -> String {
        var name = String(name)
        return name.withUTF8 { bytes in
            let bytes = UnsafeRawBufferPointer(bytes)
            var (decoded, position): ([UInt8], Int) = ([], 0)
            while position < bytes.count {
                let next = DecodedByte(bytes, at: position)
                decoded.append(next.byte)
                position = next.next
            }
            return String(decoding: decoded, as: UTF8.self)
        }
    }
}
