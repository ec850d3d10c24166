"""An origin that answers well, and one that cuts, stalls, lies and dies, by path.

    /clock/N/SIZE      a version every few seconds; ETag; HEAD and conditions answered right
    /counter/N         the version that the last POST made; fresh for ten minutes
    /chunked/N/SIZE    as clock, chunked
    /own/N             private: says whose Cookie came
    /cut/N/SIZE        promises SIZE bytes, sends half of them and closes
    /cutchunked/N      a chunked body without its end
    /stall/N/SIZE      sends half of its bytes and then nothing
    /reset/N           resets the connection after the head
    /short/N, /long/N  Content-Length that is too small, or too large by far
    /garbage/N         no HTTP at all
    /headless/N        GET is right, HEAD is a 403, a 500, garbage, a hang, or a closed connection
    /unasked/N         304 to a request without a condition
    /flip/N            another ETag each time, over the same bytes
"""

import asyncio
import random
import socket
import struct

from world import COUNTERS, MAX_AGE, body, clock_version

HEADLESS = ("403", "500", "garbage", "hang", "close")


async def read_request(reader):
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    method, path, _ = lines[0].split(" ", 2)
    fields = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if colon:
            fields[name.strip().lower()] = value.strip()
    length = int(fields.get("content-length", 0))
    if length:
        await reader.readexactly(length)
    return method, path, fields


def head(status, fields):
    lines = [f"HTTP/1.1 {status} Whatever"] + [f"{name}: {value}" for name, value in fields]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def reset(writer):
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class Origin:
    def __init__(self, world):
        self.world = world

    async def serve(self, reader, writer):
        try:
            while True:
                method, path, fields = await read_request(reader)
                if not await self.answer(method, path, fields, writer):
                    break
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.LimitOverrunError, ValueError):
            pass
        finally:
            writer.close()

    def versioned(self, method, path, fields, version, size, lifetime, writer, chunked=False):
        etag = f'"{version}"'
        common = [("ETag", etag), ("Cache-Control", f"max-age={lifetime}"), ("Cache-Tag", path.split("/")[1])]
        if fields.get("if-none-match") == etag:
            writer.write(head(304, common))
            return True
        content = body(path, version, size)
        framing = ("Transfer-Encoding", "chunked") if chunked else ("Content-Length", len(content))
        writer.write(head(200, common + [framing]))
        if method != "HEAD":
            if chunked:
                for start in range(0, len(content), 10_000):
                    piece = content[start : start + 10_000]
                    writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                writer.write(b"0\r\n\r\n")
            else:
                writer.write(content)
        return True

    async def answer(self, method, path, fields, writer):
        """Writes an answer; false where the connection ends with it."""
        parts = path.split("/")
        kind, number = parts[1], int(parts[2])
        size = int(parts[3]) if len(parts) > 3 else 2000
        fresh = ("Cache-Control", "max-age=600")
        if kind == "clock" or kind == "chunked":
            return self.versioned(method, path, fields, clock_version(), size, MAX_AGE, writer, kind == "chunked")
        if kind == "counter":
            counters = self.world.counters
            if method == "POST":
                # What is current changes before the answer: a fetch that saw the version before has begun earlier.
                counters[number % COUNTERS] += 1
                writer.write(head(204, []))
                return True
            return self.versioned(method, path, fields, counters[number % COUNTERS], size, 600, writer)
        if kind == "own":
            content = f"for {fields.get('cookie', 'nobody')}\n".encode()
            writer.write(head(200, [("Cache-Control", "private, max-age=60"), ("Content-Length", len(content))]))
            writer.write(content if method != "HEAD" else b"")
            return True
        if kind == "cut":
            writer.write(head(200, [("Content-Length", size), fresh]) + body(path, 0, size // 2))
            return False
        if kind == "cutchunked":
            writer.write(head(200, [("Transfer-Encoding", "chunked"), fresh]) + b"800\r\n" + body(path, 0, 2048) + b"\r\n")
            return False
        if kind == "stall":
            writer.write(head(200, [("Content-Length", size), fresh]) + body(path, 0, size // 2))
            await writer.drain()
            await asyncio.sleep(20)
            return False
        if kind == "reset":
            writer.write(head(200, [("Content-Length", 5000), fresh]) + body(path, 0, 100))
            await writer.drain()
            reset(writer)
            return False
        if kind == "short":
            writer.write(head(200, [("Content-Length", 1000), fresh]) + body(path, 0, 3000))
            return True
        if kind == "long":
            writer.write(head(200, [("Content-Length", 10**12), fresh]) + body(path, 0, 3000))
            return False
        if kind == "garbage":
            writer.write(random.randbytes(300))
            return False
        if kind == "headless":
            return await self.headless(method, path, fields, number, writer)
        if kind == "unasked":
            writer.write(head(304, [("ETag", '"1"')]))
            return True
        if kind == "flip":
            content = body(path, 0, 4000)
            tag = ("ETag", f'"{random.random()}"')
            writer.write(head(200, [tag, ("Cache-Control", "max-age=1"), ("Content-Length", len(content))]))
            writer.write(content if method != "HEAD" else b"")
            return True
        writer.write(head(404, [("Content-Length", 0)]))
        return True

    async def headless(self, method, path, fields, number, writer):
        if method != "HEAD":
            return self.versioned(method, path, fields, clock_version(), 3000, MAX_AGE, writer)
        what = HEADLESS[number % len(HEADLESS)]
        if what in ("403", "500"):
            writer.write(head(int(what), [("Content-Length", 0)]))
            return True
        if what == "garbage":
            writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        if what == "hang":
            await asyncio.sleep(30)
        return False


def run(world, port):
    """Serves until the process is killed."""

    async def main():
        origin = Origin(world)
        server = await asyncio.start_server(origin.serve, "127.0.0.1", port, limit=1 << 17, backlog=512)
        async with server:
            await server.serve_forever()

    asyncio.run(main())
