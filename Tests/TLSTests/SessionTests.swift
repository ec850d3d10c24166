// Sessions of both sides, over every split of what is on the wire.

import CLibssl
import Glibc
import Synchronization
import Testing

@testable import TLS

@Suite struct SessionTests {
    /// A moment at which certificates of the tests are valid for OpenSSL, which reads the system's clock.
    static func systemNow() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec)
    }

    struct World {
        let authority: LocalAuthority
        let serving: TLSContext
        let asking: TLSContext
    }

    static func world(
        serving protocols: [String] = ["http/1.1"],
        asking offered: [String] = ["http/1.1"],
        tickets: TicketKeys? = nil,
        clients: TLSContext.ClientDemand? = nil,
        identity: TLSIdentity? = nil,
        pins: Set<[UInt8]> = [],
        leafDays: Int64 = 7,
        leafName: String? = nil,
        trust: TLSContext.Trust? = nil
    ) throws -> World {
        let authority = try LocalAuthority(name: "Drydock of a test", now: systemNow())
        let key = try PrivateKey()
        let serving = try TLSContext(serving: protocols, tickets: tickets, clients: clients) { host in
            guard let host = leafName.flatMap({ HostName($0) }) ?? host else { return nil }
            return try? authority.leaf(for: host, key: key, now: systemNow(), days: leafDays)
        }
        let asking = try TLSContext(
            asking: offered,
            trust: trust ?? .authorities([authority.certificate]),
            pins: pins,
            identity: identity
        )
        return World(authority: authority, serving: serving, asking: asking)
    }

    @Test(arguments: [1, 2, 3, 5, 7, 16, 61, 1_460, .max])
    func `bytes arrive whole, however the wire splits them`(piece: Int) throws {
        let world = try Self.world()
        let pair = try Pair(world.serving, world.asking, piece: piece)
        let steps = pair.handshake()
        #expect(steps.client == .finished)
        #expect(steps.server == .finished)
        #expect(pair.server.serverName == .name("api.example.com"))
        #expect(pair.server.agreement.version == "TLSv1.3")
        #expect(pair.server.agreement.applicationProtocol == "http/1.1")
        #expect(pair.client.agreement.applicationProtocol == "http/1.1")
        let sent = (0..<40_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        #expect(try pair.exchange(sent, from: pair.client, to: pair.server) == sent)
        #expect(try pair.exchange(sent.reversed(), from: pair.server, to: pair.client) == sent.reversed())
        #expect(pair.client.peerCertificate?.names == ["api.example.com"])
    }

    @Test func `a close_notify is an end, and an end without one is truncation`() throws {
        let world = try Self.world()
        for isOrderly in [true, false] {
            let pair = try Pair(world.serving, world.asking)
            _ = pair.handshake()
            #expect(try pair.exchange([1, 2, 3], from: pair.client, to: pair.server) == [1, 2, 3])
            if isOrderly { pair.client.finishWriting() }
            pair.carry()
            pair.toServer.hasEnded = true
            #expect(pair.read(pair.server).end == (isOrderly ? .end : .truncated))
            // The other way stays open after a close_notify.
            if isOrderly { #expect(try pair.exchange([4, 5], from: pair.server, to: pair.client) == [4, 5]) }
        }
    }

    @Test func `an end within a record is truncation`() throws {
        let world = try Self.world()
        let pair = try Pair(world.serving, world.asking)
        _ = pair.handshake()
        #expect([UInt8](repeating: 7, count: 100).withUnsafeBytes { pair.client.write($0) } == nil)
        pair.carry()
        pair.toServer.bytes.removeLast()
        pair.toServer.hasEnded = true
        let read = pair.read(pair.server)
        #expect(read.bytes == [])
        #expect(read.end == .truncated)
    }

    @Test func `a spoiled record fails, and nothing of it is read`() throws {
        let world = try Self.world()
        let pair = try Pair(world.serving, world.asking)
        _ = pair.handshake()
        #expect([UInt8](repeating: 7, count: 100).withUnsafeBytes { pair.client.write($0) } == nil)
        pair.carry()
        pair.toServer.bytes[pair.toServer.bytes.count - 20] ^= 1
        let read = pair.read(pair.server)
        #expect(read.bytes == [])
        #expect(read.end == .failed(TLSFailure(.malformed, "OpenSSL says: decryption failed or bad record mac")))
        // The alert is for the client, which learns of it.
        pair.carry()
        #expect(
            pair.read(pair.client).end
                == .failed(TLSFailure(.alert, "it ended the session with the alert bad_record_mac"))
        )
    }

    @Test func `bytes that came before the session come first`() throws {
        let world = try Self.world()
        let (toServer, toClient) = (MemoryWire(), MemoryWire())
        let client = try TLSSession(asking: world.asking, for: .name("a.example"), output: TLSOutput())
        client.wire = toClient
        #expect(client.handshake() == .wantsInput)
        let hello = client.output.takeAll()
        let server = try TLSSession(serving: world.serving, received: Array(hello.prefix(50)), output: TLSOutput())
        server.wire = toServer
        #expect(server.hasPending)
        #expect(server.handshake() == .wantsInput)
        #expect(!server.hasPending)
        toServer.bytes = Array(hello.dropFirst(50))
        #expect(server.handshake() == .wantsInput)
        toClient.bytes = server.output.takeAll()
        #expect(client.handshake() == .finished)
        toServer.bytes = client.output.takeAll()
        #expect(server.handshake() == .finished)
    }

    @Test func `what a record holds beyond a read is pending`() throws {
        let world = try Self.world()
        let pair = try Pair(world.serving, world.asking)
        _ = pair.handshake()
        _ = pair.read(pair.client)
        #expect([UInt8](repeating: 7, count: 100).withUnsafeBytes { pair.client.write($0) } == nil)
        #expect([UInt8](repeating: 8, count: 100).withUnsafeBytes { pair.client.write($0) } == nil)
        pair.carry()
        var buffer = [UInt8](repeating: 0, count: 60)
        #expect(buffer.withUnsafeMutableBytes { pair.server.read(into: $0) } == .bytes(60))
        #expect(pair.toServer.bytes.isEmpty)
        #expect(pair.server.hasPending)
        #expect(pair.read(pair.server).bytes.count == 140)
        #expect(!pair.server.hasPending)
    }

    @Test func `certificates are refused with the reason, and the server learns of it`() throws {
        let stranger = try LocalAuthority(name: "Stranger", now: Self.systemNow())
        let cases: [(World, HostName, TLSFailure, TLSFailure.Kind)] = [
            (
                try Self.world(trust: .authorities([stranger.certificate])), .name("api.example.com"),
                TLSFailure(.untrusted, "the issuer of its certificate is unknown"), .distrusted
            ),
            (
                try Self.world(leafName: "other.example.com"), .name("api.example.com"),
                TLSFailure(.untrusted, "its certificate is for another name"), .distrusted
            ),
            (
                try Self.world(leafDays: -1), .name("api.example.com"),
                TLSFailure(.untrusted, "its certificate has expired"), .alert
            ),
            (
                try Self.world(leafName: "127.0.0.2"), .address([127, 0, 0, 1]),
                TLSFailure(.untrusted, "its certificate is for another name"), .distrusted
            ),
        ]
        for (world, host, failure, seen) in cases {
            let pair = try Pair(world.serving, world.asking, for: host)
            let steps = pair.handshake()
            #expect(steps.client == .failed(failure))
            guard case .failed(let ours) = steps.server else {
                Issue.record("the server took \(failure.message) for a handshake: \(steps.server)")
                continue
            }
            #expect(ours.kind == seen)
        }
    }

    @Test func `addresses have certificates of their own`() throws {
        let world = try Self.world(leafName: "127.0.0.1")
        let pair = try Pair(world.serving, world.asking, for: .address([127, 0, 0, 1]))
        #expect(pair.handshake().client == .finished)
        // RFC 6066, section 3: an address is no server name.
        #expect(pair.server.serverName == nil)
        #expect(pair.client.peerCertificate?.names == ["127.0.0.1"])
    }

    @Test func `a name without a certificate gets the alert for it`() throws {
        let world = try Self.world()
        let serving = try TLSContext(tickets: nil) { _ in nil }
        let pair = try Pair(serving, world.asking)
        let steps = pair.handshake()
        #expect(steps.server == .failed(TLSFailure(.name, "there is no certificate for “api.example.com”")))
        #expect(steps.client == .failed(TLSFailure(.alert, "it ended the session with the alert unrecognized_name")))
    }

    @Test func `a client that asks for other protocols alone is refused`() throws {
        let world = try Self.world(asking: ["h2"])
        let pair = try Pair(world.serving, world.asking)
        let steps = pair.handshake()
        #expect(
            steps.server
                == .failed(TLSFailure(.protocols, "it asks for none of the application protocols that are spoken here"))
        )
        #expect(
            steps.client == .failed(TLSFailure(.alert, "it ended the session with the alert no_application_protocol"))
        )
        // One that names none is served, and so is one that names ours among others.
        for offered in [[], ["h2", "http/1.1"]] {
            let other = try Self.world(asking: offered)
            let pair = try Pair(other.serving, other.asking)
            #expect(pair.handshake().server == .finished)
            #expect(pair.server.agreement.applicationProtocol == (offered.isEmpty ? nil : "http/1.1"))
        }
    }

    @Test func `a session goes on in another context with the same ticket keys, and for no other name`() throws {
        final class Clock: Sendable {
            let seconds = Mutex<Int64>(100)
        }
        let clock = Clock()
        let keys = TicketKeys(lifetime: 1_000) { clock.seconds.withLock { $0 } }
        let world = try Self.world(tickets: keys)
        let other = try TLSContext(tickets: keys) { [authority = world.authority, key = try PrivateKey()] host in
            host.flatMap { try? authority.leaf(for: $0, key: key, now: SessionTests.systemNow()) }
        }
        func ticket(from context: TLSContext, _ earlier: SessionTicket? = nil, host: String = "api.example.com") throws
            -> (SessionTicket?, Bool)
        {
            let pair = try Pair(context, world.asking, for: .name(host))
            if let earlier { pair.client.resume(earlier) }
            #expect(pair.handshake().server == .finished)
            _ = try pair.exchange([1], from: pair.server, to: pair.client)
            #expect(pair.server.agreement.isResumed == pair.client.agreement.isResumed)
            return (pair.client.ticket, pair.server.agreement.isResumed)
        }
        let (first, isResumed) = try ticket(from: world.serving)
        #expect(!isResumed)
        func bytes(_ ticket: SessionTicket?) throws -> [UInt8] {
            var (bytes, count): (UnsafePointer<UInt8>?, Int) = (nil, 0)
            SSL_SESSION_get0_ticket(try #require(ticket).handle, &bytes, &count)
            return Array(UnsafeBufferPointer(start: bytes, count: count))
        }
        // OpenSSL's clients forget a ticket of TLS 1.3 once it was used: each connection brings one for the next.
        let (second, goesOn) = try ticket(from: other, first)
        #expect(try goesOn && bytes(second) != bytes(first))
        #expect(try ticket(from: world.serving, second).1)
        #expect(try ticket(from: world.serving, first).1)
        #expect(try !ticket(from: other, first, host: "b.example.com").1)
        // Another key makes tickets by now, and the old one still reads them; later it does not.
        clock.seconds.withLock { $0 = 1_200 }
        #expect(try ticket(from: other, first).1)
        clock.seconds.withLock { $0 = 2_200 }
        #expect(try !ticket(from: other, first).1)
        // A server with other keys does not know it.
        let strange = try Self.world(tickets: TicketKeys { 0 })
        let pair = try Pair(strange.serving, strange.asking)
        if let first { pair.client.resume(first) }
        #expect(pair.handshake().server == .finished)
        #expect(!pair.server.agreement.isResumed)
    }

    @Test func `a session goes on in another process that has the keys, while they are fresh`()
        throws
    {
        let keys = TicketKeys(lifetime: 1_000) { 100 }
        let world = try Self.world(tickets: keys)
        let first = try Pair(world.serving, world.asking, for: .name("api.example.com"))
        #expect(first.handshake().server == .finished)
        _ = try first.exchange([1], from: first.server, to: first.client)
        let ticket = try #require(first.client.ticket)
        let exported = keys.exported
        #expect(exported.count == 88)
        /// Whether the session goes on where these bytes were taken over so many seconds after boot.
        func goesOn(_ bytes: [UInt8], at seconds: Int64) throws -> Bool {
            let others = TicketKeys(lifetime: 1_000) { seconds }
            others.adopt(bytes)
            let serving = try TLSContext(tickets: others) {
                [authority = world.authority, key = try PrivateKey()] host in
                host.flatMap { try? authority.leaf(for: $0, key: key, now: SessionTests.systemNow()) }
            }
            let pair = try Pair(serving, world.asking, for: .name("api.example.com"))
            pair.client.resume(ticket)
            #expect(pair.handshake().server == .finished)
            return pair.server.agreement.isResumed
        }
        #expect(try goesOn(exported, at: 150))
        #expect(try goesOn(exported, at: 2_099))
        #expect(try !goesOn(exported, at: 2_100), "it is too old")
        #expect(try !goesOn(exported, at: 99), "it is of a later time, and so of another machine or boot")
        #expect(try !goesOn([], at: 150))
        #expect(try !goesOn(Array(exported.dropLast()), at: 150))
        #expect(try !goesOn([UInt8](repeating: 7, count: 4_000), at: 150))
        #expect(
            try !goesOn(Array(exported.dropLast(8)) + [0x80, 0, 0, 0, 0, 0, 0, 0], at: 150),
            "the least time there is"
        )
        // Keys of its own stay where nothing of use comes, and what it has taken over it hands on.
        let others = TicketKeys(lifetime: 1_000) { 150 }
        others.adopt(exported + exported.dropLast())
        #expect(others.exported == exported)
        others.adopt([1, 2, 3])
        #expect(others.exported == exported)
    }

    @Test func `a ticket is for one address and one realm`() throws {
        let keys = TicketKeys { 0 }
        let world = try Self.world(tickets: keys)
        let tunnels = try TLSContext(tickets: keys, realm: [1]) {
            [authority = world.authority, key = try PrivateKey()] host in
            host.flatMap { try? authority.leaf(for: $0, key: key, now: SessionTests.systemNow()) }
        }
        let (one, two) = (HostName.address([127, 0, 0, 1]), HostName.address([127, 0, 0, 2]))
        func shake(_ context: TLSContext, _ host: HostName, _ earlier: SessionTicket? = nil) throws -> (
            ticket: SessionTicket?, isResumed: Bool
        ) {
            let pair = try Pair(context, world.asking, for: host, at: host)
            if let earlier { pair.client.resume(earlier) }
            #expect(pair.handshake().server == .finished)
            _ = try pair.exchange([1], from: pair.server, to: pair.client)
            return (pair.client.ticket, pair.server.agreement.isResumed)
        }
        // A client that connects to an address asks for no name.
        let ticket = try #require(try shake(tunnels, one).ticket)
        #expect(try shake(tunnels, one, ticket).isResumed)
        #expect(try !shake(tunnels, two, ticket).isResumed)
        #expect(try !shake(world.serving, one, ticket).isResumed)
    }

    @Test func `clients show certificates where they are asked for`() throws {
        let clients = try LocalAuthority(name: "Clients", now: Self.systemNow())
        let demand = TLSContext.ClientDemand(authorities: [clients.certificate])
        let nobody = try Self.world(clients: demand)
        let pair = try Pair(nobody.serving, nobody.asking)
        #expect(
            pair.handshake().server == .failed(TLSFailure(.untrusted, "it shows no certificate, and one is asked for"))
        )
    }

    @Test func `a pin is a key of the server, or the session fails`() throws {
        let world = try Self.world()
        let first = try Pair(world.serving, world.asking)
        #expect(first.handshake().client == .finished)
        let digest = try #require(first.client.peerCertificate?.keyDigest)
        for (pins, step) in [
            (Set([digest]), SessionStep.finished),
            (
                Set([[UInt8](repeating: 0, count: 32)]),
                .failed(TLSFailure(.untrusted, "its public key is none of the pinned ones"))
            ),
        ] {
            let asking = try TLSContext(asking: [], trust: .authorities([world.authority.certificate]), pins: pins)
            let pair = try Pair(world.serving, asking)
            #expect(pair.handshake().client == step)
        }
    }

    @Test func `what is no TLS fails at once, and says what it is`() throws {
        let world = try Self.world()
        let cases: [(String, TLSFailure.Kind)] = [
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", .malformed), ("CONNECT a:443 HTTP/1.1\r\n\r\n", .malformed),
            ("\u{16}\u{03}\u{01}\u{00}\u{00}", .abandoned), ("SSH-2.0-OpenSSH_9.2\r\n", .version),
        ]
        for (text, kind) in cases {
            let server = try TLSSession(serving: world.serving, received: Array(text.utf8), output: TLSOutput())
            let wire = MemoryWire()
            wire.hasEnded = true
            server.wire = wire
            guard case .failed(let failure) = server.handshake() else {
                Issue.record("“\(text)” is taken for TLS")
                continue
            }
            #expect(failure.kind == kind, "\(text): \(failure)")
        }
        let server = try TLSSession(serving: world.serving, output: TLSOutput())
        let wire = MemoryWire()
        wire.hasEnded = true
        server.wire = wire
        guard case .failed(let failure) = server.handshake() else {
            Issue.record("an end is taken for a handshake")
            return
        }
        #expect(failure.kind == .abandoned)
    }

    @Test func `the output grows, is consumed in pieces, and gives its memory back`() {
        let output = TLSOutput()
        let bytes = (0..<10_000).map { UInt8(truncatingIfNeeded: $0) }
        #expect(bytes.withUnsafeBytes { output.append($0) })
        output.consume(9_000)
        #expect(Array(output.bytes) == Array(bytes.suffix(1_000)))
        #expect(bytes.withUnsafeBytes { output.append($0) })
        #expect(Array(output.bytes) == Array(bytes.suffix(1_000)) + bytes)
        output.consume(20_000)
        #expect(output.isEmpty)
        output.trim()
        #expect(output.takeAll() == [])
    }
}
