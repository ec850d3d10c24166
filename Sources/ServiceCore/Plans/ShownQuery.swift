// URLs as logs and events show them, without secrets.

import Content
import HTTPWire

package enum ShownQuery {
    /// A text with a query without its secrets: values of items whose names say that they are secret (`token=***`), and
    /// secret items of services.
    /// - Parameter secrets: the secret query items that services add.
    package static func text(_ value: String, _ secrets: SecretQuery) -> String {
        guard value.utf8.contains(UInt8(ascii: "?")) else { return value }
        return SecretURL.hidden(secrets.removed(from: value))
    }
}
