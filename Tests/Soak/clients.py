"""Clients that look at every byte of every answer, leave early, and do not read."""

import asyncio
import collections
import json
import random
import time

from world import COUNTERS, body, is_too_old

# What an origin that misbehaves may be answered with, besides a body that is cut.
REFUSALS = (502, 503, 504)
# A loop, a shared fetch and a client's own parser together take no longer than this for what is small.
PATIENCE = 60


class Cut(Exception):
    """An answer that did not come whole."""


class Answer:
    def __init__(self, status, fields, content):
        self.status, self.fields, self.content = status, fields, content


async def read_answer(reader, method):
    """One whole answer; raises Cut where its framing says that something is missing."""
    try:
        while True:
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            status = int(lines[0].split(" ")[1])
            if status >= 200:
                break
        fields = {}
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            if colon:
                fields[name.lower()] = value.strip()
        content = b""
        if method != "HEAD" and status not in (204, 304):
            if "transfer-encoding" in fields:
                while True:
                    size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
                    piece = await reader.readexactly(size + 2)
                    content += piece[:size]
                    if size == 0:
                        break
            elif "content-length" in fields:
                content = await reader.readexactly(int(fields["content-length"]))
            else:
                content = await reader.read(-1)
        return Answer(status, fields, content)
    except (asyncio.IncompleteReadError, ConnectionError, ValueError, IndexError) as error:
        raise Cut(repr(error)) from error


