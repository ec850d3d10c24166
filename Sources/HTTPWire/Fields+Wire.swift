// Field lines as bytes: in runs that are written at once, compared, and shown.

extension Fields {
    /// Calls `body` with the lines as they go on the wire, each with its CRLF; those that lie side by side come together.
    /// The pointers are valid during the call.
    /// - Parameter omitted: lines of this name are left out; `.other` leaves none out.
    package func forEachRun(without omitted: KnownField = .other, _ body: (UnsafeRawBufferPointer) -> Void) {
        var names: FieldSet = []
        if omitted != .other { names.insert(omitted) }
        forEachRun(without: names, body)
    }

    /// As above, without the lines of several names; `.other` must not be among them.
    package func forEachRun(without omitted: FieldSet, _ body: (UnsafeRawBufferPointer) -> Void) {
        wire.withUnsafeBytes { bytes in
            var run = 0..<0
            for line in index where !omitted.contains(line.known) {
                let whole = line.whole
                if run.upperBound == whole.lowerBound {
                    run = run.lowerBound..<whole.upperBound
                } else {
                    if !run.isEmpty { body(bytes.part(run)) }
                    run = whole
                }
            }
            if !run.isEmpty { body(bytes.part(run)) }
        }
    }
}

extension Fields: Equatable {
    /// The same lines in the same order, byte for byte.
    package static func == (left: Fields, right: Fields) -> Bool {
        guard left.index.count == right.index.count, left.present == right.present else { return false }
        return left.wire.withUnsafeBytes { leftBytes in
            right.wire.withUnsafeBytes { rightBytes in
                zip(left.index, right.index).allSatisfy {
                    leftBytes.part($0.whole).elementsEqual(rightBytes.part($1.whole))
                }
            }
        }
    }
}

extension Fields: CustomStringConvertible {
    package var description: String { lines.map { "\($0.name): \($0.value)" }.joined(separator: "\n") }
}
