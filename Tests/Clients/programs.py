"""Programs that ask for https URLs through the proxy: each by the line that `drydock ca lines` has for it."""

import base64
import hashlib
import io
import os
import shutil
import tarfile
import zipfile

from origin import SITE
from world import Failure

JAVA = """\
import java.net.URI;
import java.net.http.*;

public class Client {
    public static void main(String[] words) throws Exception {
        var proxy = java.net.ProxySelector.of(new java.net.InetSocketAddress("127.0.0.1", Integer.parseInt(words[1])));
        var client = HttpClient.newBuilder().proxy(proxy).build();
        var request = HttpRequest.newBuilder(URI.create(words[0])).build();
        System.out.print(client.send(request, HttpResponse.BodyHandlers.ofString()).body());
    }
}
"""
GO = """\
package main

import (
	"io"
	"log"
	"net/http"
	"os"
)

func main() {
	answer, err := http.Get(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	io.Copy(os.Stdout, answer.Body)
}
"""
RUBY = "require 'open-uri'; print URI.open(ARGV[0]).read"


def text_twice(world, name, ask):
    """A program that prints a resource gets its bytes twice, of which the second time are a hit."""
    path, text = f"/{name}.txt", f"for {name}\n"
    url = world.origin.add(path, text)
    for time in ("first", "second"):
        got = ask(url).decode()
        if got != text:
            raise Failure(f"the {time} answer is {got[:200]!r} in place of {text!r}")
    once(world, path)


def once(world, path):
    asked = world.origin.asked[path]
    if asked != 1:
        raise Failure(f"the origin was asked {asked} times for {path}, and once is right")


