"""What the fuzzer sends: well-formed messages, and what becomes of them.  The same chance makes the same bytes."""

WORDS = [
    b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b",", b";", b"=", b'"', b"/", b"//", b"..", b"%2e%2e", b"%25%32%65", b"%00", b"%", b"?", b"#",
    b"\xff", b"\x80", b"\xc3\x28", b"0", b"-1", b"+5", b"0x5", b"18446744073709551615", b"18446744073709551616", b"9223372036854775808",
    b"99999999999999999999", b"Content-Length: 5\r\n", b"Content-Length: 0\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: xchunked\r\n", b"Transfer-Encoding : chunked\r\n", b"Connection: close\r\n", b"Connection: keep-alive, Host\r\n",
    b"Host: localhost\r\n", b"Expect: 100-continue\r\n", b"Upgrade: websocket\r\n", b"Range: bytes=0-0,-1,5-2\r\n", b"If-Range: \"a\"\r\n",
    b"If-None-Match: *\r\n", b"Vary: *\r\n", b"Vary: Accept-Encoding, Accept\r\n", b"Cache-Control: no-store, max-age=\"1\"\r\n",
    b"Content-Encoding: gzip\r\n", b"Content-Range: bytes 5-2/1\r\n", b"Age: 99999999999\r\n", b"Date: Tue, 99 Foo\r\n", b" folded\r\n",
    b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n", b"0\r\n\r\n", b"5\r\nhello\r\n", b"fffffffff\r\n",
    b"GET", b"POST", b"HEAD", b"CONNECT", b"OPTIONS *", b"{", b"}", b"[", b"]", b"null", b"1e999", b"\\u0000", b"\\ud800",
]

CLIENT = [
    b"GET /api/get/1 HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\nAccept-Encoding: gzip, br;q=0.5\r\n\r\n",
    b"HEAD /api/get/2 HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: \"a\", W/\"b\"\r\n\r\n",
    b"GET /api/range/3 HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-3,5-9,-2\r\nIf-Range: \"a\"\r\n\r\n",
    b"POST /api/post/4 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Type: application/json\r\n\r\n{\"a\"}",
    b"POST /api/post/5 HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n5;ext=\"1\"\r\nhello\r\n0\r\nX-T: 1\r\n\r\n",
    b"PUT /api/put/6 HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    b"GET /mapped/json/7?q=%C3%A4&b=1 HTTP/1.1\r\nHost: localhost\r\nCookie: a=b; c=\"d\"\r\n\r\n",
    b"GET /demo/users/8?page=2 HTTP/1.1\r\nHost: localhost\r\nX-Trace: 1\r\n\r\n",
    b"POST /demo/users HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 13\r\n\r\nname=a+b&c=%41",
    b"GET http://127.0.0.1:{origin}/get/9 HTTP/1.1\r\nHost: 127.0.0.1:{origin}\r\nProxy-Connection: keep-alive\r\n\r\n",
    b"CONNECT 127.0.0.1:{origin} HTTP/1.1\r\nHost: 127.0.0.1:{origin}\r\n\r\nGET /get/10 HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /api/socket/11 HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nMax-Forwards: 0\r\n\r\n",
    b"GET /api/get/12 HTTP/1.1\r\nHost: localhost\r\n\r\nGET /api/get/13 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    b"DELETE /api/get/14 HTTP/1.0\r\nAuthorization: Bearer x\r\n\r\n",
    b"GET /api/get/15 HTTP/1.1\r\nHost: localhost\r\nCache-Control: no-cache, max-stale=5, only-if-cached\r\nPragma: no-cache\r\n\r\n",
]

