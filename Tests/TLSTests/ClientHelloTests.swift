// The first message of a client, as OpenSSL writes it and as nobody should.

import Testing

@testable import TLS

@Suite struct ClientHelloTests {
    static func hello(_ host: HostName = .name("api.example.com"), _ protocols: [String] = ["h2", "http/1.1"]) throws
        -> [UInt8]
    {
        let context = try TLSContext(asking: protocols, trust: .anybody)
        let client = try TLSSession(asking: context, for: host, output: TLSOutput())
        let wire = MemoryWire()
        client.wire = wire
        #expect(client.handshake() == .wantsInput)
        return client.output.takeAll()
    }

    @Test func `a real one says its host and its protocols, at each cut that it is incomplete`() throws {
        let bytes = try Self.hello()
        #expect(
            ClientHello.read(bytes)
                == .hello(ClientHello(serverName: .name("api.example.com"), protocols: ["h2", "http/1.1"]))
        )
        for count in 0..<bytes.count { #expect(ClientHello.read(bytes.prefix(count)) == .incomplete) }
        // What follows is another message.
        #expect(ClientHello.read(bytes + [1, 2, 3]) == ClientHello.read(bytes))
        #expect(ClientHello.read(try Self.hello(.address([127, 0, 0, 1]), [])) == .hello(ClientHello()))
    }

    @Test func `one that comes in pieces is read as it comes`() throws {
        let bytes = try Self.hello()
        for length in [1, 2, 3, 7, 100] {
            var reader = ClientHelloReader()
            var rest = bytes[...]
            while rest.count > length {
                #expect(reader.take(rest.prefix(length)) == .incomplete)
                #expect(reader.take([]) == .incomplete)
                rest = rest.dropFirst(length)
            }
            let reading = reader.take(rest)
            #expect(reading == ClientHello.read(bytes))
            // What follows changes nothing.
            #expect(reader.take([0x80, 0]) == reading)
        }
        var reader = ClientHelloReader()
        #expect(reader.take([22]) == .incomplete)
        #expect(reader.take([71]) == .notTLS)
    }

    @Test func `one in many records is one message`() throws {
        let whole = try Self.hello()
        let message = Array(whole.dropFirst(5))
        for length in [1, 2, 3, 4, 5, 100, 200] {
            var split: [UInt8] = []
            var rest = message[...]
            while !rest.isEmpty {
                let part = rest.prefix(length)
                split += [22, 3, 1, 0, UInt8(part.count)] + part
                rest = rest.dropFirst(length)
            }
            #expect(ClientHello.read(split) == ClientHello.read(whole), "\(length) bytes a record")
            for count in 0..<split.count { #expect(ClientHello.read(split.prefix(count)) == .incomplete) }
        }
    }

    @Test(arguments: [
        ("GET / HTTP/1.1\r\n", ClientHello.Reading.notTLS), ("SSH-2.0-x\r\n", .notTLS), ("\u{16}G", .notTLS),
        ("\u{80}\u{2e}\u{01}\u{03}\u{01}", .notTLS), ("\u{0}", .notTLS), ("", .incomplete), ("\u{16}", .incomplete),
        // No bytes in a record, and a message of a server.
        ("\u{16}\u{03}\u{01}\u{00}\u{00}", .malformed),
        ("\u{16}\u{03}\u{01}\u{00}\u{04}\u{02}\u{00}\u{00}\u{00}", .notTLS),
    ])
    func `what is no ClientHello is told from what is not whole`(text: String, reading: ClientHello.Reading) {
        #expect(ClientHello.read(text.unicodeScalars.map { UInt8($0.value) }) == reading)
    }

    /// Changes of one byte and lengths that lie: nothing traps, and what is read is what OpenSSL would find.
    @Test func `spoiled ones are read, refused or incomplete`() throws {
        let bytes = try Self.hello()
        var readings: Set<String> = []
        for index in bytes.indices {
            for value: UInt8 in [0, 1, 0x7F, 0x80, 0xFF, bytes[index] &+ 1] {
                var spoiled = bytes
                spoiled[index] = value
                switch ClientHello.read(spoiled) {
                case .hello: readings.insert("hello")
                case .incomplete: readings.insert("incomplete")
                case .malformed: readings.insert("malformed")
                case .notTLS: readings.insert("notTLS")
                }
            }
        }
        #expect(readings == ["hello", "incomplete", "malformed", "notTLS"])
    }

    @Test func `a message that is longer than any is malformed before it is whole`() {
        #expect(ClientHello.read([22, 3, 1, 0x40, 0, 1, 0x01, 0, 1]) == .malformed)
        #expect(ClientHello.read([22, 3, 1, 0x40, 0, 1, 0x00, 0xFF, 0xFF]) == .incomplete)
        #expect(ClientHello.read([22, 3, 1, 0x40, 1, 1, 0, 0, 1]) == .malformed)
    }

    @Test(
        arguments: [
            ("api.example.com", HostName.name("api.example.com")), ("API.Example.COM.", .name("api.example.com")),
            ("localhost", .name("localhost")),
            ("a_b.example", .name("a_b.example")), ("xn--bcher-kva.example", .name("xn--bcher-kva.example")),
            ("127.0.0.1", .address([127, 0, 0, 1])),
            ("[::1]", .address([UInt8](repeating: 0, count: 15) + [1])),
            ("::1", .address([UInt8](repeating: 0, count: 15) + [1])), ("1.2.3", nil), ("1.2.3.4.5", nil),
            ("0x7f.1", nil), ("", nil), (".", nil), ("a..b", nil), ("-a.example", nil), ("a-.example", nil),
            ("a b", nil), ("a,DNS:b", nil),
            ("*.example.com", nil), ("a\0b", nil), ("bücher.example", nil), ("1.2.3.4\0", nil),
        ] as [(String, HostName?)]
    )
    func `a host is a name, an address, or nothing`(text: String, host: HostName?) {
        #expect(HostName(text) == host)
    }

    @Test func `lengths of names and labels are those of the DNS`() {
        let label = String(repeating: "a", count: 63)
        #expect(HostName(label) != nil)
        #expect(HostName(label + "a") == nil)
        #expect(HostName([label, label, label, String(repeating: "b", count: 61)].joined(separator: ".")) != nil)
        #expect(HostName([label, label, label, String(repeating: "b", count: 62)].joined(separator: ".")) == nil)
    }
}