def written(world, name, text):
    path = os.path.join(world.folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def curl(world):
    more = world.exported("curl")
    text_twice(world, "curl", lambda url: world.run("curl", "-sS", url, more=more))


def ruby(world):
    more = world.exported("Ruby")
    text_twice(world, "ruby", lambda url: world.run("ruby", "-e", RUBY, url, more=more))


def go(world):
    more = world.exported("Go")
    source = written(world, "client.go", GO)
    program = os.path.join(world.folder, "go-client")
    building = {"GO111MODULE": "off", "GOFLAGS": "", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    world.run("go", "build", "-o", program, source, more=building, timeout=600)
    text_twice(world, "go", lambda url: world.run(program, url, more=more))


def java(world):
    source = written(world, "Client.java", JAVA)
    text_twice(world, "java", lambda url: world.run("java", source, url, str(world.port)))


def git(world):
    """Clones a repository that lies at the origin as plain files."""
    work, bare = os.path.join(world.folder, "work"), os.path.join(world.folder, "bare.git")
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    world.run("git", "init", "-q", work)
    written(world, "work/readme", "cloned through a tunnel\n")
    world.run("git", "-C", work, "add", ".")
    world.run("git", "-C", work, *identity, "commit", "-q", "-m", "one")
    world.run("git", "clone", "-q", "--bare", work, bare)
    world.run("git", "-C", bare, "update-server-info")
    for path, _, files in os.walk(bare):
        for name in files:
            with open(os.path.join(path, name), "rb") as file:
                world.origin.add("/bare.git" + os.path.join(path, name)[len(bare) :], file.read(), "application/octet-stream")
    for line in world.lines("git"):
        world.run(*line.split())
    for clone in ("first", "second"):
        world.run("git", "clone", "-q", f"https://{SITE}/bare.git", os.path.join(world.folder, clone))
        with open(os.path.join(world.folder, clone, "readme"), encoding="utf-8") as file:
            if file.read() != "cloned through a tunnel\n":
                raise Failure("the clone has other files")


def pip(world):
    """Downloads a wheel twice; an index asks to be looked at again, a wheel does not."""
    metadata = "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n"
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny.py", "answer = 42\n")
        archive.writestr("tiny-1.0.dist-info/METADATA", metadata)
        archive.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("tiny-1.0.dist-info/RECORD", "")
    name = "tiny-1.0-py3-none-any.whl"
    path = f"/files/{name}"
    world.origin.add(path, wheel.getvalue(), "application/octet-stream")
    digest = hashlib.sha256(wheel.getvalue()).hexdigest()
    world.origin.add("/simple/tiny/", f'<a href="{path}#sha256={digest}">{name}</a>', "text/html")
    more = world.exported("Python") | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_CONFIG_FILE": os.devnull}
    for folder in ("wheel-1", "wheel-2"):
        target = os.path.join(world.folder, folder)
        words = ["-m", "pip", "download", "-q", "--no-deps", "--no-cache-dir", "--index-url", f"https://{SITE}/simple", "-d", target]
        world.run("/usr/bin/python3", *words, "tiny", more=more)
        with open(os.path.join(target, name), "rb") as file:
            if file.read() != wheel.getvalue():
                raise Failure("the wheel has other bytes")
    once(world, path)


def deb():
    """A package of Debian with one file in it, made by hand: an ar archive of three members."""

    def archive(files):
        result = io.BytesIO()
        with tarfile.open(fileobj=result, mode="w:gz") as tar:
            for name, body in files.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(body)
                tar.addfile(entry, io.BytesIO(body))
        return result.getvalue()

    control = b"Package: tiny\nVersion: 1.0\nArchitecture: all\nMaintainer: a <a@example.org>\nDescription: tiny\n"
    result = b"!<arch>\n"
    members = {"debian-binary": b"2.0\n", "control.tar.gz": archive({"./control": control})}
    for name, body in (members | {"data.tar.gz": archive({"./usr/share/tiny": b"tiny\n"})}).items():
        result += f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(body):<10}`\n".encode() + body + b"\n" * (len(body) % 2)
    return control.decode(), result


def apt(world):
    """Reads the index of a repository and downloads a package of it, twice."""
    control, package = deb()
    path = "/debian/tiny_1.0_all.deb"
    world.origin.add(path, package, "application/octet-stream")
    digest = hashlib.sha256(package).hexdigest()
    world.origin.add("/debian/Packages", f"{control}Filename: ./tiny_1.0_all.deb\nSize: {len(package)}\nSHA256: {digest}\n")
    root = os.path.join(world.folder, "apt")
    for folder in ("lists/partial", "cache/archives/partial", "etc/preferences.d", "etc/trusted.gpg.d"):
        os.makedirs(os.path.join(root, folder))
    written(world, "apt/sources.list", f"deb [trusted=yes] https://{SITE}/debian ./\n")
    written(world, "apt/status", "")
    settings = {
        "Dir::Etc": f"{root}/etc",
        "Dir::Etc::SourceList": f"{root}/sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::Lists": f"{root}/lists",
        "Dir::State::Status": f"{root}/status",
        "Dir::Cache": f"{root}/cache",
        "APT::Sandbox::User": "root",
        "Acquire::https::Proxy": world.proxy,
        "Acquire::https::CaInfo": world.authority,
        "Acquire::Languages": "none",
    }
    options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    for folder in ("deb-1", "deb-2"):
        target = os.path.join(world.folder, folder)
        os.mkdir(target)
        shutil.rmtree(f"{root}/lists")
        os.makedirs(f"{root}/lists/partial")
        world.run("apt-get", "-qq", *options, "update")
        world.run("apt-get", "-qq", *options, "download", "tiny", cwd=target)
        with open(os.path.join(target, "tiny_1.0_all.deb"), "rb") as file:
            if file.read() != package:
                raise Failure("the package has other bytes")
    once(world, path)


def system_store(world):
    """Programs that have no store of their own go by the system's, which `drydock ca trust` has changed."""
    text_twice(world, "system", lambda url: world.run("curl", "-sS", url))


def wget(world):
    text_twice(world, "wget", lambda url: world.run("wget", "-q", "-O", "-", url))


def distrusting(world):
    """A program that trusts nobody gets nothing, and the log has what to do."""
    url = world.origin.add("/distrusted.txt", "not for you")
    nobody = written(world, "nobody.pem", open(world.origin.authority, encoding="ascii").read())
    if world.run("curl", "-sS", "--cacert", nobody, url, may_fail=True):
        raise Failure("a client that does not trust the authority got an answer")
    with open(world.log, encoding="utf-8") as file:
        log = file.read()
    if "export CURL_CA_BUNDLE=" not in log:
        raise Failure("the log does not say what a client that does not trust the authority can do")


# Those that go by lines of their own, before anything is put into a store.
BY_LINES = [curl, ruby, go, git, pip, apt, distrusting]
# Those that go by a store.
BY_STORES = [system_store, wget, java]
