"""The daemon that reads the tunnels, its local authority, and a copy of this system's stores of authorities."""

import contextlib
import os
import shlex
import shutil
import subprocess

from origin import SITE
from processes import free_port, wait_for_port

# A host that has only mocks: it has no origin at all.
MOCKED = "api.example.com"

CONFIGURATION = """\
listen: 127.0.0.1:{port}
admin: unix:{folder}/admin.sock
ca: {folder}/ca
log: {{ level: info, access: stdout, format: text }}
cache: {{ memory: {{ size: 64MiB }} }}
forward:
  allow: [{site}, {mocked}]
  intercept: {{ hosts: [{site}, {mocked}] }}
services:
  - name: site
    match: {{ host: {site} }}
    base_url: https://localhost:{origin}
    tls: {{ ca: {authority} }}
  - name: mocks
    match: {{ host: {mocked} }}
    demo: {{ enabled: true, headers: {{ Content-Type: text/html }} }}
    endpoints:
      - {{ name: payment, path: /v1/payment, demo: {{ body: "{mock}" }} }}
"""
MOCK = "<title>mocked</title><body style='background: rgb(0, 0, 255)'>paid</body>"

# What holds the stores of authorities on Debian.
STORES = ("/etc/ssl", "/etc/ca-certificates", "/usr/local/share/ca-certificates")


class Failure(Exception):
    """What was not as it must be."""


def copy_stores(folder):
    """Puts copies in front of the system's stores: this process has mounts of its own."""
    for store in STORES:
        if os.path.isdir(store):
            copy = os.path.join(folder, "stores", store[1:])
            shutil.copytree(store, copy, symlinks=True)
            subprocess.run(["mount", "--bind", copy, store], check=True)


def stores():
    """Every file of the system's stores with the bytes that whoever opens it reads; nothing for links that lead nowhere."""
    found = {}
    for store in STORES:
        for path, _, files in os.walk(store):
            for name in files:
                file = os.path.join(path, name)
                with contextlib.suppress(FileNotFoundError), open(file, "rb") as bytes_of:
                    found[file] = bytes_of.read()
                found.setdefault(file, None)
    return found


class World:
    def __init__(self, binary, folder, origin):
        self.binary, self.folder, self.origin = binary, folder, origin
        self.port = free_port()
        self.proxy = f"http://127.0.0.1:{self.port}"
        self.home = os.path.join(folder, "home")
        self.authority = os.path.join(folder, "ca", "ca.pem")
        self.configuration = os.path.join(folder, "drydock.yaml")
        self.log = os.path.join(folder, "daemon.log")
        os.mkdir(self.home)
        text = CONFIGURATION.format(
            port=self.port,
            folder=folder,
            site=SITE,
            mocked=MOCKED,
            mock=MOCK,
            origin=origin.port,
            authority=origin.authority,
        )
        with open(self.configuration, "w", encoding="utf-8") as file:
            file.write(text)
        self.drydock("ca", "create", "-c", self.configuration)
        with open(self.log, "wb") as log:
            arguments = [binary, "serve", "-c", self.configuration]
            self.process = subprocess.Popen(arguments, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        wait_for_port(self.port, self.process, Failure)

    def environment(self):
        """What clients are started with: the proxy, and a home of their own."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        return kept | {"HOME": self.home, "https_proxy": self.proxy, "HTTPS_PROXY": self.proxy, "no_proxy": "", "NO_PROXY": ""}

    def lines(self, title):
        """What `drydock ca lines` has under a title, as commands."""
        wanted, found = False, []
        for line in self.drydock("ca", "lines", "-c", self.configuration).splitlines():
            if line.startswith("#"):
                wanted = line[2:].startswith(title)
            elif line and wanted:
                found.append(line)
        if not found:
            raise Failure(f"drydock ca lines has nothing for {title}")
        return found

    def exported(self, title):
        """The variables that `drydock ca lines` sets for a program."""
        words = [shlex.split(line) for line in self.lines(title)]
        return dict(word[1].split("=", 1) for word in words if word[0] == "export")

    def run(self, *words, more=None, cwd=None, timeout=240, may_fail=False):
        """Runs a program as a client; gives what it has printed, as bytes."""
        try:
            run = subprocess.run(
                words,
                env=self.environment() | (more or {}),
                cwd=cwd or self.folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Failure(f"{words[0]} did not end within {timeout} s") from None
        if run.returncode != 0 and not may_fail:
            said = run.stderr.decode(errors="replace").strip()[-1500:]
            raise Failure(f"{' '.join(words)[:200]}: exit code {run.returncode}: {said}")
        return run.stdout

    def drydock(self, *words, may_fail=False):
        return self.run(self.binary, *words, may_fail=may_fail).decode()

    def stop(self):
        self.process.terminate()
        try:
            code = self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Failure("SIGTERM did not end the daemon within 30 s") from None
        if code != 0:
            raise Failure(f"the daemon ended with {code}")
