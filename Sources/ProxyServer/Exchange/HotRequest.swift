// A request head in the read buffer, as the hot path sees it.

package import HTTPWire

/// A request head in the read buffer, for the length of ``ExchangeHandler/answerSynchronously(_:through:)``.
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
    // The connection's own, which holds both and changes neither during the call.
    private let parser: UnsafeMutablePointer<RequestParser>
    private let buffer: UnsafeRawBufferPointer

    /// The parser and the bytes that it has read a whole head in stay as they are while this is used.
    init(_ parser: UnsafeMutablePointer<RequestParser>, buffer: UnsafeRawBufferPointer) {
        self.parser = parser
        self.buffer = buffer
        isGet = if case .get = parser.pointee.method { true } else { false }
        version = parser.pointee.version
        target = buffer.part(parser.pointee.targetRange)
        (host, present) = parser.pointee.hostAndFields(in: buffer)
        keepAlive = parser.pointee.keepAlive
        isBare =
            switch parser.pointee.framing {
            case .none, .length(0): parser.pointee.isOrdinary
            case .length, .chunked, .untilClose: false
            }
    }

    package var method: Method { parser.pointee.method }

    /// The field lines where they lie; valid during the call.
    var fields: BorrowedLines { parser.pointee.lines(in: buffer) }
}
