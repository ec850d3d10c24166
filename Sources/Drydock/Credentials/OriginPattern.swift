// Which origins the name of one in the settings means.

import HTTPWire
import ServiceCore

/// `[SCHEME://]HOST[:PORT]`. Without a scheme it means `https`: credentials for a host are not sent in the clear by
/// accident.
struct OriginPattern: Sendable, Hashable {
    private let scheme: String
    private let host: String
    /// Nil: any.
    private let port: UInt16?
    /// How much of an origin it names: of two that match, the one with more counts.
    let precision: Int

    /// - Returns: nil where the text is none.
    init?(_ text: String) {
        var rest = Substring(text)
        var named: String?
        if let mark = text.firstRange(of: "://") {
            named = text[..<mark.lowerBound].lowercased()
            rest = text[mark.upperBound...]
        }
        guard named == nil || named == "http" || named == "https", let place = Authority.parse(String(rest)) else {
            return nil
        }
        scheme = named ?? "https"
        host = place.host
        port = place.port
        precision = (place.port == nil ? 0 : 2) + (named == nil ? 0 : 1)
    }

    func matches(_ origin: OriginAddress) -> Bool {
        origin.scheme == scheme && origin.host == host && (port == nil || port == origin.effectivePort)
    }
}
