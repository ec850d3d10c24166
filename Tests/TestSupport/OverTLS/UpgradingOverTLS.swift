// An origin over TLS that switches protocols: it answers 101, and does what the target asks for from then on.

import Foundation

/// A python3 origin. A request with `Upgrade` gets a 101, with `first` right behind its head where the target is `/echo`;
/// then `/echo` sends back what comes, `/said` sends `half` and says the end by close_notify, `/cut` sends it and lets go
/// without, `/reset` sends it and resets the connection. `/plain/N` answers 200 with a body of N bytes, `/until-said` and
/// `/until-cut` with one that lasts to the end of the connection, `/none` closes the connection, and `/early` is for a
/// connection on which bytes come before the request.
package final class UpgradingOverTLS: Sendable {
    package let port: Int
    private let child: ChildProcess
    private let log: String
    package var url: String { "https://127.0.0.1:\(port)" }

    private static let script = """
        import socket, ssl, struct, sys, threading
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1], sys.argv[2])
        if sys.argv[4] == "1.2": context.maximum_version = ssl.TLSVersion.TLSv1_2
        if sys.argv[5]:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(sys.argv[5])
        context.set_alpn_protocols(["h2", "http/1.1"])
        names = []
        context.sni_callback = lambda connection, name, _: names.append(name or "-")
        early = sys.argv[6] == "early"
        listener = socket.create_server(("127.0.0.1", int(sys.argv[3])), backlog=128)
        def finish(peer):
            try: peer.unwrap()
            except OSError: pass
            peer.close()
        def serve(plain):
            try:
                peer = context.wrap_socket(plain, server_side=True)
                if early: peer.sendall(b"HTTP/1.1 200 EVIL\\r\\nContent-Length: 4\\r\\n\\r\\nevil")
                data = b""
                while not data.endswith(b"\\r\\n\\r\\n"):
                    more = peer.recv(65536)
                    if not more: return
                    data += more
                head = data.decode().split("\\r\\n")
                target = head[0].split(" ")[1]
                host = [line for line in head if line.lower().startswith("host:")]
                print(target, peer.selected_alpn_protocol(), (names or ["-"])[-1], host[0][6:], flush=True)
                parts = target.split("/")
                if parts[1] == "plain":
                    body = bytes(range(256)) * (int(parts[2]) // 256)
                    peer.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)
                elif parts[1].startswith("until"):
                    peer.sendall(b"HTTP/1.1 200 OK\\r\\n\\r\\nto the end")
                    if parts[1] == "until-said": finish(peer)
                elif parts[1] != "none":
                    switch = b"HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: echo\\r\\n\\r\\n"
                    if parts[1] != "echo":
                        peer.sendall(switch + b"half")
                        # What follows has been asked for.
                        peer.recv(1)
                    if parts[1] == "echo":
                        peer.sendall(switch + b"first")
                        while True:
                            more = peer.recv(65536)
                            if not more: break
                            peer.sendall(more)
                        finish(peer)
                    elif parts[1] == "said": finish(peer)
                    elif parts[1] == "reset":
                        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            except OSError: pass
            finally: plain.close()
        while True:
            plain, _ = listener.accept()
            threading.Thread(target=serve, args=(plain,), daemon=True).start()
        """

    /// - Parameters:
    ///   - version: of TLS, at most.
    ///   - clientCertificates: clients have to show one of the files' authority.
    ///   - speaksFirst: bytes come before the request.
    package init(
        _ folder: TemporaryFolder,
        _ files: TLSFiles,
        version: String = "1.3",
        clientCertificates: Bool = false,
        speaksFirst: Bool = false
    ) throws {
        port = try freePort()
        let script = try folder.write("upgrading.py", Self.script)
        log = folder.file("upgrading-\(port).out")
        let authority = clientCertificates ? files.authority : ""
        child = try ChildProcess(
            "python3",
            [
                script, files.certificate, files.key, "\(port)", version, authority, speaksFirst ? "early" : "",
            ],
            environment: Shell.cleanEnvironment(),
            output: log,
            errors: folder.file("upgrading-\(port).log")
        )
        try child.waitUntilListening(on: port, "python3", errors: folder.file("upgrading-\(port).log"))
    }

    /// Each request: its target, the protocol that was agreed on, the name that the client asked for, its Host.
    package var requests: [String] { readText(log).split(separator: "\n").map(String.init) }
}
