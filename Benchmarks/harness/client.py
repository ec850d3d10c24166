"""Load: wrk, and walk.c for many keys, on the client's core; both report in the same terms."""

import json
import os
import subprocess

from .bench import HERE, compile_c
from .processes import CLIENT_CORE, Failure

WRK = os.path.join(HERE, "wrk")


def run(command, seconds):
    done = None
    try:
        done = subprocess.run(
            ["taskset", "-c", CLIENT_CORE, *command], capture_output=True, text=True, timeout=seconds + 60, check=True
        )
        result = json.loads(done.stdout.strip().splitlines()[-1])
    except (subprocess.SubprocessError, ValueError, IndexError) as error:
        text = (getattr(error, "stderr", None) or "") + (done.stdout + done.stderr if done else "")
        raise Failure(f"{os.path.basename(command[0])}: {text or error}") from None
    if result["errors"] or not result["requests"]:
        raise Failure(f"{os.path.basename(command[0])} saw errors, or no answer: {done.stdout}")
    return result


def fields(question):
    return [word for name, value in question.fields for word in ("-H", f"{name}: {value}")]


def wrk(connections=64):
    """wrk asks one question again and again."""

    def load(server, question, seconds):
        return run(
            ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", f"{WRK}/report.lua",
             *fields(question), f"http://127.0.0.1:{server.port}{question.path}"], seconds)  # fmt: skip

    return load


def secure_wrk(connections=64):
    """The same at the server's port for TLS; wrk does not look at certificates."""

    def load(server, question, seconds):
        return run(
            ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", f"{WRK}/report.lua",
             f"https://127.0.0.1:{server.secure}{question.path}"], seconds)  # fmt: skip

    return load


def zipf(keys):
    """wrk asks for keys, a few of them often and most of them seldom."""

    def load(server, question, seconds):
        return run(
            ["wrk", "-t1", "-c64", f"-d{seconds}s", "-s", f"{WRK}/keys.lua", *fields(question),
             f"http://127.0.0.1:{server.port}", "--", str(keys)], seconds)  # fmt: skip

    return load


def walk(server, question, keys, seconds):
    """walk.c asks for PATH0 to PATH(KEYS-1) at random, or for each once where `seconds` is 0; it checks every answer's key."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in question.fields)
    if "Host: " not in lines:
        lines = f"Host: 127.0.0.1:{server.port}\r\n{lines}"
    command = [compile_c("walk"), str(server.port), question.path, str(keys), "64", str(seconds), lines]
    return run(command, seconds + keys // 1000)


def crowd(server, path, clients, size):
    """crowd.c: many clients ask for one thing at once; the milliseconds until the first and the last of them are done."""
    try:
        return run([compile_c("crowd"), str(server.port), path, str(clients), str(size)], 60)
    except Failure as failure:
        raise Failure(f"{server.name}: {failure}") from None
