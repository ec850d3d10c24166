// The stored fields of a resident response: read from its prepared head, which has most of their lines, with steps for
// the others.

import HTTPCaching
package import HTTPWire

/// The record of a resident response, made by ``encode(_:readyHead:number:bodyCount:)``; in memory only.
///
/// It has the names of Vary, its fields, and the steps to the fields, each with its length before it; then the
/// request's values for the fields of Vary, times as differences, and the properties that most heads lack.
struct ResidentRecord {
    private struct Flags: OptionSet {
        let rawValue: UInt8
        static let hasBodyLength = Flags(rawValue: 1)
        /// The declared length differs from the body's.
        static let isOtherLength = Flags(rawValue: 2)
        static let hasAge = Flags(rawValue: 4)
        static let isStale = Flags(rawValue: 8)
        static let hadAuthorization = Flags(rawValue: 16)
        static let isOtherMethod = Flags(rawValue: 32)
        /// The reason phrase differs from that in the ready head.
        static let isOtherReason = Flags(rawValue: 64)
        static let isChanged = Flags(rawValue: 128)
    }

    // Parts of the block of the response, which the reader of the record must retain.
    let varyNames: UnsafeRawBufferPointer
    let varyFields: UnsafeRawBufferPointer
    /// The steps that ``ResidentLines`` reads the fields with.
    let fields: UnsafeRawBufferPointer
    let responseTime: Int64
    /// The ranges of the first values of these fields in the prepared head; empty for an absent field.
    let etag, lastModified, date: ValueRange
    /// Whether one of them is not in the prepared head.
    let isElsewhere: Bool
    /// Whether the body is a mapped document; the origin's own properties are then at the end.
    private let isMapped: Bool
    /// Whether the response was stored under an expectation, which follows the properties of a mapped document's
    /// origin.
    private let isExpected: Bool
    /// Whether the key of the variant is the first in `rest`.
    private let hasVariantKey: Bool
    private let rest: PackedReader

    struct ValueRange {
        var start = 0
        var count = 0
    }

    init(_ bytes: UnsafeRawBufferPointer) {
        var reader = PackedReader(bytes)
        varyNames = reader.counted()
        varyFields = reader.counted()
        fields = reader.counted()
        responseTime = reader.signed()
        let about = reader.byte()
        isElsewhere = about & 1 != 0
        isMapped = about & 2 != 0
        isExpected = about & 4 != 0
        hasVariantKey = about & 8 != 0
        etag = ValueRange(start: Int(clamping: reader.unsigned()), count: Int(clamping: reader.unsigned()))
        lastModified = ValueRange(start: Int(clamping: reader.unsigned()), count: Int(clamping: reader.unsigned()))
        date = ValueRange(start: Int(clamping: reader.unsigned()), count: Int(clamping: reader.unsigned()))
        rest = reader
    }

    /// The result of ``Caching/variantKey(_:)`` for the head; empty without Vary.
    var variantKey: UnsafeRawBufferPointer {
        var reader = rest
        return hasVariantKey ? reader.counted() : UnsafeRawBufferPointer(start: nil, count: 0)
    }

    /// The number of the head, calculated from that of the fetch.
    func headNumber(_ number: UInt64) -> UInt64 {
        var reader = rest
        if hasVariantKey { _ = reader.counted() }
        return number &+ UInt64(bitPattern: reader.signed())
    }

