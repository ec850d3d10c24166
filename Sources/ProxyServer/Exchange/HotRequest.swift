// A request head in the read buffer, as the hot path sees it.

package import HTTPWire

/// A request head in the read buffer, for the length of ``ExchangeHandler/answerAtOnce(_:on:)``.
package struct HotRequest: ~Copyable {
    /// The method is GET.
    package let isGet: Bool
    package let version: HTTPVersion
    // Target and host lie in the connection's own read buffer, which stays as it is during the call.
    /// The target exactly as received.
    package let target: UnsafeRawBufferPointer
    /// The value of Host without surrounding whitespace.
    package let host: UnsafeRawBufferPointer?
    /// The known fields that occur.
    package let present: FieldSet
    package let keepAlive: Bool
    /// Without a body, expecting nothing, upgrading nothing, its target as it is matched.
    let isBare: Bool

    init(_ parser: inout RequestParser, buffer: UnsafeRawBufferPointer) {
        isGet = if case .get = parser.method { true } else { false }
        version = parser.version
        target = buffer.part(parser.targetRange)
        (host, present) = parser.hostAndFields(in: buffer)
        keepAlive = parser.keepAlive
        isBare =
            switch parser.framing {
            case .none, .length(0): parser.isOrdinary
            case .length, .chunked, .untilClose: false
            }
    }
}
