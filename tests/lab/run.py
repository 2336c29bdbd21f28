# SPDX-License-Identifier: Apache-2.0
"""Running netgate (or anything) on a host of the lab, and reading its log."""

import dataclasses
import json
import os
import select

# Safety net for a run that hangs, far above what a busy machine takes.
TIMEOUT = 120
MARK = "NETGATE_LAB"


@dataclasses.dataclass(repr=False)
class Result:
    rc: int
    out: str
    err: str
    log: str  # path, or None
    command: list

    last = None  # the one that was made last, for a failed test's report

    def __post_init__(self):
        Result.last = self

    @property
    def records(self):
        return read_log(self.log)

    @property
    def shown(self):
        """The values that a script handed over with show(): a list with one object a line."""
        return [json.loads(line) for line in self.out.splitlines()]

    def of(self, kind, **fields):
        """The records of a type whose fields have these values."""
        return [record for record in self.records
                if record["type"] == kind and all(record.get(key) == value for key, value in fields.items())]

    def one(self, kind, **fields):
        """The only such record."""
        found = self.of(kind, **fields)
        assert len(found) == 1, f"{len(found)} records of {kind} with {fields}:\n{self.describe()}"
        return found[0]

    def describe(self):
        lines = "\n".join(json.dumps(record) for record in self.records) if self.log else ""
        return f"$ {' '.join(self.command)}\nrc {self.rc}\n--- out\n{self.out}\n--- err\n{self.err}\n--- log\n{lines}"

    def __repr__(self):
        return self.describe()


def name_of(pid):
    """What the process is called; "" when it is gone."""
    try:
        with open(f"/proc/{pid}/comm") as comm:
            return comm.read().strip()
    except OSError:
        return ""


def child_of(pid, name):
    """The first of a process's children that is called so. (After the proxy comes the finder, a netgate by name until it is at its work.)"""
    with open(f"/proc/{pid}/task/{pid}/children") as children:
        return next(child for child in map(int, children.read().split()) if name_of(child) == name)


def end(pid):
    """Kills a process and waits until it holds nothing any more."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        os.kill(pid, 9)
        select.select([fd], [], [])
    except ProcessLookupError:
        pass
    finally:
        os.close(fd)


def read_log(path):
    """Every complete line of a log; a line that is no JSON object is an error of the test."""
    if not path or not os.path.exists(path):
        return []
    with open(path, encoding="utf-8", newline="\n") as lines:
        return [json.loads(line) for line in lines if line.endswith("\n")]


class Running:
    """A started netgate. Give it to `finish()` or leave its `with` block: then it is ended."""

    def __init__(self, process, log, mark, command):
        self.process, self.log, self.mark, self.command = process, log, mark, command

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    @property
    def records(self):
        return read_log(self.log)

    def ask(self, line=""):
        """Sends a line to the command's standard input and returns the object that it show()s next."""
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        return self.next()

    def next(self):
        line = self.process.stdout.readline()
        assert line, f"the command ended: {self.process.stderr.read().decode()}"
        return json.loads(line)

    def finish(self, stdin=None, timeout=TIMEOUT):
        out, err = self.process.communicate(stdin, timeout)
        decode = lambda data: data.decode("utf-8", "replace") if isinstance(data, bytes) else data or ""
        return Result(self.process.returncode, decode(out), decode(err), self.log, self.command)

    def child(self, name="netgate"):
        """child_of() the process that was started: of the monitor, the proxy, or with "sandbox-net" the launcher."""
        return child_of(self.process.pid, name)

    def kill(self):
        """Ends it and everything that it started, and waits until all of that is gone."""
        while pids := self.processes():
            for pid in pids:
                end(pid)
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                stream.close()

    def filtered(self, name):
        """The process of this name, once its system call filter is in force: the last step of its isolation. Else None."""
        for pid, its in self.processes().items():
            try:
                with open(f"/proc/{pid}/status") as status:
                    if its == name and "Seccomp:\t2\n" in status.read():
                        return pid
            except FileNotFoundError:
                pass
        return None

    def processes(self):
        """The processes of this run that are alive, {pid: name}: all those that were started with its mark in the environment."""
        needle = f"{MARK}={self.mark}\0".encode()
        found = {}
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                with open(f"/proc/{entry}/environ", "rb") as environ:
                    marked = needle in environ.read() + b"\0"
                with open(f"/proc/{entry}/stat", errors="replace") as stat:
                    text = stat.read()
            except OSError:
                continue
            state = text.rpartition(")")[2].split()[0]
            if marked and state not in "ZX":
                found[int(entry)] = text[text.index("(") + 1 : text.rindex(")")]
        return found

