# SPDX-License-Identifier: Apache-2.0
"""How long it takes until a command has run: netgate against other ways to start one, and where the time goes."""

import contextlib
import json
import os
import re
import shutil
import statistics
import subprocess

from common import figure, table
from lab import Lab, v4
from lab.ns import MountNS
from lab.runtimes import Docker, Images
from lab.runtimes.docker import CLIENT

TRUE = "/usr/bin/true"
PLAIN, NETNS, BWRAP, NETGATE, DOCKER = "fork and exec", "ip netns exec", "bwrap --unshare-all", "netgate", "docker run"
SRT = "sandbox-runtime"
DOCKERD = "/usr/sbin/dockerd"
SLOW_SHARE = 8  # of the rounds: what takes a while
TRACED = "execve,clone,clone3,fork,vfork,exit_group,setns,pivot_root,seccomp,sendmsg"


def netgate(lab, user):
    log = os.path.join(lab.state(user), "start.jsonl")
    return [os.path.join(lab.programs(), "netgate"), "-q", "--log", log, "--resolver", v4("dns"), "--allow", "ok.test", "--", TRUE]


def ways(lab, user):
    """{what: command}; what is not installed, or is not for this user, is left out."""
    found = {PLAIN: [TRUE]}
    if not user:
        found[NETNS] = ["ip", "netns", "exec", "bench", TRUE]
    if shutil.which("bwrap"):
        found[BWRAP] = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", TRUE]
    return found | {NETGATE: netgate(lab, user)}


def on_host(lab, argv, user, mounts):
    """Runs it on the lab's host, in a workspace of its own, and returns what it prints."""
    environment = lab.environment(None, user) | {"XDG_STATE_HOME": lab.state(user)}
    done = subprocess.run(lab.host.command(argv, user, mounts, lab.workspace(user)), env=environment, check=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=600)
    return done.stdout


def docker_ways(lab, docker):
    """Debian's docker with a network of its own and no way out of it, beside netgate."""
    image = docker.add(docker.images.busybox())
    run = [CLIENT, f"--host=unix://{docker.socket}", "run", "--rm", "--network=none", image, "true"]
    return {PLAIN: [TRUE], DOCKER: run, NETGATE: netgate(lab, None)}


def srt_program(lab):
    """What bench.mk has installed, or the machine's own; None: none."""
    own = os.path.join(lab.build, "bench", "npm", "node_modules", ".bin", "srt")
    return own if os.path.exists(own) else shutil.which("srt")


def srt_ways(lab):
    """Anthropic's sandbox-runtime, which lets one name through to programs that use its proxies: bubblewrap and a proxy in Node.js."""
    settings = os.path.join(lab.folder, "srt.json")
    with open(settings, "w") as out:
        json.dump({"network": {"allowedDomains": ["ok.test"], "deniedDomains": []},
                   "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": []}}, out)
    return {PLAIN: [TRUE], SRT: [srt_program(lab), "--settings", settings, "--", TRUE], NETGATE: netgate(lab, None)}


def compare(lab, user, mounts, rounds, commands=None):
    commands = commands or ways(lab, user)
    argv = [os.path.join(lab.programs(), "spawn"), str(rounds)]
    for command in commands.values():
        argv += ["+", *command]
    rounds_of = zip(*(json.loads(line) for line in on_host(lab, argv, user, mounts).splitlines()), strict=True)
    # (wall clock, CPU) in ms, by command
    costs = {what: [(wall / 1e6, cpu / 1e6) for wall, cpu in column] for what, column in zip(commands, rounds_of, strict=True)}
    plain, _ = zip(*costs[PLAIN], strict=True)
    rows = []
    for what, column in costs.items():
        wall, cpu = zip(*column, strict=True)
        over = [own - other for own, other in zip(wall, plain, strict=True)]
        rows.append([what, figure(wall, 2), figure(over, 2), f"{statistics.median(wall) / statistics.median(plain):.1f}",
                     f"{min(wall):.2f}", f"{min(wall) - min(plain):.2f}", figure(cpu, 2)])
    beside = "".join(f", beside {what}" for what in (DOCKER, SRT) if what in commands)
    table(f"Start, {'an ordinary user' if user else 'root'}{beside} ({rounds} rounds)",
          ["way to run `true`", "ms", "over fork and exec", "times fork and exec", "least ms", "over the least", "CPU ms"],
          rows)


# ---- where the time goes ----

