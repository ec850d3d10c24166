"""Clients while a daemon is restarted: restart-load.py HOST:PORT PATH SECONDS [TLS-PORT CA].

Some make a connection for each request, some keep theirs until an answer says `Connection: close`, some post, some read a body that takes its
time, and with TLS-PORT some resume their sessions.  Ends after SECONDS, or at SIGTERM.  Prints one line of JSON: how many
answers there were, the longest wait in seconds, how many TLS sessions were resumed, and each refused connection and each answer that was cut or wrong.
"""

import http.client
import json
import random
import select
import signal
import socket
import ssl
import sys
import threading
import time

host, port = sys.argv[1].rsplit(":", 1)
port, path, seconds = int(port), sys.argv[2], float(sys.argv[3])
end = time.monotonic() + seconds
stopped = threading.Event()
lock = threading.Lock()
answers, longest, resumed, sessions, troubles = 0, 0.0, 0, 0, []


def going():
    return not stopped.is_set() and time.monotonic() < end


def trouble(kind, what):
    with lock:
        troubles.append(f"{kind}: {type(what).__name__}: {what}" if isinstance(what, BaseException) else f"{kind}: {what}")


def exchange(connection, kind, method, target, body=None):
    """One answer, checked; whether the connection is of use for another."""
    global answers, longest
    began = time.monotonic()
    connection.request(method, target, body=body)
    answer = connection.getresponse()
    content = answer.read()
    expected = body if body is not None else (target[len(path) :].encode() * (100 if "slow" in target else 10))
    if answer.status != 200 or content != expected:
        trouble(kind, f"{answer.status} with {len(content)} of {len(expected)} bytes of {target}: {content[:200]!r}")
    with lock:
        answers += 1
        longest = max(longest, time.monotonic() - began)
    return not answer.will_close


def client(kind, keeps, method, name, pause):
    number = 0
    connection = None
    while going():
        number += 1
        try:
            # As curl, Go and urllib3 do before they use a connection again.
            if connection is not None and select.select([connection.sock], [], [], 0)[0]:
                connection.close()
                connection = None
            if connection is None:
                connection = http.client.HTTPConnection(host, port, timeout=60)
                connection.connect()
            target = f"{path}/{name}-{random.randrange(50) if method == 'GET' else number}"
            body = f"{kind} {number}".encode() * 20 if method == "POST" else None
            if not exchange(connection, kind, method, target, body) or not keeps:
                connection.close()
                connection = None
        except Exception as error:
            trouble(kind, error)
            connection = None
        time.sleep(pause)


def resuming(tls_port, authority):
    """TLS 1.2 and 1.3 sessions, each resumed by the next connection."""
    global answers, resumed, sessions
    context = ssl.create_default_context(cafile=authority)
    session = None
    while going():
        try:
            with socket.create_connection((host, tls_port), timeout=60) as plain:
                with context.wrap_socket(plain, server_hostname="localhost", session=session) as secure:
                    secure.sendall(f"GET {path}/tls HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
                    content = b""
                    while more := secure.recv(65536):
                        content += more
                    if not content.startswith(b"HTTP/1.1 200") or not content.endswith(b"/tls" * 10):
                        trouble("tls", content[:200])
                    with lock:
                        answers += 1
                        sessions += session is not None
                        resumed += secure.session_reused
                    session = secure.session
        except Exception as error:
            trouble("tls", error)
        time.sleep(0.02)


signal.signal(signal.SIGTERM, lambda *_: stopped.set())
kinds = [("new", False, "GET", "hit", 0.005)] * 2 + [("kept", True, "GET", "hit", 0.002)] * 3
kinds += [("rare", True, "GET", "hit", 0.5)] + [("miss", True, "GET", f"miss-{time.time()}", 0.01)] + [("post", True, "POST", "post", 0.01)] * 2
kinds += [("slow", False, "GET", "slow", 0.01)] * 2
threads = [threading.Thread(target=client, args=one) for one in kinds]
if len(sys.argv) > 5:
    threads += [threading.Thread(target=resuming, args=(int(sys.argv[4]), sys.argv[5])) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
report = {"answers": answers, "longest": round(longest, 3), "resumed": resumed, "sessions": sessions, "troubles": len(troubles)}
report["first"] = troubles[:20]
print(json.dumps(report))
