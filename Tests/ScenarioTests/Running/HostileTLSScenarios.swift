// Clients that spoil TLS, break it off, or come in crowds.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct HostileTLS {
        /// What both scripts begin with: an address, and the ClientHello of a client.
        private static let common = """
            import socket, ssl, struct, subprocess, sys, threading
            address = ("127.0.0.1", int(sys.argv[1]))
            def hello(name="localhost", protocols=("http/1.1",)):
                context = ssl._create_unverified_context()
                context.set_alpn_protocols(list(protocols))
                incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
                try: context.wrap_bio(incoming, outgoing, server_hostname=name).do_handshake()
                except ssl.SSLWantReadError: pass
                return outgoing.read()
            whole = hello()

            """

        private static let attacks = """
            import random
            context = ssl._create_unverified_context()
            other = context.wrap_socket(socket.create_connection(address, timeout=60), server_hostname="localhost")
            def askedByAnother():
                other.sendall(b"GET /api/x HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
                got = b""
                while not got.endswith(b"of /x"):
                    more = other.recv(4096)
                    assert more, "another client was cut"
                    got += more
                assert got.startswith(b"HTTP/1.1 200"), got
            def record(kind, body, version=b"\\x03\\x03"):
                return bytes([kind]) + version + len(body).to_bytes(2, "big") + body
            def records(length):
                return b"".join(record(22, whole[5:][i:i + length]) for i in range(0, len(whole) - 5, length))
            # What the daemon answers to a client that sends this, ends its side, and waits for the end.
            def outcome(*parts):
                got = b""
                with socket.create_connection(address, timeout=60) as peer:
                    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    try:
                        for part in parts: peer.sendall(part)
                        peer.shutdown(socket.SHUT_WR)
                    except OSError as error: assert not isinstance(error, TimeoutError)
                    try:
                        while more := peer.recv(65536): got += more
                    except ConnectionResetError: pass
                if got.startswith(b"HTTP/1.1"): return "HTTP " + got[9:12].decode()
                if not got: return "nothing"
                return {21: "alert %d" % got[6], 22: "handshake"}.get(got[0], "kind %d" % got[0])
            message = whole[5:]
            old = b"\\x01\\x00\\x00\\x2b\\x03\\x01" + bytes(32) + b"\\x00\\x00\\x04\\x00\\x2f\\x00\\x35\\x01\\x00"
            for name, parts in {
                "whole": [whole], "two segments": [whole[:100], whole[100:]],
                "a byte at a time": [bytes([byte]) for byte in whole], "records of 50": [records(50)],
                "records of one": [records(1)], "empty records before": [record(22, b"") * 3 + whole],
                "none": [], "one byte": [b"\\x16"], "half": [whole[:100]], "an empty record": [record(22, b"")],
                "100 empty records": [record(22, b"") * 100],
                "oversized": [record(22, bytes(20000))], "longest": [record(22, bytes(65535))],
                "a message of 16 MB": [record(22, b"\\x01\\xff\\xff\\xff" + bytes(16000))],
                "SSLv2": [b"\\x80\\x2e\\x01\\x03\\x01\\x00\\x15\\x00\\x00\\x00\\x10" + bytes(37)],
                "version 9": [record(22, message, b"\\x09\\x09")], "TLS 1.0 alone": [record(22, old, b"\\x03\\x01")],
                "heartbeat": [record(24, b"\\x01\\x40\\x00" + bytes(16))], "kind 99": [record(99, b"x")],
                "data first": [record(23, bytes(100))], "changes of cipher": [record(20, b"\\x01") * 100],
                "close_notify": [record(21, b"\\x01\\x00")], "warnings": [record(21, b"\\x01\\x5a") * 100],
                "finished first": [record(22, b"\\x14\\x00\\x00\\x0c" + bytes(12))],
                "a server's hello": [record(22, b"\\x02" + message[1:])],
                "h2 alone": [hello(protocols=["h2"])], "a foreign name": [hello("evil.example")],
                "a name with a zero": [whole.replace(b"localhost", b"local\\0ost")],
                "twice": [whole + whole], "then data": [whole + record(23, bytes(100))],
                "then rubbish": [whole + b"GET / HTTP/1.1\\r\\n\\r\\n"],
                "then empty records": [whole + record(23, b"") * 100],
                "then changes": [whole + record(20, b"\\x01") * 100],
                "plain": [b"GET /api/x HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n"],
                "zeros": [bytes(5000)],
            }.items():
                print(name + ":", outcome(*parts), flush=True)
                askedByAnother()
            seen = set()
            generator = random.Random(7)
            for index in range(int(sys.argv[2])):
                spoiled = bytearray(whole)
                # Its first three bytes say that it is TLS.
                for _ in range(generator.randint(1, 3)):
                    spoiled[generator.randrange(3, len(spoiled))] = generator.randrange(256)
                seen.add(outcome(bytes(spoiled)).split(" ")[0])
                askedByAnother()
            print("spoiled:", " ".join(sorted(seen)))
            for version in ["1_2", "1_3"]:
                client = subprocess.Popen(
                    ["openssl", "s_client", "-tls" + version, "-connect", "127.0.0.1:%d" % address[1]],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
                )
                # It asks for a renegotiation, which TLS 1.3 has not, and waits.
                client.stdin.write(b"R\\n")
                client.stdin.flush()
                if version == "1_3": client.stdin.close()
                said = client.stdout.read()
                print("renegotiation in", version + ":", "refused" if b"no renegotiation" in said else "none")
                askedByAnother()
            """

        @Test(
            "what a client spoils gets an alert or a close, and costs no other client anything",
            arguments: ["https", "any"]
        )
        func spoiled(scheme: String) throws {
            let world = try HTTPS.World()
            let port = scheme == "https" ? world.secure : world.both
            _ = try world.curl("https://127.0.0.1:\(port)/api/x")
            let descriptors = world.daemon.openFiles
            let attempts = Thoroughness.attempts(2_000)
            let script = Self.common + Self.attacks
            let run = try Shell.run("python3", ["-c", script, "\(port)", "\(attempts)"])
            try #require(run.succeeded, "\(run.report)")
            var expected = """
                whole: handshake
                two segments: handshake
                a byte at a time: handshake
                records of 50: handshake
                records of one: handshake
                empty records before: handshake
                none: alert 50
                one byte: alert 50
                half: alert 50
                an empty record: alert 50
                100 empty records: alert 10
                oversized: alert 22
                longest: alert 22
                a message of 16 MB: alert 47
                SSLv2: alert 70
                version 9: nothing
                TLS 1.0 alone: alert 70
                heartbeat: alert 10
                kind 99: alert 10
                data first: alert 10
                changes of cipher: alert 10
                close_notify: alert 10
                warnings: alert 10
                finished first: alert 10
                a server's hello: alert 10
                h2 alone: alert 120
                a foreign name: alert 112
                a name with a zero: alert 112
                twice: handshake
                then data: handshake
                then rubbish: handshake
                then empty records: handshake
                then changes: handshake
                plain: nothing
                zeros: nothing
                spoiled: alert handshake
                renegotiation in 1_2: refused
                renegotiation in 1_3: none

                """
            if scheme == "any" {
                // The first byte of these begins no TLS, and nothing is asked for with none.
                let plain = [
                    "SSLv2", "heartbeat", "kind 99", "data first", "changes of cipher", "close_notify", "warnings",
                    "zeros",
                ]
                expected = expected.split(separator: "\n", omittingEmptySubsequences: false).map { line in
                    let name = line.prefix { $0 != ":" }
                    if plain.contains(String(name)) { return "\(name): HTTP 400" }
                    return name == "none" ? "none: nothing" : name == "plain" ? "plain: HTTP 200" : String(line)
                }.joined(separator: "\n")
            }
            let (lines, wanted) = (run.output.split(separator: "\n"), expected.split(separator: "\n"))
            for (line, wanted) in zip(lines, wanted) { #expect(line == wanted) }
            #expect(lines.count == wanted.count)
            #expect(
                eventually { world.daemon.openFiles <= descriptors },
                "\(world.daemon.openFiles), not \(descriptors)"
            )
        }

        private static let crowd = """
            count = int(sys.argv[2])
            context = ssl._create_unverified_context()
            def connect():
                peer = socket.create_connection(address, timeout=60)
                # It ends by a reset, so that no port waits for late segments.
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return peer
            def shake(index):
                with context.wrap_socket(connect(), server_hostname="localhost") as peer:
                    if index % 10 == 0:
                        peer.sendall(b"GET /api/x HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
                        assert peer.recv(4096).startswith(b"HTTP/1.1 200")
                    if index % 3 == 0: peer.unwrap()
            def abort(index):
                with connect() as peer:
                    peer.sendall(whole[:len(whole) * (index % 5) // 4])
                    # A whole hello is answered, and nothing follows.
                    if index % 5 == 4: assert peer.recv(1) == b"\\x16"
                    if index % 2: peer.shutdown(socket.SHUT_WR)
            done = []
            def run(first):
                for index in range(first, count, 4):
                    shake(index)
                    abort(index)
                    done.append(index)
            threads = [threading.Thread(target=run, args=(first,)) for first in range(4)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            print(len(done))
            """

        @Test("10,000 handshakes and 10,000 that are broken off leave memory and descriptors as they were")
        func crowds() throws {
            let world = try HTTPS.World()
            let count = Thoroughness.attempts(10_000)
            func run(_ count: Int) throws {
                let run = try Shell.run("python3", ["-c", Self.common + Self.crowd, "\(world.secure)", "\(count)"])
                #expect(run.output == "\(count)\n", "\(run.report)")
            }
            // What is kept for the next connections is there afterwards.
            try run(count / 5)
            let (memory, descriptors) = (world.daemon.residentMemory, world.daemon.openFiles)
            try run(count)
            #expect(eventually { world.daemon.openFiles <= descriptors })
            // A session has 14 KiB: a few hundred bytes of each would be more.
            let grown = world.daemon.residentMemory - memory
            #expect(grown < 1_000_000 + count * 300, "\(grown) bytes")
            // The rest was reset before its end was read.
            #expect(try world.daemon.metric("drydock_tls_handshakes_total{kind=\"full\"}") > count / 2)
        }
    }
}