ORIGIN = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\nETag: \"a\"\r\nCache-Control: max-age=60\r\n\r\nhello world",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\nCache-Control: s-maxage=5\r\n\r\n5\r\nhello\r\n6;a=\"b\"\r\n world\r\n0\r\nX-T: 1\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n",
    b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-4/11\r\nContent-Length: 5\r\nETag: \"a\"\r\n\r\nhello",
    b"HTTP/1.1 206 Partial Content\r\nContent-Type: multipart/byteranges; boundary=x\r\nContent-Length: 52\r\n\r\n--x\r\nContent-Range: bytes 0-0/11\r\n\r\nh\r\n--x--\r\n\r\n\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: /get/1?x=%0a\r\nSet-Cookie: a=b; Path=/; Secure\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Type: application/json\r\nVary: Accept-Encoding\r\nContent-Length: {gzip-length}\r\n\r\n{gzip}",
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: 36\r\n\r\n{\"a\":{\"b\":[1,2.5e3,null,\"\\u00e4\"]}}\r\n",
    b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\nCache-Control: public, stale-while-revalidate=5\r\nAge: 3\r\n\r\nuntil the end",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x81\x05hello",
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nCache-Control: stale-if-error=9, no-cache=\"Set-Cookie\"\r\nContent-Length: 4\r\n\r\nbusy",
]

ADMIN = [
    b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /v1/entries?pattern=*get*&limit=5&after=&sort=size HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"DELETE /v1/entries?tag=a%20b HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"DELETE /v1/entries?prefix=http://127.0.0.1/get&soft HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"PUT /v1/pins?url=http://localhost/api/get/1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
    b"GET /v1/explain?url=http://localhost/api/get/1&method=GET&field=Accept:%20*/*&as=text HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST /v1/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
    b"POST /v1/clock?advance=2h HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
    b"POST /v1/log?download=debug&all=info&for=1m HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
    b"GET /v1/journal?service=demo&limit=3 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST /v1/demo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 47\r\n\r\n{\"service\":\"demo\",\"enabled\":true,\"latency\":\"1s\"}",
    b"POST /v1/demo/reset HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
    b"GET /v1/demo/draw?service=demo&path=/users/1&count=5 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST /v1/verify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 60\r\n\r\n{\"service\":\"demo\",\"when\":{\"path\":\"/users/1\"},\"exactly\":2}\r\n\r\n",
    b"GET /v1/parked HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST /v1/parked/cancel?all HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
    b"POST /v1/cancel?service=api&waiters HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
    b"POST /v1/prefetch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{\"items\":[{\"url\":\"http://localhost/api/get/20\"}]}\r\n",
    b"POST /v1/size HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{\"items\":[{\"url\":\"http://localhost/api/get/21\"}]}\r\n",
    b"GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: application/openmetrics-text\r\n\r\n",
]


def mutated(chance, corpus):
    """A message of the corpus after a few changes; sometimes none, so that what follows on a connection is reached, too."""
    data = bytearray(chance.choice(corpus))
    for _ in range(chance.choice((0, 1, 1, 1, 2, 2, 3, 5, 12))):
        position = chance.randrange(len(data) + 1)
        end = min(len(data), position + chance.choice((1, 1, 2, 4, 16, 64)))
        act = chance.randrange(8)
        if act == 0 and data:
            data[position - 1] ^= 1 << chance.randrange(8)
        elif act == 1:
            del data[position:end]
        elif act == 2:
            data[position:position] = data[position:end] * chance.choice((1, 1, 2, 200))
        elif act == 3:
            data[position:end] = chance.choice(WORDS)
        elif act in (4, 5):
            data[position:position] = chance.choice(WORDS)
        elif act == 6:
            # A whole field line, where a line ends.
            lines = data.split(b"\r\n")
            lines.insert(chance.randrange(len(lines) + 1), chance.choice(WORDS).strip(b"\r\n"))
            data = bytearray(b"\r\n".join(lines))
        else:
            other = chance.choice(corpus)
            data[position:] = other[chance.randrange(len(other)) :]
    return bytes(data)


def pieces(chance, data):
    """The bytes as several writes, now and then one by one."""
    if chance.random() < 0.4:
        return [data]
    if chance.random() < 0.1:
        return [data[i : i + 1] for i in range(min(len(data), 300))] + [data[300:]]
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.randrange(1, 5)))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)])]
