// Checks that bytes are one JSON text (RFC 8259), piece by piece and without building a tree.

import Trees

/// A scanner for one JSON text; a value type. Numbers, literals and escapes have to follow the grammar; text has to be
/// UTF-8.
struct JSONScanner {
    /// The most levels of nested arrays and objects.
    static let depthLimit = 10_000

    /// The kind of the outermost value.
    enum Root: Equatable { case object, array, other }

    private var tokenizer = JSONTokenizer(depth: depthLimit)
    /// The number of bytes of a byte order mark so far, which may be ignored (RFC 8259 section 8.1); nil behind it.
    private var mark: Int? = 0
    private(set) var root: Root?
    private(set) var hasFailed = false

    /// Whether the bytes so far are a complete JSON text.
    var isComplete: Bool { !hasFailed && tokenizer.mayEnd }

    /// Scans the next bytes.
    /// - Returns: false once they cannot be a JSON text any more.
    mutating func push(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard !hasFailed, let base = bytes.bindMemory(to: UInt8.self).baseAddress else { return !hasFailed }
        do throws(JSONFault) { try scan(base, bytes.count) } catch { hasFailed = true }
        return !hasFailed
    }

    private mutating func scan(_ bytes: UnsafePointer<UInt8>, _ end: Int) throws(JSONFault) {
        var position = 0
        while let count = mark, position < end {
            if bytes[position] == [0xEF, 0xBB, 0xBF][count] {
                position += 1
                mark = count == 2 ? nil : count + 1
            } else {
                guard count == 0 else { throw JSONFault(.value) }
                mark = nil
            }
        }
        if root == nil {
            while position < end, JSONTokenizer.isSpace(bytes[position]) { position += 1 }
            guard position < end else { return }
            let token = try tokenizer.next(bytes, &position, end, isLast: false)
            root = token == .objectBegins ? .object : token == .arrayBegins ? .array : .other
        }
        position = try tokenizer.advance(bytes, from: position, to: end, isLast: false)
        while position < end, JSONTokenizer.isSpace(bytes[position]) { position += 1 }
        guard position == end else { throw JSONFault(.end) }
    }
}
