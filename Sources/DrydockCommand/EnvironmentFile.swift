// A file of `EnvironmentFile=`, which gives the daemon's unit its variables, read as systemd reads it.

import DrydockDaemon
import EventLoop
import Files

/// The reader of such files: lines `NAME=VALUE`, quotes around values, backslashes, and comments behind `#` and `;`.
enum EnvironmentFile {
    /// The variables of a file.
    /// - Throws: `Failure` if it cannot be read, or with the line and the column of what is no variable.
    static func variables(_ path: String) throws -> [String: String] {
        let bytes: [UInt8]
        do throws(SystemError) { bytes = try WholeFile.read(path) } catch {
            throw Failure(message: "--environment \(path) cannot be read (\(error.reason)); name a file that can be")
        }
        return try variables(of: String(decoding: bytes, as: UTF8.self), in: path)
    }

    private static func variables(of text: String, in path: String) throws -> [String: String] {
        var result: [String: String] = [:]
        var rest = Substring(text)
        var line = 1
        /// Takes the rest of a line, its end included.
        func skipLine() {
            rest = rest.drop { !$0.isNewline }.dropFirst()
            line += 1
        }
        while let first = rest.first {
            if first.isNewline || first == "#" || first == ";" {
                skipLine()
                continue
            }
            if first.isWhitespace {
                rest.removeFirst()
                continue
            }
            let start = line
            func fail(_ reason: String) -> Failure {
                let isAfter = text[..<rest.startIndex].lastIndex(where: \.isNewline)
                let begin = isAfter.map { text.index(after: $0) } ?? text.startIndex
                let column = text.distance(from: begin, to: rest.startIndex) + 1
                return Failure(message: "\(path):\(start):\(column): \(reason)")
            }
            let name = String(rest.prefix { $0 != "=" && !$0.isNewline })
            guard isName(name), rest.dropFirst(name.count).first == "=" else {
                throw fail("'\(name)' is no variable; write NAME=VALUE, or # before a comment")
            }
            let here = rest
            rest = rest.dropFirst(name.count + 1)
            guard let value = value(&rest, &line) else {
                rest = here
                throw fail("the value of \(name) has a quote that does not end; write the second one")
            }
            result[name] = value
        }
        return result
    }

    /// Takes a value with its line's end. A backslash takes the next character as it is, and joins lines; in single quotes
    /// it is an ordinary character.
    /// - Returns: nil if a quote does not end.
    private static func value(_ rest: inout Substring, _ line: inout Int) -> String? {
        var value = ""
        // How much of the value is quoted, or escaped, and therefore no space to cut at its end.
        var kept = 0
        var quote: Character?
        rest = rest.drop { $0 == " " || $0 == "\t" }
        while let character = rest.popFirst() {
            if character.isNewline { line += 1 }
            switch (quote, character) {
            case (nil, _) where character.isNewline: return cut(value, kept)
            case (nil, "\""), (nil, "'"): quote = character
            case (let open?, _) where open == character:
                quote = nil
                kept = value.count
            case (nil, "\\"), ("\"", "\\"):
                guard let next = rest.popFirst() else { return cut(value, kept) }
                if next.isNewline {
                    line += 1
                } else {
                    // Between double quotes only these are escaped.
                    if quote != nil, !"\"\\`$".contains(next) { value.append("\\") }
                    value.append(next)
                    kept = value.count
                }
            default: value.append(character)
            }
        }
        return quote == nil ? cut(value, kept) : nil
    }

    /// The value without spaces at its end, but with the `kept` characters.
    private static func cut(_ value: String, _ kept: Int) -> String {
        var value = value
        while value.count > kept, value.last == " " || value.last == "\t" { value.removeLast() }
        return value
    }

    private static func isName(_ text: String) -> Bool {
        guard let first = text.utf8.first, !(48...57).contains(first) else { return false }
        return text.utf8.allSatisfy { byte in
            byte == 95 || (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
        }
    }
}
