"""Single requests: what is asked, what the origin itself answers, and whether a server gives the same."""

import dataclasses
import http.client
import re

from .processes import Failure

HOST = "shop.example"
# What a browser sends, about 600 bytes in 12 fields.
REALISTIC = (
    ("Host", HOST),
    ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"),
    ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"),
    ("Accept-Language", "en-GB,en;q=0.9,de;q=0.6"),
    ("Accept-Encoding", "gzip, deflate, br"),
    ("Referer", f"https://{HOST}/catalogue"),
    ("Cookie", "session=8f0c2b7d5e914a63; theme=dark; consent=1; basket=17-3,204-1"),
    ("Connection", "keep-alive"),
    ("Sec-Ch-Ua", '"Chromium";v="126", "Not-A.Brand";v="8"'),
    ("Sec-Fetch-Dest", "document"),
    ("Sec-Fetch-Mode", "navigate"),
    ("Sec-Fetch-Site", "same-origin"),
)
COMPARED = ("Content-Type", "Content-Range")


@dataclasses.dataclass(frozen=True)
class Ask:
    path: str
    fields: tuple = ()
    # What Drydock must say in Cache-Status, as a regular expression.
    cache_status: str = r"; hit; .*detail=memory"


@dataclasses.dataclass
class Answer:
    status: int
    body: bytes
    fields: dict


def ask(port, question):
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        client.putrequest("GET", question.path, skip_host=any(name == "Host" for name, _ in question.fields),
                          skip_accept_encoding=True)  # fmt: skip
        for name, value in question.fields:
            client.putheader(name, value)
        client.endheaders()
        answer = client.getresponse()
        return Answer(answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()})
    except (OSError, http.client.HTTPException) as error:
        raise Failure(f"{question.path}: {type(error).__name__}: {error}") from None
    finally:
        client.close()


def check(server, question, wanted, first=False):
    """Asks a server, and fails where its answer is not the origin's, or Drydock's not the kind of answer it should be."""
    got = ask(server.port, question)
    if got.status != wanted.status or got.body != wanted.body:
        raise Failure(f"{question.path}: status {got.status} with {len(got.body)} bytes, which are not "
                      f"the origin's {wanted.status} with {len(wanted.body)}")  # fmt: skip
    for name in COMPARED if server.is_proxy and got.status != 304 else ():
        if got.fields.get(name.lower()) != wanted.fields.get(name.lower()):
            raise Failure(f"{question.path}: {name} is {got.fields.get(name.lower())}, "
                          f"and the origin's {wanted.fields.get(name.lower())}")  # fmt: skip
    status = got.fields.get("cache-status", "")
    if server.name == "Drydock" and not first and not re.search(question.cache_status, status):
        raise Failure(f"{question.path}: Cache-Status is {status or 'missing'}, and not {question.cache_status}")
    return len(got.body)
