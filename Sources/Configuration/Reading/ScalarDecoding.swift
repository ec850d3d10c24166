// From the text of a scalar, with the variables of the environment in it, to its typed value, kind by kind.

import EventLoop
import FoundationEssentials
import Matching
import Policies

enum ScalarDecoding {
    /// Decodes a scalar.
    ///
    /// - Parameters:
    ///   - plain: whether the text has no quotes, or comes from the environment, so that it may be a number or a
    ///     boolean.
    ///   - file: the file of the value, whose folder makes paths absolute.
    ///   - environment: the variables for a value that names the environment.
    /// - Returns: the typed value, and its text for output.
    static func leaf(
        _ text: String,
        plain: Bool,
        _ kind: ValueKind,
        file: String,
        environment: [String: String] = [:]
    ) throws(ScalarProblem) -> (text: String, scalar: Scalar) {
        switch kind {
        case .boolean: return (text, .bool(try boolean(text, plain: plain)))
        case .integer(let range): return (text, .int(try integer(text, plain: plain, range)))
        case .word(let word, or: let other):
            if text == word { return (text, .none) }
            if case .integer(let range) = other {
                return (text, .int(try integer(text, plain: plain, range, or: " or '\(word)'")))
            }
            // Each of these messages ends in advice, to which the word is added.
            do { return try leaf(text, plain: plain, other, file: file) } catch {
                throw ScalarProblem(error.message + ", or '\(word)'")
            }
        case .choice(let words):
            guard words.contains(text) else {
                let near = Suggestions.nearest(to: text, among: words)
                throw unknown(text, near: near, words.joined(separator: ", "))
            }
            return (text, .text(text))
        case .weighted(let single): return try leaf(text, plain: plain, single, file: file)
        case .duration: return (text, .nanoseconds(try Units.duration(text)))
        case .lifetime: return (text, .nanoseconds(try Units.lifetime(text)))
        case .shift: return (text, .shift(try Units.shift(text)))
        case .size: return (text, .bytes(try Units.size(text)))
        case .share: return (text, .share(try Units.share(text)))
        case .latency: return (text, .latency(try Units.latency(text)))
        case .distribution: return (text, .distribution(try Units.distribution(text)))
        case .rate: return (text, .bytes(try Units.rate(text)))
        case .permissions:
            guard (3...4).contains(text.utf8.count), let mode = Int(text, radix: 8), mode & ~0o777 == 0,
                text.utf8.allSatisfy({ (48...55).contains($0) })
            else { throw ScalarProblem("takes octal permissions such as \"0660\", not '\(text)'") }
            return (text, .int(mode))
        case .text(let rule):
            let checked = try rule.check(text)
            return (checked, .text(checked))
        case .path, .demoFile:
            let path = try path(text)
            let absolute = Paths.absolute(path, besideFile: file)
            if case .demoFile = kind { return (path, .text(path)) }
            return (absolute, .text(absolute))
        case .logTarget:
            if ["stdout", "stderr", "off"].contains(text) { return (text, .text(text)) }
            guard text.contains("/") else {
                throw unknown(text, near: logTarget(near: text), "stdout, stderr, off or a path such as ./access.log")
            }
            let absolute = Paths.absolute(try path(text), besideFile: file)
            return (absolute, .text(absolute))
        case .address:
            let address = try Addresses.listen(text)
            return (address.description, .address(address))
        case .listener:
            let point = try Addresses.listener(text)
            return (point.description, .listener(point))
        case .client:
            let rule = try Addresses.client(text)
            return (rule.description, .client(rule))
        case .baseURL: return (text, .baseURL(try Addresses.baseURL(text)))
        case .collector: return (text, .baseURL(.origin(try Addresses.collector(text))))
        case .upstreamProxy: return (text, .proxies(try ProxyReading.proxies(text, environment)))
        case .endpointPath: return (text, .endpointPath(try Addresses.endpointPath(text)))
        case .target:
            if let name = Addresses.braced(text) {
                throw ScalarProblem("'\(text)' has a parameter of another tool; write :\(name)")
            }
            do throws(TargetTemplate.Malformed) {
                return (text, .target(try TargetTemplate(text)))
            } catch {
                throw ScalarProblem(error.message)
            }
        case .mappingRule:
            // Numbers and booleans are kept apart from texts, because they may replace a missing value.
            if plain, text == "true" || text == "false" { return (text, .bool(text == "true")) }
            return (text, plain && Double(text) != nil && !text.contains { $0.isLetter } ? .int(0) : .text(text))
        case .tree, .list, .oneOrMore, .map, .section, .sections, .shorthand, .rules:
            throw ScalarProblem("takes \(kind.example), not '\(text)'")
        }
    }

    private static func unknown(_ text: String, near: String?, _ known: String) -> ScalarProblem {
        guard let near else { return ScalarProblem("does not know '\(text)'; it takes \(known)") }
        return ScalarProblem("does not know '\(text)'; did you mean '\(near)'? It takes \(known)")
    }

