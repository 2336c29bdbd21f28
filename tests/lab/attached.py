# SPDX-License-Identifier: Apache-2.0
"""Sandboxes that exist before netgate knows them, gates that wait, and the two brought together.

    with attached(lab, ["ok.test"]) as box:
        box.run(["curl", "-sS", "http://ok.test/"])
        box.records()

The sandbox is a network namespace owned by a user namespace of its own: its root has every capability in there, and none outside.
"""

import contextlib
import itertools
import json
import os
import socket
import subprocess

from .run import TIMEOUT, Result, read_log

GATE = "10.200.0.1"

_numbers = itertools.count()


def vsock_works():
    """Whether this kernel has AF_VSOCK, which passes every network namespace."""
    with contextlib.suppress(OSError):
        socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close()
        return True
    return False


class Sandbox:
    """A process that waits in namespaces of its own, started by root or by `user`; its network has lo and nothing else.

    `caps`: whether the process has capabilities in its user namespace, or could gain any. `own_user`: False for a network
    namespace that belongs to the host's user namespace, as a container of root's has it.
    """

    def __init__(self, lab, user=None, caps=True, own_user=True, wrap=()):
        self.lab, self.user, self.own_user = lab, user, own_user
        resolv = os.path.join(lab.workspace(user), "resolv.conf")
        with open(resolv, "w") as out:
            out.write(f"nameserver {GATE}\n")
        script = f'mount --bind {resolv} /etc/resolv.conf && exec "$@"'
        less = [] if caps else ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
        unshare = ["unshare", *(["--user", "--map-root-user"] if own_user else []), "--net", "--mount"]
        command = [*unshare, "sh", "-c", script, "sh", *wrap, *less, "sh", "-c", "echo ready; exec sleep infinity"]
        self.process = subprocess.Popen(lab.host.command(command, user), env=lab.environment(None, user),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        if self.process.stdout.readline() != b"ready\n":
            self.close()
            raise RuntimeError("the sandbox did not start")
        self.pid = self.process.pid
        # Every thing above replaces the one before, so this is the process that waits.
        self.netns = os.stat(f"/proc/{self.pid}/ns/net").st_ino

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def command(self, argv, cwd=None):
        """The words that run `argv` as root of the sandbox."""
        return ["nsenter", f"--target={self.pid}", *(["--user"] if self.own_user else []), "--net", "--mount",
                f"--wdns={cwd or self.lab.folder}", "--", *argv]

    def run(self, argv, stdin=None, timeout=TIMEOUT, cwd=None, env=None):
        """Runs a command in it. Returns subprocess's result, with text."""
        return subprocess.run(self.command(argv, cwd), input=stdin, capture_output=True, text=True, timeout=timeout,
                              env=self.lab.environment() | (env or {}), errors="replace")

    def python(self, text, *args, **kwargs):
        """Runs a lab.script(); returns the objects that it show()s."""
        workspace = self.lab.workspace()
        done = self.run(self.lab.script(text, *args), cwd=workspace, **kwargs)
        assert done.returncode == 0, done
        return [json.loads(line) for line in done.stdout.splitlines()]

    def links(self):
        """The names of its interfaces."""
        done = self.run(["ip", "-j", "link"])
        assert done.returncode == 0, done
        return [link["ifname"] for link in json.loads(done.stdout, strict=False)]  # ip(8) escapes nothing

    def close(self):
        """Ends its process, and with the last one the kernel takes the network namespace away."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def _sweep():
    """Removes what gates of labs that were killed have left in root's directory of sockets."""
    folder = "/run/netgate"
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        owner = name.split("-")[1] if name.startswith("lab-") else ""
        if owner.isdigit() and not os.path.exists(f"/proc/{owner}"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, name))


class Gate:
    """A netgate that waits; as `running` (lab.Running) what lab.start() returns."""

    def __init__(self, lab, args=(), user=None, job=None, log=True, env=None, **kwargs):
        _sweep()
        self.lab, self.user = lab, user
        self.job = job or f"lab-{os.getpid()}-{next(_numbers)}"
        read, write = os.pipe()
        try:
            self.running = lab.start(["--job", self.job, "--ready-fd", str(write), *args], None, user=user, log=log,
                                     env=runtime(lab, user) | (env or {}), pass_fds=[write], **kwargs)
        finally:
            os.close(write)
        with open(read) as ready:
            self.path = ready.readline().strip()
        if not self.path:
            result = self.running.finish()
            raise RuntimeError(f"the gate does not wait: {result}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.running.kill()
        for path in (self.path, self.path.removesuffix(".sock") + ".lock"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def attach(self, sandbox, *args):
        """Runs `sandbox-net attach` for this job; returns subprocess's result."""
        return sandbox_net(self.lab, ["attach", "--pid", str(sandbox.pid), "--job", self.job, *args], self.user)

    def records(self):
        return read_log(self.running.log)

    def finish(self):
        """Waits for its end; returns lab.Result."""
        return self.running.finish()


def runtime(lab, user=None):
    """The environment that says where an ordinary user's sockets are."""
    return {"XDG_RUNTIME_DIR": lab.state(user)}


def sandbox_net(lab, args, user=None, **kwargs):
    """Runs sandbox-net on the lab's host."""
    program = os.path.join(lab.programs(), "sandbox-net")
    return subprocess.run(lab.host.command([program, *args], user), capture_output=True, text=True, timeout=TIMEOUT,
                          env=lab.environment(None, user) | runtime(lab, user), errors="replace", **kwargs)


class Attached:
    """A sandbox with its gate. `run`, `python`, `links` are the sandbox's."""

    def __init__(self, sandbox, gate, name):
        self.sandbox, self.gate, self.name = sandbox, gate, name
        self.run, self.python, self.links = sandbox.run, sandbox.python, sandbox.links

    def records(self, kind=None, **fields):
        """Its records so far, of a type and with these values."""
        return [record for record in self.gate.records() if record["sandbox"] == self.name
                and kind in (None, record["type"]) and all(record.get(key) == value for key, value in fields.items())]

    def finish(self):
        """Ends the sandbox, and waits for netgate to notice; returns lab.Result."""
        self.sandbox.close()
        return self.gate.finish()


@contextlib.contextmanager
def attached(lab, allow=(), args=(), user=None, name="box", sandbox=None, attach=()):
    """A sandbox (a new one, or this) that is attached to a gate of its own; `args` are netgate's, `attach` sandbox-net's.

    An ordinary user's gate belongs to the same user namespace as his sandbox, so that risk is accepted.
    """
    flags = [word for entry in allow for word in ("--allow", entry)]
    risk = ["--accept-risk", "net-admin"] if user else []
    with contextlib.ExitStack() as stack:
        sandbox = sandbox or stack.enter_context(Sandbox(lab, user))
        gate = stack.enter_context(Gate(lab, [*flags, *args], user))
        done = gate.attach(sandbox, "--name", name, *risk, *attach)
        assert done.returncode == 0, (done, gate.running.command)
        yield Attached(sandbox, gate, name)


__all__ = ["Attached", "Gate", "Result", "Sandbox", "attached", "runtime", "sandbox_net"]