class Trace:
    """One run under strace: who did what when, in ms from the exec of netgate."""

    LINE = re.compile(r"(\d+) +(\d+\.\d+) (.*)")
    BIRTH = re.compile(r"(clone3?|v?fork)\(")
    BORN = re.compile(r"(?:<\.\.\. )?(?:clone3?|v?fork)\b.* = (\d+)$")

    def __init__(self, text):
        lines = [(int(pid), float(time), what) for pid, time, what in self.LINE.findall(text)]
        roles = self._roles(lines)
        # (role, what, ms)
        self.events = [(roles.get(pid, "command"), what, (time - lines[0][1]) * 1000) for pid, time, what in lines]

    def _roles(self, lines):
        """{pid: role}; init counts its children in a name space of its own, and has only one."""
        roles = {lines[0][0]: "netgate"}
        begun = {}
        for pid, _, what in lines:
            if self.BIRTH.match(what):
                begun[pid] = what
            born = self.BORN.match(what)
            if born and pid in roles and roles[pid] != "init":
                roles[int(born[1])] = self._role(roles[pid], begun[pid], set(roles.values()))
        return roles

    @staticmethod
    def _role(parent, call, known):
        if parent == "netgate":
            return "proxy" if "launcher" in known else "launcher"
        if "CLONE_NEWPID" in call:
            return "init"
        if "CLONE_NEWUSER" in call:
            return "holder"
        return "probe" if "gate" in known else "gate"

    def at(self, role, pattern, last=False):
        """When `role` first (or last) did what matches."""
        found = [time for who, what, time in self.events if who == role and re.match(pattern, what)]
        if not found:
            raise RuntimeError(f"the trace has no {pattern} of {role}")
        return found[-1 if last else 0]


EXITED = r"\+\+\+ (exited|killed)"
# In the order of a run's life; the file system is built beside the gate.
MILESTONES = [
    ("netgate: linked; options, policy and log read", "netgate", r"clone", False),
    ("sandbox-net: exec", "launcher", r"execve", False),
    ("sandbox-net: linked; options, user", "launcher", r"clone", False),
    ("S: user and network namespaces", "launcher", r"clone\(.*NEWPID", False),
    ("S: mount, pid, … namespaces; the gate's process forked", "gate", r"", False),
    ("file system built (beside the gate)", "init", r"pivot_root", False),
    ("command's user, no privilege, seccomp (beside the gate)", "init", r"seccomp", True),
    ("gate built: rules, sockets, links", "gate", r"exit_group", False),
    ("proxy has the gate, isolated", "proxy", r"sendmsg", False),
    ("gate proven", "probe", r"exit_group", False),
    ("armed: start is on record", "launcher", r"sendmsg", True),
    ("init told to go", "init", r"clone", False),
    ("command: exec", "command", r"execve", True),
    ("command: exit", "command", r"exit_group", False),
    ("S: processes gone", "init", EXITED, False),
    ("launcher gone", "launcher", EXITED, False),
    ("proxy: end is on record, gone", "proxy", EXITED, False),
    ("netgate gone", "netgate", EXITED, False),
]


def phases(lab, mounts, rounds):
    runs = []
    for _ in range(rounds):
        out = os.path.join(lab.folder, "trace")
        on_host(lab, ["strace", "-f", "--seccomp-bpf", "-ttt", "-e", f"trace={TRACED}", "-o", out, *netgate(lab, None)],
                None, mounts)
        with open(out) as text:
            trace = Trace(text.read())
        runs.append([trace.at(role, pattern, last) for _, role, pattern, last in MILESTONES])
    times = {what: statistics.median(column) for (what, *_), column in zip(MILESTONES, zip(*runs), strict=True)}
    rows, before = [], 0.0
    for what, time in sorted(times.items(), key=lambda item: item[1]):
        rows.append([what, f"{time:.2f}", f"{time - before:+.2f}"])
        before = time
    table(f"Where the time goes, root, under strace, which slows it ({rounds} runs)",
          ["milestone", "ms from exec", "ms since the line above"], rows)


def run(rounds, traces):
    """Prints the tables, of so many rounds of each user and so many runs under strace."""
    made = not os.path.isdir("/run/netns")
    os.makedirs("/run/netns", exist_ok=True)
    try:
        with Lab() as lab, contextlib.ExitStack() as stack:
            shutil.copy(os.path.join(lab.build, "bench", "spawn"), lab.programs())
            # "ip netns" keeps its names on a tmpfs that nobody else sees. Without the lab's resolv.conf: on most hosts nothing is
            # mounted in /etc, and what it costs an ordinary user when something is (see README.md) is not what is compared here.
            mounts = stack.enter_context(contextlib.closing(MountNS(lab.devices, {"/run/netns": "1m"})))
            on_host(lab, ["ip", "netns", "add", "bench"], None, mounts)
            compare(lab, None, mounts, rounds)
            compare(lab, lab.user, mounts, rounds)
            if shutil.which("strace"):
                phases(lab, mounts, traces)
            if os.path.exists(DOCKERD):
                with Docker(lab, Images(lab.build)) as docker:
                    compare(lab, None, mounts, max(3, rounds // SLOW_SHARE), docker_ways(lab, docker))
            if srt_program(lab):
                compare(lab, None, mounts, max(3, rounds // SLOW_SHARE), srt_ways(lab))
    finally:
        if made:
            os.rmdir("/run/netns")
