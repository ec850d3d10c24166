// Field lines in any storage: in a head of their own, or still in the buffer in which a parser found them.

import Glibc

/// The fields that the caching rules read, so that the same rules work on stored heads and on borrowed ones.
public protocol FieldLines {
    /// Calls `body` with each line in order; values are without surrounding whitespace. The pointers are valid during
    /// the call.
    func forEachLine(
        _ body: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ known: KnownField) -> Void
    )

    /// Calls `body` with the value of each line of this name. The pointer is valid during the call.
    func forEachValue(_ field: KnownField, _ body: (UnsafeRawBufferPointer) -> Void)
}

extension Fields: FieldLines {
    /// Copies the lines from any storage.
    public init(_ lines: some FieldLines) {
        self.init()
        lines.forEachLine { name, value, _ in append(nameBytes: name, valueBytes: value) }
    }
}

extension UnsafeRawBufferPointer {
    /// Calls `body` with each of the field lines in the buffer, which has the form that ``Fields`` writes.
    public func forEachFieldLine(
        _ body: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ known: KnownField) -> Void
    ) {
        guard let base = baseAddress else { return }
        var start = 0
        while start < count {
            let rest = base + start
            guard let end = memchr(rest, 0x0A, count - start), let colon = memchr(rest, 0x3A, count - start) else {
                return
            }
            let (lineEnd, nameEnd) = (UnsafeRawPointer(end) - base, UnsafeRawPointer(colon) - base)
            let name = part(start..<nameEnd)
            // There is a colon and a space before the value, and a CRLF after it.
            guard nameEnd + 3 <= lineEnd else { return }
            body(name, part(nameEnd + 2..<lineEnd - 1), KnownField.find(name))
            start = lineEnd + 1
        }
    }
}

/// The lines of a request in a connection's memory: valid only while the buffer is unchanged, so never stored.
/// Allocates nothing.
public struct BorrowedLines: FieldLines {
    private let entries: [FieldEntry]
    // This is the connection's own read buffer, which does not change during the call of its handler.
    private let buffer: UnsafeRawBufferPointer

    public init(_ entries: [FieldEntry], in buffer: UnsafeRawBufferPointer) {
        self.entries = entries
        self.buffer = buffer
    }

    public func forEachLine(
        _ body: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ known: KnownField) -> Void
    ) {
        for entry in entries { body(entry.name(in: buffer), entry.value(in: buffer), entry.known) }
    }
}

extension RequestParser {
    /// The lines of a complete head, borrowed from its buffer.
    public func lines(in buffer: UnsafeRawBufferPointer) -> BorrowedLines { BorrowedLines(entries, in: buffer) }
}

extension FieldLines {
    /// Calls `body` with the value of each line of this name; scans all lines.
    public func forEachValue(_ field: KnownField, _ body: (UnsafeRawBufferPointer) -> Void) {
        forEachLine { _, value, known in
            if known == field { body(value) }
        }
    }

    /// The result of `read` for the only line of this name; nil if there is none, or more than one.
    public func only<R>(_ field: KnownField, _ read: (UnsafeRawBufferPointer) -> R?) -> R? {
        var count = 0
        var result: R?
        forEachValue(field) { value in
            count += 1
            result = count == 1 ? read(value) : nil
        }
        return result
    }

    /// Whether no Connection field names a field of this head (RFC 9110 section 7.6.1), which would have no end-to-end
    /// meaning.
    public var areEndToEnd: Bool {
        var isPlain = true
        forEachValue(.connection) { value in
            value.forEachMember { member in
                if !member.isEmpty, !member.equalsIgnoringCase("keep-alive"), !member.equalsIgnoringCase("close") {
                    isPlain = false
                }
            }
        }
        return isPlain
    }
}
