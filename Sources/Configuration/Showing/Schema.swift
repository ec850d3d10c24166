// The JSON Schema of the configuration file, made from the table of keys.

import Policies

package enum ConfigurationSchema {
    /// What `drydock config schema` prints: JSON Schema draft 7, with a line feed at the end.
    package static var text: String {
        var root = Schema.object(KeyTable.root)
        root.insert(("title", .text("Drydock configuration")), at: 0)
        root.insert(("$schema", .text("http://json-schema.org/draft-07/schema#")), at: 0)
        return JSONText.object(root).written() + "\n"
    }
}

/// A JSON value for writing; objects keep their order.
indirect enum JSONText {
    case text(String)
    case number(Int)
    case bool(Bool)
    case array([JSONText])
    case object([(String, JSONText)])

    func written(indent: String = "") -> String {
        let inner = indent + "  "
        switch self {
        case .text(let text): return Self.quoted(text)
        case .number(let number): return String(number)
        case .bool(let bool): return String(bool)
        case .array(let items):
            return "[" + items.map { $0.written(indent: inner) }.joined(separator: ", ") + "]"
        case .object(let members):
            if members.isEmpty { return "{}" }
            let lines = members.map { inner + Self.quoted($0) + ": " + $1.written(indent: inner) }
            return "{\n" + lines.joined(separator: ",\n") + "\n" + indent + "}"
        }
    }

    /// A text as a JSON string, which is also a double-quoted scalar of YAML.
    static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\t": result += "\\t"
            case "\r": result += "\\r"
            case let control where control.value < 32 || control.value == 127:
                let hex = String(control.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}

enum Schema {
    private typealias Members = [(String, JSONText)]
    /// The pattern of a value with an environment variable, which every key accepts.
    private static let variable = "\\$\\{.+\\}"
    private static let durationPattern = "[0-9]+(ms|s|m|h|d)"

    static func object(_ section: SectionDescriptor) -> [(String, JSONText)] {
        var properties: Members = []
        for key in section.keys {
            var members: Members = [("description", .text(key.doc))]
            if let text = key.defaultText { members.append(("default", defaultValue(text, key.kind))) }
            properties.append((key.name, .object(members + schema(key.kind))))
        }
        var result: Members = [
            ("type", .text("object")), ("additionalProperties", .bool(false)), ("properties", .object(properties)),
        ]
        if section.hasOwnKeys { result.append(("patternProperties", .object([("^x-", .object([]))]))) }
        let required = section.keys.filter(\.required).map { JSONText.text($0.name) }
        if !required.isEmpty { result.append(("required", .array(required))) }
        return result
    }

    private static func schema(_ kind: ValueKind) -> Members {
        switch kind {
        case .boolean:
            return either([[("type", .text("boolean"))], [("enum", texts(["on", "off", "yes", "no"]))], pattern("")])
        case .integer(let range):
            var members: Members = [("type", .text("integer")), ("minimum", .number(range.lowerBound))]
            if range.upperBound < Int.max { members.append(("maximum", .number(range.upperBound))) }
            return either([members, pattern("")])
        case .word(let word, or: let other): return either([[("const", .text(word))], schema(other)])
        case .choice(let words):
            // A word of digits is a number to YAML, so that both forms are allowed.
            let values = words.flatMap { word in [JSONText.text(word)] + (Int(word).map { [.number($0)] } ?? []) }
            return either([[("enum", .array(values))], pattern("")])
        case .duration, .lifetime: return pattern(durationPattern)
        case .shift: return pattern("[-+]?\(durationPattern)")
        case .size: return pattern("[0-9]+(B|KiB|MiB|GiB|TiB)")
        case .share: return pattern("[0-9]+(\\.[0-9]+)?%")
        case .weighted(let single): return either([schema(single), schema(.map(.status, .share))])
        case .latency: return pattern("\(durationPattern)( *\\.\\. *\(durationPattern))?")
        case .distribution:
            let numbers = "\\( *\(durationPattern) *, *(p99=)?\(durationPattern) *\\)"
            let learned = "learned(\\(.+\\))?"
            return pattern("\(durationPattern)( *\\.\\. *\(durationPattern))?|(log)?normal\(numbers)|\(learned)")
        case .rate: return pattern("[0-9]+(B|KiB|MiB|GiB|TiB)/s")
        case .permissions: return either([pattern("[0-7]{3,4}"), [("type", .text("integer"))]])
        case .address: return pattern("unix:/.+|.*:[0-9]+")
        case .listener: return pattern("unix:/.+|((https?|any)://)?.*:[0-9]+")
        case .baseURL: return pattern("https?://.+|service:.+")
        case .collector: return pattern("https?://.+")
        case .upstreamProxy: return pattern("none|env|http://.+")
        case .endpointPath, .target: return pattern("/.*")
        case .tree: return []
        case .text(.prefix), .text(.requestPath): return pattern("/.*")
        case .text(.batchURL): return pattern("(/|https?://).*")
        // A status is a number to YAML, so that both forms are allowed.
        case .text(.statuses), .text(.retryCause): return [("type", texts(["string", "integer"]))]
        case .text(.any), .text(.fieldValue): return [("type", texts(["string", "number", "boolean"]))]
        case .text, .path, .demoFile, .logTarget, .client: return [("type", .text("string"))]
        case .list(let element): return [("type", .text("array")), ("items", .object(schema(element)))]
        case .oneOrMore(let element): return either([schema(element), schema(.list(element))])
        case .map(let keys, let element):
            var members: Members = [("type", .text("object"))]
            if case .status = keys {
                members.append(("propertyNames", .object([("pattern", .text("^[2-5][0-9][0-9]$"))])))
            } else if case .logModule = keys {
                members.append(("propertyNames", .object([("enum", texts(LogModule.allCases.map(\.rawValue)))])))
            }
            return members + [("additionalProperties", .object(schema(element)))]
        case .mappingRule: return [("type", texts(["string", "object"]))]
        case .section(let section): return object(section)
        case .sections(let section): return [("type", .text("array")), ("items", .object(object(section)))]
        case .rules(let section, let key):
            let one = schema(.shorthand(section, key: key))
            return either([one, [("type", .text("array")), ("items", .object(one))]])
        case .shorthand(let section, let key):
            guard let descriptor = section.key(key) else { return object(section) }
            return either([object(section), schema(descriptor.kind)])
        }
    }

    /// A string of this form, or one with an environment variable; an empty form allows the variable only.
    private static func pattern(_ form: String) -> Members {
        [("type", .text("string")), ("pattern", .text(form.isEmpty ? variable : "^(\(form))$|\(variable)"))]
    }

    private static func texts(_ words: [String]) -> JSONText { .array(words.map { .text($0) }) }

    private static func either(_ choices: [Members]) -> Members {
        [("anyOf", .array(choices.map { .object($0) }))]
    }

    private static func defaultValue(_ text: String, _ kind: ValueKind) -> JSONText {
        switch kind {
        case .boolean: .bool(text == "true")
        case .integer, .weighted: Int(text).map { .number($0) } ?? .text(text)
        case .list:
            .array(
                text.dropFirst().dropLast().split(separator: ",").map { item -> JSONText in
                    let word = String(item.filter { !"\" ".contains($0) })
                    return Int(word).map { .number($0) } ?? .text(word)
                }
            )
        default: .text(text)
        }
    }
}
