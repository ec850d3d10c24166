"""An https origin under made-up names: it answers from a table, and counts what it is asked."""

import collections
import http.server
import os
import ssl
import subprocess
import threading

# The names that its certificate has.  Clients ask for them through the proxy; nobody looks them up.
SITE = "www.example.org"


def certificate(folder):
    """Makes an authority of its own and a certificate for the origin; gives the three files."""
    authority, chain, key = (os.path.join(folder, name) for name in ("origin-ca.pem", "origin.pem", "origin.key"))

    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=folder)

    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *curve, "-keyout", "ca.key", "-out", authority, "-subj", "/CN=origin authority", "-days", "30")
    openssl("req", *curve, "-keyout", key, "-out", "origin.csr", "-subj", "/CN=origin")
    with open(os.path.join(folder, "names"), "w", encoding="ascii") as file:
        file.write(f"subjectAltName=DNS:{SITE},DNS:localhost\nbasicConstraints=CA:FALSE\n")
    words = "x509 -req -in origin.csr -CAkey ca.key -CAcreateserial -days 20 -extfile names -CA".split()
    openssl(*words, authority, "-out", chain)
    return authority, chain, key


class Origin:
    """Serves `resources`, which may grow while it runs: a path leads to a media type and bytes."""

    def __init__(self, folder):
        self.resources = {}
        self.asked = collections.Counter()
        self.authority, chain, key = certificate(folder)
        lock = threading.Lock()
        origin = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self):  # noqa: N802
                path = self.path.partition("?")[0].replace("/./", "/")
                with lock:
                    origin.asked[path] += 1
                kind, body = origin.resources.get(path, ("text/plain", None))
                self.send_response(200 if body is not None else 404)
                self.send_header("Content-Type", kind)
                self.send_header("Cache-Control", "max-age=3600")
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body or b"")

            do_HEAD = do_GET  # noqa: N815

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def finish_request(self, request, client_address):
                # The handshake is the thread's: a client that is slow holds nobody up.
                request.settimeout(60)
                super().finish_request(context.wrap_socket(request, server_side=True), client_address)

            def handle_error(self, *_):
                pass

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain, key)
        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def add(self, path, body, kind="text/plain"):
        """Adds a resource; gives its URL."""
        self.resources[path] = (kind, body if isinstance(body, bytes) else body.encode())
        return f"https://{SITE}{path}"
