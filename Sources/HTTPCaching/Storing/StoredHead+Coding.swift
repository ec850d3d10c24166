// Stored heads as bytes: little-endian, versioned, every length checked, so that damaged bytes are
// an error and nothing worse.

import HTTPWire

/// Why bytes are not a stored head. The entry they belong to is to be dropped.
package enum StoredHeadError: Error, Sendable, Equatable {
    /// The bytes end before what they announce; `offset` is where more was needed.
    case truncated(offset: Int)
    /// Written by another version of the format.
    case unknownVersion(UInt8)
    /// `part` holds a value that no stored head has; `offset` is just behind it.
    case invalid(part: StoredHeadPart, offset: Int)
}

/// The parts of an encoded stored head, as errors name them.
package enum StoredHeadPart: String, Sendable {
    case magic, status, times, flags, method, reason, fields, varyFields = "vary-fields", varyNames = "vary-names"
    case mapped
    case end
}

extension StoredHead {
    /// The version that `encode` writes and `init(decoding:)` reads.
    package static let formatVersion: UInt8 = 3
    private static let magic: [UInt8] = [0x44, 0x44, 0x48]  // DDH

    /// Appends the encoded head to `bytes`.
    package func encode(into bytes: inout [UInt8]) {
        bytes.append(contentsOf: Self.magic)
        bytes.append(Self.formatVersion)
        bytes.appendInteger(UInt32(truncatingIfNeeded: status))
        for time in [requestTime, responseTime, validatedAt, initialAge, bodyLength ?? -1, receivedAge ?? -1] {
            bytes.appendInteger(UInt64(bitPattern: time))
        }
        bytes.appendInteger(number)
        let kept: UInt8 = (mapped == nil ? 0 : 4) | (expectation == nil ? 0 : 8)
        bytes.append((hadAuthorization ? 1 : 0) | (changedSince == nil ? 0 : 2) | kept)
        bytes.appendCounted(Latin1.bytes(requestMethod.name))
        bytes.appendCounted(Array(reason.utf8))
        bytes.appendFields(fields)
        bytes.appendFields(varyFields)
        bytes.appendInteger(UInt32(truncatingIfNeeded: varyNames.count))
        for name in varyNames { bytes.appendCounted(Array(name.utf8)) }
        if let changedSince { bytes.appendInteger(UInt64(bitPattern: changedSince)) }
        if let mapped {
            bytes.appendCounted(Array(mapped.digest.utf8))
            bytes.appendInteger(UInt64(bitPattern: mapped.length ?? -1))
            bytes.appendFields(mapped.fields)
        }
        if let expectation { bytes.appendCounted(Array(expectation.utf8)) }
    }

    /// Reads what `encode` wrote; `bytes` must be exactly that, and are only used during the call.
    package init(decoding bytes: UnsafeRawBufferPointer) throws(StoredHeadError) {
        var reader = Reader(bytes)
        guard Array(try reader.take(3)) == Self.magic else { throw reader.invalid(.magic) }
        let version = try reader.byte()
        guard version == Self.formatVersion else { throw .unknownVersion(version) }
        let status = try Int(reader.integer(UInt32.self))
        guard (200...999).contains(status) else { throw reader.invalid(.status) }
        let requestTime = try reader.time()
        let responseTime = try reader.time()
        let validatedAt = try reader.time()
        let initialAge = try reader.int64()
        guard (0...DeltaSeconds.limit).contains(initialAge) else { throw reader.invalid(.times) }
        let bodyLength = try reader.int64()
        guard bodyLength >= -1 else { throw reader.invalid(.times) }
        let receivedAge = try reader.int64()
        guard (-1...DeltaSeconds.limit).contains(receivedAge) else { throw reader.invalid(.times) }
        let number = try reader.integer(UInt64.self)
        let flags = try reader.byte()
        guard flags <= 15 else { throw reader.invalid(.flags) }
        let method = try reader.counted()
        guard ASCII.isToken(method) else { throw reader.invalid(.method) }
        let reason = String(decoding: try reader.counted(), as: UTF8.self)
        guard reason.unicodeScalars.allSatisfy({ ($0.value >= 0x20 && $0.value != 0x7F) || $0.value == 0x09 }) else {
            throw reader.invalid(.reason)
        }
        let fields = try reader.fields(.fields)
        let varyFields = try reader.fields(.varyFields)
        var varyNames: [String] = []
        for _ in 0..<(try reader.integer(UInt32.self)) {
            let name = try reader.counted()
            guard ASCII.isToken(name) else { throw reader.invalid(.varyNames) }
            varyNames.append(ASCII.lowercased(name))
        }
        let changedSince = flags & 2 == 0 ? nil : try reader.time()
        let mapped = flags & 4 == 0 ? nil : try reader.mapped()
        let expectation = flags & 8 == 0 ? nil : String(decoding: try reader.counted(), as: UTF8.self)
        guard reader.atEnd else { throw reader.invalid(.end) }
        self.init(
            status: status,
            reason: reason,
            fields: fields,
            requestTime: requestTime,
            responseTime: responseTime,
            validatedAt: validatedAt,
            initialAge: initialAge,
            varyFields: varyFields,
            varyNames: varyNames,
            bodyLength: bodyLength == -1 ? nil : bodyLength,
            requestMethod: Method(bytes: method),
            hadAuthorization: flags & 1 == 1,
            receivedAge: receivedAge == -1 ? nil : receivedAge
        )
        self.number = number
        self.changedSince = changedSince
        self.mapped = mapped
        self.expectation = expectation
        keepVariantKey()
    }
}

