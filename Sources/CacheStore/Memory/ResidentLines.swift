// The stored fields of a held response, read out of its ready head: most of their lines are the same there.

package import HTTPWire

/// Field lines read in place, without allocation; valid only while the resident response is, so never stored.
package struct ResidentLines: FieldLines {
    /// The effect of a step on the next bytes of the prepared head, or of the steps themselves.
    private enum Kind: UInt64 {
        case copy, skip, own
    }

    // Inside the block of the response, which the reader of the lines must hold.
    private let steps: UnsafeRawBufferPointer
    private let readyHead: UnsafeRawBufferPointer
    private let isWhole: Bool

    /// Lines that `steps` picks out of a ready head.
    init(_ steps: UnsafeRawBufferPointer, readyHead: UnsafeRawBufferPointer) {
        (self.steps, self.readyHead, isWhole) = (steps, readyHead, false)
    }

    /// Lines that are there themselves.
    init(whole lines: UnsafeRawBufferPointer) {
        (steps, readyHead, isWhole) = (UnsafeRawBufferPointer(start: nil, count: 0), lines, true)
    }

    package func forEachLine(
        _ body: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ known: KnownField) -> Void
    ) {
        if isWhole { return readyHead.forEachFieldLine(body) }
        var reader = PackedReader(steps)
        var place = 0
        while !reader.isAtEnd {
            let step = reader.unsigned()
            let count = Int(step >> 2)
            switch Kind(rawValue: step & 3) {
            case .copy:
                readyHead.part(place..<place + count).forEachFieldLine(body)
                place += count
            case .own: reader.take(count).forEachFieldLine(body)
            case .skip, nil: place += count
            }
        }
    }

    /// The steps from a ready head to `lines`, which end with CRLF each.
    static func steps(to lines: [UInt8], from readyHead: [UInt8]) -> [UInt8] {
        let ready = whole(readyHead[...])
        var steps: [UInt8] = []
        var pending: (kind: Kind, bytes: ArraySlice<UInt8>) = (.copy, [])
        func flush() {
            guard !pending.bytes.isEmpty else { return }
            steps.append(unsigned: UInt64(pending.bytes.count) << 2 | pending.kind.rawValue)
            if pending.kind == .own { steps.append(contentsOf: pending.bytes) }
        }
        func add(_ kind: Kind, _ bytes: ArraySlice<UInt8>) {
            if kind == pending.kind, pending.bytes.endIndex == bytes.startIndex {
                pending.bytes = (kind == .own ? lines : readyHead)[pending.bytes.startIndex..<bytes.endIndex]
            } else {
                flush()
                pending = (kind, bytes)
            }
        }
        var next = 0
        for line in whole(lines[...]) {
            guard let match = ready[next...].firstIndex(of: line) else {
                add(.own, line)
                continue
            }
            for skipped in ready[next..<match] { add(.skip, skipped) }
            add(.copy, ready[match])
            next = match + 1
        }
        flush()
        return steps
    }

    /// The lines, each with its end.
    private static func whole(_ bytes: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
        var lines: [ArraySlice<UInt8>] = []
        var start = bytes.startIndex
        while start < bytes.endIndex {
            let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? bytes.endIndex
            lines.append(bytes[start..<end])
            start = end
        }
        return lines
    }
}