    static func encode(_ head: StoredHead, readyHead: [UInt8], number: UInt64, bodyCount: Int64) -> [UInt8] {
        var record: [UInt8] = []
        record.appendCounted(Array(head.varyNames.joined(separator: ",").utf8))
        var lines: [UInt8] = []
        Serializer.write(head.varyFields, into: &lines)
        record.appendCounted(lines)
        lines = []
        Serializer.write(head.fields, into: &lines)
        record.appendCounted(ResidentLines.steps(to: lines, from: readyHead))
        record.append(signed: head.responseTime)
        let ranges = [KnownField.etag, .lastModified, .date].map { range(of: $0, head.fields, readyHead) }
        let variantKey = Caching.variantKey(head)
        let kept: UInt8 =
            (head.mapped == nil ? 0 : 2) | (head.expectation == nil ? 0 : 4) | (variantKey.isEmpty ? 0 : 8)
        record.append((ranges.contains { $0 == nil } ? 1 : 0) | kept)
        for range in ranges {
            record.append(unsigned: UInt64(range?.start ?? 0))
            record.append(unsigned: UInt64(range?.count ?? 0))
        }
        if !variantKey.isEmpty { record.appendCounted(variantKey) }
        record.append(signed: Int64(bitPattern: head.number &- number))
        for time in [head.requestTime, head.validatedAt] { record.append(signed: time &- head.responseTime) }
        record.append(signed: head.initialAge)
        var flags: Flags = []
        var more: [UInt8] = []
        if let length = head.bodyLength {
            flags.insert(.hasBodyLength)
            if length != bodyCount {
                flags.insert(.isOtherLength)
                more.append(signed: length)
            }
        }
        if let age = head.receivedAge {
            flags.insert(.hasAge)
            more.append(signed: age)
        }
        if let time = head.staleSince {
            flags.insert(.isStale)
            more.append(signed: time)
        }
        if let time = head.changedSince {
            flags.insert(.isChanged)
            more.append(signed: time)
        }
        if head.hadAuthorization { flags.insert(.hadAuthorization) }
        if head.requestMethod != .get {
            flags.insert(.isOtherMethod)
            more.appendCounted(Latin1.bytes(head.requestMethod.name))
        }
        if readyHead.withUnsafeBytes({ reason(of: $0) }) != head.reason {
            flags.insert(.isOtherReason)
            more.appendCounted(Array(head.reason.utf8))
        }
        if let mapped = head.mapped {
            more.appendCounted(Array(mapped.digest.utf8))
            more.append(signed: mapped.length ?? -1)
            var lines: [UInt8] = []
            Serializer.write(mapped.fields, into: &lines)
            more.appendCounted(lines)
        }
        if let expectation = head.expectation { more.appendCounted(Array(expectation.utf8)) }
        record.append(flags.rawValue)
        return record + more
    }

    /// Decodes the head.
    func head(status: Int, readyHead: UnsafeRawBufferPointer, number: UInt64, bodyCount: Int64) -> StoredHead {
        var reader = rest
        let variantKey = hasVariantKey ? Array(reader.counted()) : nil
        let headNumber = number &+ UInt64(bitPattern: reader.signed())
        let requestTime = responseTime &+ reader.signed()
        let validatedAt = responseTime &+ reader.signed()
        let initialAge = reader.signed()
        let flags = Flags(rawValue: reader.byte())
        var bodyLength = flags.contains(.hasBodyLength) ? bodyCount : nil
        if flags.contains(.isOtherLength) { bodyLength = reader.signed() }
        let receivedAge = flags.contains(.hasAge) ? reader.signed() : nil
        let staleSince = flags.contains(.isStale) ? reader.signed() : nil
        let changedSince = flags.contains(.isChanged) ? reader.signed() : nil
        let method = flags.contains(.isOtherMethod) ? Method(bytes: reader.counted()) : .get
        let reason =
            flags.contains(.isOtherReason)
            ? String(decoding: reader.counted(), as: UTF8.self) : Self.reason(of: readyHead) ?? ""
        let names = varyNames.split(separator: UInt8(ascii: ","))
        var head = StoredHead(
            status: status,
            reason: reason,
            fields: Fields(ResidentLines(fields, readyHead: readyHead)),
            requestTime: requestTime,
            responseTime: responseTime,
            validatedAt: validatedAt,
            initialAge: initialAge,
            varyFields: Fields(ResidentLines(whole: varyFields)),
            varyNames: names.map { String(decoding: $0, as: UTF8.self) },
            bodyLength: bodyLength,
            requestMethod: method,
            hadAuthorization: flags.contains(.hadAuthorization),
            receivedAge: receivedAge
        )
        head.keepVariantKey(variantKey)
        head.number = headNumber
        head.staleSince = staleSince
        head.changedSince = changedSince
        if isMapped {
            let digest = String(decoding: reader.counted(), as: UTF8.self)
            let length = reader.signed()
            let lines = Fields(ResidentLines(whole: reader.counted()))
            head.mapped = MappedOrigin(digest: digest, fields: lines, length: length < 0 ? nil : length)
        }
        if isExpected { head.expectation = String(decoding: reader.counted(), as: UTF8.self) }
        return head
    }

