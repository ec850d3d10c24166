// The first message of a TLS client (RFC 8446, section 4.1.2), read before it is decided who answers it.

/// What a ClientHello says that decides who answers it.
package struct ClientHello: Sendable, Hashable {
    /// The host that the client asks for; nil if it says none, or none that can be a host's.
    package var serverName: HostName?
    /// The application protocols that it offers, in its order; empty if it names none.
    package var protocols: [String]

    package init(serverName: HostName? = nil, protocols: [String] = []) {
        (self.serverName, self.protocols) = (serverName, protocols)
    }

    /// How far the first bytes of a client can be read.
    package enum Reading: Sendable, Hashable {
        /// The message is not whole yet.
        case incomplete
        /// These bytes begin no TLS session.
        case notTLS
        /// They begin a session whose first message cannot be read.
        case malformed
        case hello(ClientHello)
    }

    /// A message that is longer is malformed: post-quantum key shares and session tickets take some kilobytes.
    package static let maximumLength = 64 << 10

    /// Reads the first bytes of a client. The message may be in several records.
    package static func read(_ bytes: some Collection<UInt8>) -> Reading {
        var reader = ClientHelloReader()
        return reader.take(bytes)
    }

    /// Reads the body of the message; nil if its lengths do not agree.
    fileprivate init?(_ body: some Collection<UInt8>) {
        self.init()
        var input = Cursor(Array(body))
        // Version and random.
        guard input.take(34) != nil, let session = input.number(of: 1), input.take(session) != nil,
            let ciphers = input.number(of: 2), ciphers >= 2, input.take(ciphers) != nil,
            let compressions = input.number(of: 1), compressions >= 1, input.take(compressions) != nil
        else { return nil }
        if input.isAtEnd { return }
        guard let length = input.number(of: 2), length == input.left else { return nil }
        var seen: Set<Int> = []
        while !input.isAtEnd {
            guard let kind = input.number(of: 2), let count = input.number(of: 2), let value = input.take(count),
                seen.insert(kind).inserted
            else { return nil }
            switch kind {
            case 0: serverName = ClientHello.name(in: value)
            case 16:
                guard let offered = ClientHello.protocols(in: value) else { return nil }
                protocols = offered
            default: break
            }
        }
    }

    /// The host of the extension server_name (RFC 6066, section 3); nil if there is none that can be a host's.
    static func name(in value: [UInt8]) -> HostName? {
        var input = Cursor(value)
        guard let length = input.number(of: 2), length == input.left else { return nil }
        guard input.byte() == 0, let count = input.number(of: 2), let name = input.take(count) else { return nil }
        guard name.allSatisfy({ $0 < 0x80 && $0 > 0x20 }),
            case .name(let host)? = HostName(String(decoding: name, as: UTF8.self))
        else { return nil }
        return .name(host)
    }

    /// The protocols of the extension application_layer_protocol_negotiation (RFC 7301, section 3.1).
    private static func protocols(in value: [UInt8]) -> [String]? {
        var (input, found) = (Cursor(value), [String]())
        guard let length = input.number(of: 2), length == input.left, length > 0 else { return nil }
        while !input.isAtEnd {
            guard let count = input.number(of: 1), count > 0, let name = input.take(count) else { return nil }
            found.append(String(decoding: name, as: UTF8.self))
        }
        return found
    }
}

/// Reads the first bytes of a client as they come, in pieces of any length: each byte is looked at once.
package struct ClientHelloReader: Sendable {
    /// The header of the record under way, as far as it has come.
    private var header: [UInt8] = []
    /// How many bytes of the record under way are to come.
    private var left = 0
    private var message: [UInt8] = []
    private var reading = ClientHello.Reading.incomplete

    package init() {}

    /// Takes the bytes that follow those before.
    /// - Returns: how far all of them can be read; it stays the same from the first answer on that is not `.incomplete`.
    package mutating func take(_ bytes: some Collection<UInt8>) -> ClientHello.Reading {
        var rest = bytes[...]
        while reading == .incomplete, let first = rest.first {
            if left == 0 {
                rest.removeFirst()
                reading = begin(first)
            } else {
                let part = rest.prefix(left)
                rest = rest.dropFirst(part.count)
                left -= part.count
                message += part
                reading = judged
            }
        }
        return reading
    }

    /// Takes one byte of a record's header (RFC 8446, section 5.1).
    private mutating func begin(_ byte: UInt8) -> ClientHello.Reading {
        header.append(byte)
        switch header.count {
        case 1 where byte != 22, 2 where byte != 3: return message.isEmpty ? .notTLS : .malformed
        case 5:
            left = Int(header[3]) << 8 | Int(header[4])
            header = []
            return left > 0 && left <= 16_384 ? .incomplete : .malformed
        default: return .incomplete
        }
    }

    /// What the message is as far as it has come.
    private var judged: ClientHello.Reading {
        guard message.first == 1 else { return .notTLS }
        guard message.count >= 4 else { return .incomplete }
        let length = Int(message[1]) << 16 | Int(message[2]) << 8 | Int(message[3])
        guard length <= ClientHello.maximumLength else { return .malformed }
        guard message.count >= 4 + length else { return .incomplete }
        return ClientHello(message[4..<4 + length]).map(ClientHello.Reading.hello) ?? .malformed
    }
}

/// Reads numbers and runs of bytes from the front.
private struct Cursor {
    private let bytes: [UInt8]
    private var index = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var left: Int { bytes.count - index }
    var isAtEnd: Bool { left == 0 }

    mutating func byte() -> UInt8? {
        guard left > 0 else { return nil }
        defer { index += 1 }
        return bytes[index]
    }

    /// A number of one to three bytes, the most significant first.
    mutating func number(of count: Int) -> Int? { take(count)?.reduce(0) { $0 << 8 | Int($1) } }

    /// Exactly so many bytes.
    mutating func take(_ count: Int) -> [UInt8]? { left >= count ? upTo(count) : nil }

    /// So many bytes, or all that are left.
    mutating func upTo(_ count: Int) -> [UInt8] {
        defer { index += min(count, left) }
        return Array(bytes[index..<(index + min(count, left))])
    }
}
