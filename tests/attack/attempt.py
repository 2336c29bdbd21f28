# SPDX-License-Identifier: Apache-2.0
"""One attack, seen from both sides: what left the host while it lasted, and what netgate wrote down about it."""

import fnmatch
import textwrap
import time

from lab import v4, v6
from lab.dns import BadQuery, parse_query

from .packets import SECRET
from .sandboxes import SANDBOXES
from .table import ROWS

ALLOWED = ["ok.test", "*.wild.test"]
HOST = ["203.0.114.2", "2a0f:1ab:0:1::2"]
SERVERS = [v4("web"), v6("web")]  # of the allowed names
NEIGHBOUR = "203.0.114.99"  # the server of the sandbox beside: neighbour.py
SYN = 2
END = 120  # seconds; what still runs then hangs


def is_expected(packet, names):
    """True for what netgate's own dials look like: TCP to an allowed host's server, and the question about its name."""
    if packet.src not in HOST:
        return False
    if packet.proto == "tcp":
        return packet.dport in (80, 443) and packet.dst in [*SERVERS, NEIGHBOUR]
    if packet.proto == "udp" and (packet.dst, packet.dport) == (v4("dns"), 53):
        try:
            name = parse_query(packet.payload)[2].lower()
        except BadQuery:
            return False
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in [*names, "neighbour.test"])
    return False


class Attempt:
    """Use as a context: the sandbox lives inside it, and what it left is asserted behind it."""

    def __init__(self, lab, mode, technique, allow=(), args=(), hidden=False):
        """`allow`: more hosts than ALLOWED. `hidden`: SECRET may leave in what an allowed host gets, as nobody can see it there."""
        self.lab, self.mode, self.technique = lab, mode, technique
        self.names = [*ALLOWED, *allow]
        self.args = [word for name in self.names for word in ("--allow", name)] + list(args)
        self.hidden, self.result, self.escaped = hidden, None, []

    def __enter__(self):
        self.capture = self.lab.capture()
        try:
            self.sandbox = SANDBOXES[self.mode](self.lab, self.args)
        except BaseException:
            self.capture.stop()
            raise
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.result = self.sandbox.close()
        finally:
            self.sandbox.kill()
            self.capture.stop()
        self.escaped = [packet for packet in self.capture.packets if not is_expected(packet, self.names)]
        if kind is None:
            self._check()

    def _check(self):
        assert not self.escaped, f"{len(self.escaped)} packets escaped, the first: {self.escaped[0]}"
        assert self.hidden or not self.capture.contains(SECRET)
        assert self.lab.metadata.requests == [] and self.lab.raw.seen == []
        asked = {(request.address, request.headers.get("host", "").partition(":")[0]) for request in self.lab.web.requests}
        assert all(address in SERVERS and (self.hidden or self.is_allowed(host)) for address, host in asked)
        made = [packet for packet in self.capture.packets if packet.proto == "tcp" and packet.flags & SYN and packet.dst != NEIGHBOUR]
        dials = [record for record in self.result.of("dial") if record["outcome"] in ("connected", "connect_failed") and "addr" in record]
        assert len(made) == len(dials), f"{len(made)} connections were made, {len(dials)} are on record"
        end = self.result.one("end")
        assert end["drops"] == sum(record["count"] for record in self.result.of("drop"))
        assert end.get("lost", 0) == 0

    def is_allowed(self, name):
        return any(fnmatch.fnmatchcase(name.lower().rstrip("."), pattern) for pattern in self.names)

    # While it lasts

    @property
    def root(self):
        return self.mode == "root"

    def run(self, argv, until=None, seconds=END, env=None):
        """Runs a program to its end, or until a condition holds (then it is ended)."""
        number = self.sandbox.start(argv, env)
        limit = time.monotonic() + seconds
        while not (done := self.sandbox.wait(number, 0.05 if until else 1)):
            if until and until():
                return self.sandbox.end(number)
            if time.monotonic() > limit:
                done = self.sandbox.end(number)
                raise AssertionError(f"{argv[0]} still runs after {seconds} s: {done}")
        return done

    def start(self, argv, env=None):
        """Starts a program that runs while others do; it ends with the sandbox at the latest."""
        return self.sandbox.start(argv, env)

    def python(self, text, *args):
        """Runs a script that begins with `from inside import *`, and returns what it show()s."""
        done = self.run(["/usr/bin/python3", "-c", "from inside import *\n" + textwrap.dedent(text), *args])
        assert done.rc == 0, done
        return done.shown

    def records(self, kind, **fields):
        """The records so far."""
        return [record for record in self.sandbox.records
                if record["type"] == kind and all(record.get(key) == value for key, value in fields.items())]

    def send(self, *frames):
        """Sends Ethernet frames from eth0; returns the error when there are no packet sockets to be had."""
        with open(f"{self.sandbox.workspace}/frames", "w") as out:
            out.write("\n".join(bytes(frame).hex() for frame in frames))
        (shown,) = self.python("""
            import errno
            frames = [bytes.fromhex(word) for word in open("frames").read().split()]
            try:
                with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sock:
                    sock.bind(("eth0", 0))
                    for frame in frames:
                        sock.send(frame)
                show(error=None)
            except OSError as error:
                show(error=errno.errorcode[error.errno])
        """)
        return shown["error"]

    def talk(self, *lines, host="ok.test", port=80):
        """Makes a connection for each of `lines` (bytes), sends them, ends its side and waits for the other; returns what each
        connection is called in the records (`src`), and what came back."""
        with open(f"{self.sandbox.workspace}/lines", "w") as out:
            out.write("\n".join(line.hex() for line in lines))
        shown = self.python("""
            host, port = sys.argv[1:]
            for line in open("lines").read().split("\\n"):
                with tcp(host, int(port)) as sock:
                    src = sock.getsockname()
                    src = f"[{src[0]}]:{src[1]}" if ":" in src[0] else f"{src[0]}:{src[1]}"
                    try:
                        sock.sendall(bytes.fromhex(line))
                        sock.shutdown(socket.SHUT_WR)
                    except OSError:
                        pass
                    show(src=src, answer=fate(sock)[1].hex())
        """, host, str(port))
        return [(seen["src"], bytes.fromhex(seen["answer"])) for seen in shown]

    # Behind it

    @property
    def asked(self):
        """What netgate asked the name server on this sandbox's behalf."""
        return [query.name for query in self.lab.dns.queries if query.name != "neighbour.test"]

    def recorded(self, kind, technique=None, **fields):
        """The records with these fields, of which there must be one; the first one's reason, or a dial's outcome, goes into the table."""
        found = self.result.of(kind, **fields)
        assert found, f"no record of {kind} with {fields}"
        self.note(f"`{found[0].get('reason') or found[0]['outcome']}`", technique)
        return found

    def refused(self, error, technique=None):
        """The kernel did not let the attacker begin, so there was nothing to record."""
        assert error, "not refused"
        self.note(f"refused ({error})", technique)

    def note(self, text, technique=None):
        """A line of the table, for this mode: what became of the technique."""
        ROWS.add(technique or self.technique, self.mode, text, "hidden in an allowed connection" if self.hidden else len(self.escaped))
