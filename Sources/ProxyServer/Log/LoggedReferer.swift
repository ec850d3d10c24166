// Referer as the access log has it: without the secrets in its query.

import HTTPWire
import ServiceCore

enum LoggedReferer {
    /// - Parameters:
    ///   - value: the value of the field; without a query it is not copied.
    ///   - secrets: the secret query items that services add; they must not get into a line.
    static func text(_ value: UnsafeRawBufferPointer, _ secrets: SecretQuery) -> LogText {
        guard value.contains(UInt8(ascii: "?")) else { return .bytes(value) }
        return .string(text(Latin1.string(value), secrets))
    }

    /// - Parameters:
    ///   - value: of the field.
    ///   - secrets: the secret query items that services add; they must not get into a line.
    static func text(_ value: String, _ secrets: SecretQuery) -> String { ShownQuery.text(value, secrets) }
}
