"""HTTP/1.1 read as strictly as RFC 9112 allows: what the daemon sends to clients and origins has to pass here."""

import re

TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
STATUS = re.compile(rb"HTTP/1\.[01] ([1-9][0-9][0-9]) [\t \x21-\x7e\x80-\xff]*\Z")
REQUEST = re.compile(rb"(" + TOKEN + rb") ([\x21-\x7e]+) HTTP/1\.[01]\Z")
FIELD = re.compile(rb"(" + TOKEN + rb"):[ \t]*((?:[\x21-\x7e\x80-\xff](?:[\t \x21-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?)[ \t]*\Z")
CHUNK = re.compile(rb"([0-9a-fA-F]{1,15})(?:[ \t]*;.*)?\Z")


class Wrong(Exception):
    """A message that breaks a rule."""


class Cut(Exception):
    """A message that ends before its end."""


class Reader:
    """Messages of a connection that can be read with `receive`, which returns b"" at its end."""

    def __init__(self, receive):
        self.receive, self.data = receive, b""

    def more(self):
        new = self.receive()
        if not new:
            raise Cut
        self.data += new

    def line(self):
        while True:
            line, end, rest = self.data.partition(b"\r\n")
            if b"\n" in line or b"\0" in line or (b"\r" in line and end):
                raise Wrong(f"a bare CR, LF or NUL: {line[:80]!r}")
            if end:
                self.data = rest
                return line
            if len(self.data) > 1 << 20:
                raise Wrong("a line of more than 1 MiB")
            self.more()

    def exactly(self, count):
        while len(self.data) < count:
            self.more()
        found, self.data = self.data[:count], self.data[count:]
        return found

    def fields(self):
        fields = []
        while line := self.line():
            match = FIELD.match(line)
            if match is None:
                raise Wrong(f"not a field line: {line[:80]!r}")
            fields.append((match[1].lower(), match[2]))
        return fields

    def content(self, fields, otherwise):
        """The content by its framing; `otherwise` says what it is without any."""
        lengths = [value for name, value in fields if name == b"content-length"]
        codings = [value.lower() for name, value in fields if name == b"transfer-encoding"]
        if codings:
            if lengths:
                raise Wrong("Content-Length beside Transfer-Encoding")
            if codings != [b"chunked"]:
                raise Wrong(f"transfer codings {codings!r}")
            whole = b""
            while True:
                size = CHUNK.match(self.line())
                if size is None:
                    raise Wrong("not the size of a chunk")
                count = int(size[1], 16)
                if count == 0:
                    self.fields()
                    return whole
                whole += self.exactly(count)
                if self.exactly(2) != b"\r\n":
                    raise Wrong("a chunk that is longer than its size")
        if lengths:
            if len(lengths) > 1 or not lengths[0].isdigit():
                raise Wrong(f"Content-Length {lengths!r}")
            return self.exactly(int(lengths[0]))
        return otherwise()

    def rest(self):
        whole = self.data
        while new := self.receive():
            whole += new
        self.data = b""
        return whole

    def response(self, method):
        """A final response as status, fields, content; 101 and an answer to CONNECT have no content."""
        while True:
            status = STATUS.match(line := self.line())
            if status is None:
                raise Wrong(f"not a status line: {line[:80]!r}")
            code, fields = int(status[1]), self.fields()
            if code == 101 or code >= 200:
                break
        if method == b"HEAD" or code in (101, 204, 304) or (method == b"CONNECT" and code < 300):
            return code, fields, b""
        return code, fields, self.content(fields, self.rest)

    def request(self):
        """A request as method, target, fields, content; raises Cut where none begins."""
        match = REQUEST.match(line := self.line())
        if match is None:
            raise Wrong(f"not a request line: {line[:80]!r}")
        fields = self.fields()
        if sum(name == b"host" for name, _ in fields) != 1:
            raise Wrong("not exactly one Host")
        return match[1], match[2], fields, self.content(fields, lambda: b"")
