// Text as a string of structured fields (RFC 9651): what Cache-Status and Proxy-Status carry.

public enum StructuredText {
    /// A quoted string (section 3.3.3); a character that it cannot hold becomes a question mark.
    public static func string(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": result += "\\\(scalar)"
            case " "..."~": result.unicodeScalars.append(scalar)
            default: result += "?"
            }
        }
        return result + "\""
    }
}