/// Reads the bytes in order; every step is checked against what is left.
private struct Reader {
    // The caller of init(decoding:) keeps the bytes alive during the call, and a Reader does not outlive it.
    private let bytes: UnsafeRawBufferPointer
    private var offset = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var atEnd: Bool { offset == bytes.count }

    func invalid(_ part: StoredHeadPart) -> StoredHeadError { .invalid(part: part, offset: offset) }

    mutating func take(_ count: Int) throws(StoredHeadError) -> UnsafeRawBufferPointer {
        guard count >= 0, count <= bytes.count - offset else { throw .truncated(offset: offset) }
        defer { offset += count }
        return UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + count)])
    }

    mutating func byte() throws(StoredHeadError) -> UInt8 { try integer(UInt8.self) }

    mutating func integer<Value: FixedWidthInteger>(_ type: Value.Type) throws(StoredHeadError) -> Value {
        Value(littleEndian: try take(MemoryLayout<Value>.size).loadUnaligned(as: Value.self))
    }

    mutating func int64() throws(StoredHeadError) -> Int64 { Int64(bitPattern: try integer(UInt64.self)) }

    mutating func time() throws(StoredHeadError) -> Int64 {
        let time = try int64()
        // Far outside of every calendar, and far inside of what arithmetic on it can take.
        guard time.magnitude < 1 << 40 else { throw invalid(.times) }
        return time
    }

    mutating func counted() throws(StoredHeadError) -> UnsafeRawBufferPointer {
        try take(Int(try integer(UInt32.self)))
    }

    mutating func mapped() throws(StoredHeadError) -> MappedOrigin {
        let digest = String(decoding: try counted(), as: UTF8.self)
        let length = try int64()
        guard length >= -1 else { throw invalid(.mapped) }
        return MappedOrigin(digest: digest, fields: try fields(.mapped), length: length == -1 ? nil : length)
    }

    mutating func fields(_ part: StoredHeadPart) throws(StoredHeadError) -> Fields {
        var fields = Fields()
        for _ in 0..<(try integer(UInt32.self)) {
            let name = try counted()
            let value = try counted()
            // A control in a value could end its line on the wire.
            guard value.allSatisfy({ ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 }),
                fields.append(nameBytes: name, valueBytes: value)
            else { throw invalid(part) }
        }
        return fields
    }
}

extension [UInt8] {
    fileprivate mutating func appendInteger<Value: FixedWidthInteger>(_ value: Value) {
        Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
    }

    fileprivate mutating func appendCounted(_ bytes: some Collection<UInt8>) {
        appendInteger(UInt32(truncatingIfNeeded: bytes.count))
        append(contentsOf: bytes)
    }

    fileprivate mutating func appendFields(_ fields: Fields) {
        appendInteger(UInt32(truncatingIfNeeded: fields.count))
        var encoded: [UInt8] = []
        fields.forEachLine { name, value, _ in
            encoded.appendCounted(name)
            encoded.appendCounted(value)
        }
        append(contentsOf: encoded)
    }
}