class Client:
    def __init__(self, world, port, name, seed):
        self.world, self.port, self.name = world, port, name
        self.random = random.Random(seed)
        self.reader = self.writer = None
        self.counts = collections.Counter()
        self.wrong = []

    def complain(self, what, path, answer=None):
        status = "" if answer is None else f" ({answer.status}, {answer.fields.get('cache-status', '')})"
        self.wrong.append(f"{self.name}: {path}: {what}{status}")

    async def connect(self):
        await self.close()
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)

    async def close(self):
        if self.writer is not None:
            self.writer.close()
            try:
                await asyncio.wait_for(self.writer.wait_closed(), 5)
            except (ConnectionError, OSError, asyncio.TimeoutError):
                pass
            self.reader = self.writer = None

    async def ask(self, method, path, fields=()):
        """An answer, or nil where the connection failed.  A connection that was kept may have been closed meanwhile."""
        for attempt in (0, 1):
            fresh = self.writer is None
            try:
                if fresh:
                    await self.connect()
                lines = [f"{method} {path} HTTP/1.1", f"Host: localhost:{self.port}"]
                lines += [f"{name}: {value}" for name, value in fields]
                self.writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
                answer = await asyncio.wait_for(read_answer(self.reader, method), PATIENCE)
                if answer.fields.get("connection", "").lower() == "close":
                    await self.close()
                return answer
            # Before OSError, of which it is one since Python 3.11: what does not come is to be told with its place.
            except asyncio.TimeoutError:
                await self.close()
                return Answer(0, {}, b"")
            except (Cut, OSError):
                await self.close()
                if fresh or attempt or method == "POST":
                    return None
        return None

    def service(self):
        return self.random.choice(("/finish", "/abort", "/library"))

    # What a right answer is, by kind of path.

    async def look_at_clock(self):
        kind = self.random.choice(("clock", "clock", "clock", "chunked", "headless"))
        size = self.random.choice((10, 700, 5000, 70_000, 300_000, 900_000))
        path = f"/{kind}/{self.random.randrange(40)}" + ("" if kind == "headless" else f"/{size}")
        service = self.random.choice(("/finish", "/abort"))
        fields = [("Cache-Control", "no-cache")] if self.random.random() < 0.1 else []
        await self.expect_version(service + path, path, 3000 if kind == "headless" else size, fields)

    async def expect_version(self, url, path, size, fields=(), least=None):
        asked = time.time()
        answer = await self.ask("GET", url, fields)
        if self.world.disturbed(asked):
            self.counts["disturbed"] += 1
            if answer is None or answer.status != 200:
                return
        elif answer is None:
            return self.complain("was cut off while both sides were well", url)
        elif answer.status == 0:
            return self.complain(f"did not come within {PATIENCE} s", url)
        elif answer.status != 200:
            return self.complain(f"an error while both sides were well: {answer.content[:200]!r}", url, answer)
        try:
            version = int(answer.fields["etag"].strip('"'))
        except (KeyError, ValueError):
            return self.complain("has no ETag of the origin", url, answer)
        if answer.content != body(path, version, size):
            return self.complain(f"is not the body of version {version}: {answer.content[:60]!r}", url, answer)
        if least is not None and version < least:
            return self.complain(f"version {version} though {least} was made before", url, answer)
        if least is None and is_too_old(version, asked):
            return self.complain(f"version {version} is {asked - (version + 1) * 5:.0f} s too old", url, answer)
        self.counts["hit" if "hit" in answer.fields.get("cache-status", "") else "fetched"] += 1

    async def count(self):
        """What an unsafe request invalidates never comes back, whatever dies."""
        number = self.random.randrange(COUNTERS)
        path = f"/counter/{number}"
        url = self.random.choice(("/finish", "/abort")) + path
        if self.random.random() < 0.15:
            answer = await self.ask("POST", url, [("Content-Length", "0")])
            self.counts["changes"] += answer is not None
            if answer is not None and answer.status == 204:
                self.known[number] = max(self.known.get(number, 0), self.world.counters[number])
            return
        # A client knows of its own changes alone; each service and client works on keys that all of them share.
        least = self.known.get(number)
        await self.expect_version(url, path, 2000, least=least if least is not None else 0)

    async def own(self):
        url = f"/finish/own/{self.random.randrange(8)}"
        asked = time.time()
        answer = await self.ask("GET", url, [("Cookie", self.name)])
        if answer is None or answer.status != 200:
            if not self.world.disturbed(asked):
                self.complain("an error while both sides were well", url, answer)
        elif answer.content != f"for {self.name}\n".encode():
            self.complain(f"another's response: {answer.content!r}", url, answer)
        else:
            self.counts["private"] += 1

    async def misbehaving(self):
        """An origin's lies: nothing that was cut comes whole, and nothing waits for ever."""
        kind = self.random.choice(("cut", "cutchunked", "reset", "short", "long", "garbage", "unasked", "flip"))
        size = self.random.choice((3000, 200_000, 4_000_000)) if kind == "cut" else 2000
        path = f"/{kind}/{self.random.randrange(20)}" + (f"/{size}" if kind == "cut" else "")
        url = self.service() + path
        asked = time.time()
        answer = await self.ask("GET", url)
        self.counts[kind] += 1
        if answer is None or self.world.disturbed(asked):
            return
        if answer.status == 0:
            return self.complain(f"did not come within {PATIENCE} s", url)
        if kind in ("short", "flip"):
            # Its first bytes are a whole response; what follows on the connection is not.
            length = 1000 if kind == "short" else 4000
            if answer.status == 200 and answer.content != body(path, 0, length):
                self.complain("not the bytes that were declared", url, answer)
        elif answer.status == 200:
            self.complain("came whole, though the origin never finished it", url, answer)
        elif answer.status not in REFUSALS:
            self.complain("neither cut nor refused", url, answer)

    async def dead(self):
        """An origin that is down: retried, left alone by the breaker, waited for; the answer is an error that says so."""
        kind = self.random.choice(("dead", "dead", "dead", "parked"))
        url = f"/{kind}/{self.random.randrange(50)}"
        asked = time.time()
        answer = await self.ask("GET", url)
        self.counts[kind] += 1
        if self.world.disturbed(asked, origin_too=False):
            return
        if answer is None or answer.status not in REFUSALS:
            self.complain("neither refused nor told", url, answer)
        elif "proxy-status" not in answer.fields:
            self.complain("does not say why", url, answer)

    async def leave(self):
        """Asks, reads a little or nothing, and goes."""
        kind, size = self.random.choice((("clock", 900_000), ("clock", 5000), ("stall", 200_000), ("cut", 4_000_000)))
        try:
            await self.connect()
            path = f"{self.service()}/{kind}/{self.random.randrange(30)}/{size}"
            self.writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost:{self.port}\r\n\r\n".encode())
            if self.random.random() < 0.5:
                await asyncio.wait_for(self.reader.read(2000), 2)
        except (OSError, asyncio.TimeoutError):
            pass
        self.counts["left"] += 1
        await self.close()

    async def run(self):
        self.known = {}
        acts = [self.look_at_clock] * 10 + [self.count] * 5 + [self.own, self.misbehaving, self.misbehaving, self.leave, self.dead]
        while not self.world.stopped.value:
            await self.random.choice(acts)()
            if self.writer is None:
                # A daemon that is away refuses at once: no busy waiting for it.
                await asyncio.sleep(0.02)
        await self.close()


async def stand_still(world, port, seed):
    """Asks for much and reads nothing of it, again and again."""
    chance = random.Random(seed)
    while not world.stopped.value:
        try:
            path = f"/finish/clock/{chance.randrange(100, 140)}/4000000"
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1000)
            writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
            for _ in range(100):
                if world.stopped.value:
                    break
                await asyncio.sleep(0.1)
            writer.close()
        except OSError:
            await asyncio.sleep(0.2)


def run(world, port, name, count, still, results):
    """A process of clients; puts what they saw on `results`."""

    async def main():
        clients = [Client(world, port, f"{name}-{n}", f"{world.seed} {name} {n}") for n in range(count)]
        others = [stand_still(world, port, f"{world.seed} {name} still {n}") for n in range(still)]
        await asyncio.gather(*(client.run() for client in clients), *others)
        counts = collections.Counter()
        for client in clients:
            counts.update(client.counts)
        wrong = [line for client in clients for line in client.wrong]
        results.put(json.dumps({"counts": counts, "wrong": wrong[:20], "failures": len(wrong)}))

    asyncio.run(main())