    /// The position of a field's first value in a prepared head; empty if the field is absent, nil
    /// if its value differs there.
    private static func range(of field: KnownField, _ fields: Fields, _ readyHead: [UInt8]) -> ValueRange? {
        var wanted: [UInt8]?
        fields.forEachLine { _, value, known in
            if known == field { wanted = wanted ?? Array(value) }
        }
        return readyHead.withUnsafeBytes { head -> ValueRange? in
            var found: ValueRange?
            let start = head.firstIndex(of: 0x0A).map { $0 + 1 } ?? head.count
            head.part(start..<head.count).forEachFieldLine { _, value, known in
                guard known == field, found == nil, let base = head.baseAddress, let first = value.baseAddress else {
                    return
                }
                found = ValueRange(start: first - base, count: value.count)
            }
            guard let wanted, !wanted.isEmpty else { return wanted == nil ? ValueRange() : nil }
            guard let found, head.part(found.start..<found.start + found.count).elementsEqual(wanted) else {
                return nil
            }
            return found
        }
    }

    /// The reason phrase in the status line; nil if there is none.
    private static func reason(of readyHead: UnsafeRawBufferPointer) -> String? {
        guard let end = readyHead.firstIndex(of: 0x0D), end >= 13 else { return nil }
        return Latin1.string(readyHead.part(13..<end))
    }
}

/// Reads, in order, the values that the extension of arrays below writes.
struct PackedReader {
    // The maker must hold the bytes while the reader is used.
    private let bytes: UnsafeRawBufferPointer
    private var offset = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var isAtEnd: Bool { offset >= bytes.count }

    mutating func byte() -> UInt8 {
        guard offset < bytes.count else { return 0 }
        defer { offset += 1 }
        return bytes[offset]
    }

    mutating func unsigned() -> UInt64 {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while true {
            let next = byte()
            value |= UInt64(next & 0x7F) << shift
            if next < 0x80 { return value }
            shift += 7
        }
    }

    mutating func signed() -> Int64 {
        let value = unsigned()
        return Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
    }

    mutating func take(_ count: Int) -> UnsafeRawBufferPointer {
        defer { offset += count }
        return bytes.part(offset..<offset + count)
    }

    mutating func counted() -> UnsafeRawBufferPointer { take(Int(clamping: unsigned())) }
}

extension [UInt8] {
    /// Appends a number with seven bits per byte, the lowest first.
    mutating func append(unsigned value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        append(UInt8(rest))
    }

    /// Appends a signed number; its sign is the last bit, so that small numbers are short.
    mutating func append(signed value: Int64) {
        append(unsigned: UInt64(bitPattern: value << 1) ^ UInt64(bitPattern: value >> 63))
    }

    mutating func appendCounted(_ bytes: [UInt8]) {
        append(unsigned: UInt64(bytes.count))
        append(contentsOf: bytes)
    }
}

// MARK: - Lines of the prepared head

/// The field lines of a resident response, read in place without allocation; valid only while the response is held, so
/// never stored.
package struct ResidentLines: FieldLines {
    /// The effect of a step on the next bytes of the prepared head, or of the steps themselves.
    private enum Kind: UInt64 {
        case copy, skip, own
    }

    // The bytes are inside the block of the response, which the reader of the lines must hold.
    private let steps: UnsafeRawBufferPointer
    private let readyHead: UnsafeRawBufferPointer
    private let isWhole: Bool

    /// Makes lines that `steps` select from a ready head.
    init(_ steps: UnsafeRawBufferPointer, readyHead: UnsafeRawBufferPointer) {
        (self.steps, self.readyHead, isWhole) = (steps, readyHead, false)
    }

    /// Makes lines of the bytes themselves.
    init(whole lines: UnsafeRawBufferPointer) {
        (steps, readyHead, isWhole) = (UnsafeRawBufferPointer(start: nil, count: 0), lines, true)
    }

    package func forEachLine(
        _ body: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ known: KnownField) -> Void
    ) {
        if isWhole { return readyHead.forEachFieldLine(body) }
        var reader = PackedReader(steps)
        var start = 0
        while !reader.isAtEnd {
            let step = reader.unsigned()
            let count = Int(step >> 2)
            switch Kind(rawValue: step & 3) {
            case .copy:
                readyHead.part(start..<start + count).forEachFieldLine(body)
                start += count
            case .own: reader.take(count).forEachFieldLine(body)
            case .skip, nil: start += count
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

    /// The lines, each with its line end.
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
