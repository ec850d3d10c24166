// A URL as logs and events show it: without the secrets in it.

import Content
import HTTPWire

package enum ShownQuery {
    /// A text with a query, without the values of items whose names say that they are secrets (`token=***`), and without
    /// secret items of services.
    /// - Parameter secrets: the secret query items that services add.
    package static func text(_ value: String, _ secrets: SecretQuery) -> String {
        guard value.utf8.contains(UInt8(ascii: "?")) else { return value }
        return SecretURL.hidden(secrets.removed(from: value))
    }
}