    /// The likely meaning of a word that is no target of a log; nil if there is none.
    private static func logTarget(near text: String) -> String? {
        switch text.lowercased() {
        case "on", "yes", "true", "out": "stdout"
        case "none", "no", "false": "off"
        case _ where text.contains("."): "./\(text)"
        default: Suggestions.nearest(to: text, among: ["stdout", "stderr", "off"])
        }
    }

    private static func boolean(_ text: String, plain: Bool) throws(ScalarProblem) -> Bool {
        let known: Bool? =
            switch text.lowercased() {
            case "true", "on", "yes": true
            case "false", "off", "no": false
            default: nil
            }
        guard let known else { throw ScalarProblem("takes true or false, not '\(text)'") }
        guard plain else { throw ScalarProblem("takes true or false, not text; remove the quotes") }
        return known
    }

    /// Decodes a whole number.
    /// - Parameter other: the other values of the key, for the end of the message.
    private static func integer(
        _ text: String,
        plain: Bool,
        _ range: ClosedRange<Int>,
        or other: String = ""
    ) throws(ScalarProblem) -> Int {
        let digits = text.hasPrefix("-") ? String(text.dropFirst()) : text
        guard !digits.isEmpty, digits.utf8.allSatisfy({ (48...57).contains($0) }) else {
            throw ScalarProblem("takes a whole number\(other), not '\(text)'")
        }
        guard plain else { throw ScalarProblem("takes a whole number\(other), not text; remove the quotes") }
        guard let value = Int(text), range.contains(value) else {
            throw ScalarProblem("takes a number from \(range.lowerBound) to \(range.upperBound)\(other), not \(text)")
        }
        return value
    }

    private static func path(_ text: String) throws(ScalarProblem) -> String {
        guard !text.isEmpty, !text.contains("\0") else {
            throw ScalarProblem("takes a path, which cannot be empty; write one")
        }
        guard !text.hasPrefix("~") else { throw ScalarProblem("does not know '~'; write ${HOME}\(text.dropFirst())") }
        return text
    }
}

/// Paths of files that a configuration names.
enum Paths {
    /// The absolute path of a file that is named relative to another one, without `.` and `..`.
    static func absolute(_ path: String, besideFile file: String) -> String {
        if path.hasPrefix("/") { return normal(path) }
        let folder = file.lastIndex(of: "/").map { String(file[..<$0]) + "/" } ?? ""
        let relative = folder + path
        if relative.hasPrefix("/") { return normal(relative) }
        return normal(FileManager.default.currentDirectoryPath + "/" + relative)
    }

    /// An absolute path without empty segments, `.` and `..`.
    static func normal(_ path: String) -> String {
        var segments: [Substring] = []
        for segment in path.split(separator: "/") where segment != "." {
            if segment == ".." { _ = segments.popLast() } else { segments.append(segment) }
        }
        return "/" + segments.joined(separator: "/")
    }
}

enum Expansion {
    /// Replaces every variable in a text; `$${` stands for a literal `${`.
    /// - Returns: the text, and whether there was a variable.
    static func expand(
        _ text: String,
        _ environment: [String: String]
    ) throws(ScalarProblem) -> (text: String, found: Bool) {
        guard text.contains("${") else { return (text, false) }
        var rest = text[...]
        var result = ""
        var found = false
        while let dollar = rest.firstRange(of: "${") {
            if rest[..<dollar.lowerBound].last == "$" {
                result += rest[..<dollar.lowerBound].dropLast() + "${"
                rest = rest[dollar.upperBound...]
                continue
            }
            result += rest[..<dollar.lowerBound]
            guard let end = closingBrace(rest[dollar.upperBound...]) else {
                throw ScalarProblem("'${' has no '}'; add it, or write $${ for a literal '${'")
            }
            result += try value(of: rest[dollar.upperBound..<end], environment)
            rest = rest[rest.index(after: end)...]
            found = true
        }
        return (result + rest, found)
    }

    private static func value(
        of reference: Substring,
        _ environment: [String: String]
    ) throws(ScalarProblem) -> String {
        let parts = reference.firstRange(of: ":-")
        let name = String(parts.map { reference[..<$0.lowerBound] } ?? reference)
        guard let first = name.utf8.first, !(48...57).contains(first), name.utf8.allSatisfy(isNameByte) else {
            throw ScalarProblem(
                "'${\(reference)}' does not name an environment variable; write ${NAME} or ${NAME:-default}"
            )
        }
        if let value = environment[name], parts == nil || !value.isEmpty { return value }
        guard let parts else {
            throw ScalarProblem(
                "the environment variable \(name) is not set; set it, or write ${\(name):-default}",
                isOfProcess: true
            )
        }
        return try expand(String(reference[parts.upperBound...]), environment).text
    }

    /// The index of the brace that ends a reference; references inside its default are skipped.
    private static func closingBrace(_ text: Substring) -> Substring.Index? {
        var depth = 1
        var index = text.startIndex
        while index < text.endIndex {
            let next = text.index(after: index)
            if text[index] == "}" {
                depth -= 1
                if depth == 0 { return index }
            } else if text[index] == "$", next < text.endIndex, text[next] == "{" {
                depth += 1
            }
            index = next
        }
        return nil
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        byte == 95 || (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
    }
}
