// An origin over TLS whose answers last to the end of the connection, and which says that end by
// close_notify or just lets go.

import Foundation

/// A python3 origin. `/said` ends by close_notify, `/cut` without; `/length` and `/chunked` end without and
/// were whole before. What stands behind a second slash is the length of the body, 5 where there is none; all
/// may be kept for ten minutes.
package final class EndingOverTLS: Sendable {
    package let port: Int
    private let child: ChildProcess
    private let log: String
    package var url: String { "https://127.0.0.1:\(port)" }

    private static let script = """
        import socket, ssl, sys, threading
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1], sys.argv[2])
        if sys.argv[4] == "1.2": context.maximum_version = ssl.TLSVersion.TLSv1_2
        listener = socket.create_server(("127.0.0.1", int(sys.argv[3])), backlog=128)
        state = {"ending": "said"}
        def serve(plain):
            try:
                peer = context.wrap_socket(plain, server_side=True)
                data = b""
                while not data.endswith(b"\\r\\n\\r\\n"):
                    more = peer.recv(65536)
                    if not more: return
                    data += more
                parts = data.split(b" ")[1].decode().split("/")
                print("/".join(parts), flush=True)
                kind = parts[1]
                if kind in ("then-said", "then-cut"):
                    # What /changing does from now on.
                    state["ending"] = kind[5:]
                ending = state["ending"] if kind == "changing" else kind
                body = b"x" * (int(parts[2]) if len(parts) > 2 else 5)
                head = b"HTTP/1.1 200 OK\\r\\nCache-Control: max-age=600\\r\\n"
                if kind == "length": head += b"Content-Length: %d\\r\\n" % len(body)
                if kind == "chunked":
                    head += b"Transfer-Encoding: chunked\\r\\n"
                    body = b"%x\\r\\n%s\\r\\n0\\r\\n\\r\\n" % (len(body), body)
                # The end comes with the last bytes, as it does from servers in a hurry.
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
                peer.sendall(head + b"Connection: close\\r\\n\\r\\n" + body)
                if ending == "said":
                    peer.setblocking(False)
                    try: peer.unwrap()
                    except (ssl.SSLWantReadError, OSError): pass
                else:
                    peer.shutdown(socket.SHUT_RDWR)
                    peer.close()
            except OSError: pass
        while True:
            plain, _ = listener.accept()
            threading.Thread(target=serve, args=(plain,), daemon=True).start()
        """

    /// - Parameter version: of TLS, at most.
    package init(_ folder: TemporaryFolder, _ files: TLSFiles, version: String = "1.3") throws {
        port = try freePort()
        let script = try folder.write("ending.py", Self.script)
        log = folder.file("ending.out")
        child = try ChildProcess(
            "python3",
            [script, files.certificate, files.key, "\(port)", version],
            environment: Shell.cleanEnvironment(),
            output: log,
            errors: folder.file("ending.log")
        )
        try child.waitUntilListening(on: port, "python3", errors: folder.file("ending.log"))
    }

    /// How often it was asked for this target.
    package func requests(_ target: String) -> Int { readText(log).split(separator: "\n").count { $0 == target } }
}
