// A rule as the file of rules has it: little-endian, with its length and a checksum.

/// One rule.
struct RuleRecord: Sendable, Equatable {
    enum What: Sendable, Equatable {
        case name(InvalidationRule)
        case pattern(PurgeRule)
        /// A mark in place of rules that were dropped.
        case floor
    }

    var what: What
    var mark: RuleSet.Mark
    var isSoft: Bool

    init(_ what: What, _ mark: RuleSet.Mark, isSoft: Bool = false) {
        self.what = what
        self.mark = mark
        self.isSoft = isSoft
    }

    /// The largest record, in bytes; no rule makes longer names.
    static let longest = 128 * 1024
    private static let fixedSize = 18

    // Kinds of records; a pattern's is that of its target.
    private enum Kind {
        static let name: UInt8 = 1
        static let floor: UInt8 = 2
        static let url: UInt8 = 3
        static let prefix: UInt8 = 4
        static let glob: UInt8 = 5
        static let tag: UInt8 = 6
        static let olderThan: UInt8 = 7
        static let all: UInt8 = 8
    }

    /// Length, CRC32C of what follows, kind, flags, number, time; then the name, or a pattern's service and text.
    func encode(into bytes: inout [UInt8]) {
        var payload: [UInt8] = []
        let (kind, service, text) = parts
        payload.append(kind)
        payload.append((isSoft ? 1 : 0) | (service == nil ? 0 : 2))
        payload.add(mark.number)
        payload.add(UInt64(bitPattern: mark.time))
        if let service {
            payload.add(UInt32(truncatingIfNeeded: service.count))
            payload += service
        }
        payload += text
        bytes.add(UInt32(truncatingIfNeeded: payload.count))
        bytes.add(payload.withUnsafeBytes(CRC32C.of))
        bytes += payload
    }

    private var parts: (kind: UInt8, service: [UInt8]?, text: [UInt8]) {
        switch what {
        case .name(let name): return (Kind.name, nil, name.bytes)
        case .floor: return (Kind.floor, nil, [])
        case .pattern(let rule):
            let service = rule.service.map { Array($0.utf8) }
            switch rule.target {
            case .url(let url): return (Kind.url, service, Array(url.utf8))
            case .prefix(let prefix): return (Kind.prefix, service, Array(prefix.utf8))
            case .glob(let pattern): return (Kind.glob, service, Array(pattern.utf8))
            case .tag(let tag): return (Kind.tag, service, Array(tag.utf8))
            case .olderThan(let time):
                var bytes: [UInt8] = []
                bytes.add(UInt64(bitPattern: time))
                return (Kind.olderThan, service, bytes)
            case .all: return (Kind.all, service, [])
            }
        }
    }

    /// What every file begins with, so that an empty one is known to have lost something: a rule that concerns nothing.
    static let beginning = RuleRecord(.floor, RuleSet.Mark(number: 0, time: 0))

    /// The records that can be read, without the ``beginning``.
    /// - Returns: and whether that is all that the file has.
    static func decode(_ bytes: [UInt8]) -> (records: [RuleRecord], isWhole: Bool) {
        bytes.withUnsafeBytes { bytes in
            var records: [RuleRecord] = []
            var isWhole = true
            var position = 0
            while position < bytes.count {
                if let (record, length) = record(at: position, bytes) {
                    if record != beginning { records.append(record) }
                    position += length
                } else {
                    // Behind what is damaged, or torn by an end of the machine, further ones may be whole.
                    isWhole = false
                    position += 1
                }
            }
            return (records, isWhole)
        }
    }

    /// The record that begins at a place, and its length; nil where none does.
    private static func record(at position: Int, _ bytes: UnsafeRawBufferPointer) -> (RuleRecord, length: Int)? {
        guard bytes.count - position >= 8 else { return nil }
        let length = Int(bytes.number(at: position, UInt32.self))
        guard length >= fixedSize, length <= longest, length <= bytes.count - position - 8 else { return nil }
        let payload = UnsafeRawBufferPointer(rebasing: bytes[(position + 8)..<(position + 8 + length)])
        guard bytes.number(at: position + 4, UInt32.self) == CRC32C.of(payload), let record = RuleRecord(payload) else {
            return nil
        }
        return (record, 8 + length)
    }

    /// Decodes bytes that the caller has checked: the checksum is right, and they are at least
    /// as long as the fixed part.
    private init?(_ bytes: UnsafeRawBufferPointer) {
        let flags = bytes[1]
        mark = RuleSet.Mark(
            number: bytes.number(at: 2, UInt64.self),
            time: Int64(bitPattern: bytes.number(at: 10, UInt64.self))
        )
        isSoft = flags & 1 != 0
        var rest = Array(bytes[Self.fixedSize...])
        var service: String?
        if flags & 2 != 0 {
            guard rest.count >= 4 else { return nil }
            let length = Int(rest.withUnsafeBytes { $0.number(at: 0, UInt32.self) })
            guard length <= rest.count - 4 else { return nil }
            service = String(decoding: rest[4..<(4 + length)], as: UTF8.self)
            rest.removeFirst(4 + length)
        }
        let text = String(decoding: rest, as: UTF8.self)
        let target: PurgeRule.Target
        switch bytes[0] {
        case Kind.name:
            what = .name(InvalidationRule(bytes: rest))
            return
        case Kind.floor:
            what = .floor
            return
        case Kind.url: target = .url(text)
        case Kind.prefix: target = .prefix(text)
        case Kind.glob: target = .glob(text)
        case Kind.tag: target = .tag(text)
        case Kind.olderThan:
            guard rest.count == 8 else { return nil }
            target = .olderThan(Int64(bitPattern: rest.withUnsafeBytes { $0.number(at: 0, UInt64.self) }))
        case Kind.all: target = .all
        default: return nil
        }
        what = .pattern(PurgeRule(target, service: service, isSoft: isSoft))
    }
}
