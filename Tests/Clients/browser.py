"""Chromium without a screen: a page of fifty resources, twice, and a mock behind a name that looks real."""

import os
import re
import struct
import zlib

from world import MOCKED, Failure

SCRIPTS, STYLES, IMAGES = 10, 10, 30
GREEN, BLUE = (0, 128, 0), (0, 0, 255)


def image(colour, size=8):
    """A PNG of one colour."""

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = (b"\0" + bytes(colour) * size) * size
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def add_page(origin):
    """A page that turns green, and says so in its title, once all of its resources have done their part."""
    head, body = [], []
    for n in range(SCRIPTS):
        origin.add(f"/page/{n}.js", "window.done = (window.done || 0) + 1;", "text/javascript")
        head.append(f'<script src="/page/{n}.js"></script>')
    for n in range(STYLES):
        origin.add(f"/page/{n}.css", f"#styled-{n} {{ width: {n + 1}px }}", "text/css")
        head.append(f'<link rel="stylesheet" href="/page/{n}.css">')
        body.append(f'<div id="styled-{n}" style="height: 1px"></div>')
    for n in range(IMAGES):
        origin.add(f"/page/{n}.png", image((n, n, n)), "image/png")
        body.append(f'<img src="/page/{n}.png">')
    script = (
        "onload = () => {"
        " let count = window.done;"
        f" for (let n = 0; n < {STYLES}; n++) if (document.getElementById('styled-' + n).offsetWidth == n + 1) count++;"
        " for (const image of document.images) if (image.complete && image.naturalWidth == 8) count++;"
        " document.title = count + ' resources';"
        f" if (count == {SCRIPTS + STYLES + IMAGES}) {{ document.body.innerHTML = ''; document.body.style.background = 'rgb{GREEN}'; }}"
        " };"
    )
    page = f"<!doctype html><head>{''.join(head)}</head><body>{''.join(body)}<script>{script}</script></body>"
    return origin.add("/page/", page, "text/html")


def pixel(path):
    """The colour in the middle of a PNG whose rows have 8 bits a channel."""
    with open(path, "rb") as file:
        data = file.read()
    position, packed, header = 8, b"", None
    while position < len(data):
        size, kind = struct.unpack(">I4s", data[position : position + 8])
        if kind == b"IHDR":
            header = struct.unpack(">IIBBBBB", data[position + 8 : position + 8 + size])
        elif kind == b"IDAT":
            packed += data[position + 8 : position + 8 + size]
        position += 12 + size
    width, height, depth, kind = header[:4]
    if depth != 8 or kind not in (2, 6):
        raise Failure(f"{path} is no picture that can be read here: depth {depth}, kind {kind}")
    channels, rows = 4 if kind == 6 else 3, zlib.decompress(packed)
    stride, above = width * channels, bytearray(width * channels)
    for row in range(height // 2 + 1):
        start = row * (stride + 1)
        above = unfiltered(rows[start], bytearray(rows[start + 1 : start + 1 + stride]), above, channels)
    middle = width // 2 * channels
    return tuple(above[middle : middle + 3])


def unfiltered(kind, row, above, channels):
    """A row as it was before its filter (PNG, section 9)."""
    for n in range(len(row)):
        left = row[n - channels] if n >= channels else 0
        up, corner = above[n], above[n - channels] if n >= channels else 0
        if kind == 4:
            guess = left + up - corner
            near = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))[2]
        else:
            near = (0, left, up, (left + up) // 2)[kind]
        row[n] = (row[n] + near) & 255
    return row


def open_page(world, url, name, *more):
    """Opens a page in a browser without a screen, whose profile is that of `name`; gives what it prints."""
    words = [
        "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-sync",
        "--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-extensions",
        "--disable-quic", "--hide-scrollbars", "--window-size=400,300", "--timeout=60000",
        f"--user-data-dir={os.path.join(world.folder, name)}", f"--proxy-server={world.proxy}",
    ]  # fmt: skip
    return world.run(*words, *more, url, timeout=180).decode(errors="replace")


def show(world, url, name):
    """Opens a page in a browser that has seen nothing before; gives its title and the colour in its middle."""
    picture = os.path.join(world.folder, f"{name}.png")
    open_page(world, url, name, f"--screenshot={picture}")
    dom = open_page(world, url, name, "--dump-dom")
    title = re.search("<title>(.*?)</title>", dom)
    if not os.path.exists(picture):
        raise Failure(f"the browser has made no picture of {url}; it shows {dom[:500]!r}")
    return title.group(1) if title else dom[:500], pixel(picture)


def expect(what, got, wanted):
    if got != wanted:
        raise Failure(f"{what}: {got!r} in place of {wanted!r}")


def chromium(world):
    """All of the page comes from the origin once, and from the daemon for a browser that has seen nothing."""
    url = add_page(world.origin)
    count = SCRIPTS + STYLES + IMAGES
    wanted = (f"{count} resources", GREEN)
    expect("the page, the first time", show(world, url, "browser-1"), wanted)
    paths = [path for path in world.origin.resources if path.startswith("/page/")]
    before = {path: world.origin.asked[path] for path in paths}
    expect("requests to the origin for each resource", before, dict.fromkeys(paths, 1))
    expect("the page, the second time", show(world, url, "browser-2"), wanted)
    after = {path: world.origin.asked[path] for path in paths}
    expect("requests to the origin after the second time", after, before)


def mock(world):
    """A name of somebody else is answered by the daemon alone."""
    url = f"https://{MOCKED}/v1/payment"
    expect("the mock", show(world, url, "browser-3"), ("mocked", BLUE))


ALL = [chromium, mock]
