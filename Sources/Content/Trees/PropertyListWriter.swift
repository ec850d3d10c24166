// A tree as a property list in XML.

import HTTPWire

package enum PropertyListWriter {
    /// A document of version 1.0. A property list knows no null: such members and elements must be gone.
    /// - Throws: where there is a null, or a text with a character that XML cannot have.
    package static func bytes(_ tree: ContentTree) throws(TreeError) -> [UInt8] {
        var text = """
            <?xml version="1.0" encoding="UTF-8"?>
            <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
            <plist version="1.0">

            """
        try append(tree, to: &text)
        return Array((text + "</plist>\n").utf8)
    }

    private static func append(_ tree: ContentTree, to text: inout String) throws(TreeError) {
        switch tree {
        case .null: throw TreeError("a property list has no null; remove it, or set body.strip_nulls")
        case .bool(let value): text += value ? "<true/>\n" : "<false/>\n"
        case .number(let number):
            let isReal = number.contains { ".eE".contains($0) }
            text += isReal ? "<real>\(number)</real>\n" : "<integer>\(number)</integer>\n"
        case .string(let string): text += "<string>\(try escaped(string))</string>\n"
        case .data(let bytes): text += "<data>\(Base64.encode(bytes))</data>\n"
        case .date(let seconds): text += "<date>\(CalendarTime(seconds).iso8601)</date>\n"
        case .array(let values):
            text += "<array>\n"
            for value in values { try append(value, to: &text) }
            text += "</array>\n"
        case .object(let members):
            text += "<dict>\n"
            for member in members {
                text += "<key>\(try escaped(member.name))</key>\n"
                try append(member.value, to: &text)
            }
            text += "</dict>\n"
        }
    }

    private static func escaped(_ string: String) throws(TreeError) -> String {
        var result = ""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            // A reader of XML would make a line feed of it.
            case "\r": result += "&#13;"
            case "\t", "\n": result.unicodeScalars.append(scalar)
            case _ where scalar.value < 0x20 || scalar.value == 0xFFFE || scalar.value == 0xFFFF:
                throw TreeError("a property list cannot have the character U+\(String(scalar.value, radix: 16))")
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
