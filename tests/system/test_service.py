# SPDX-License-Identifier: Apache-2.0
"""sandbox-net oci-service, and who may not stand in the way of whom there. Each has a /run of its own."""

import concurrent.futures
import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import threading

import pytest

from lab import read_log, wait_for
from lab.attached import Sandbox

HOLD = """
import socket, sys
held = []
for _ in range(4):
    held.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    held[-1].connect("/run/netgate-service/socket")
print("held", flush=True)
sys.stdin.read()
"""


class Service:
    def __init__(self, lab, folder):
        self.lab, self.folder, self.log = lab, folder, os.path.join(folder, "log.jsonl")
        permits = os.path.join(folder, "users", lab.user.name)
        os.makedirs(permits)
        with open(os.path.join(permits, "default.yaml"), "w") as out:
            out.write("version: 1\nallow: [ok.test]\n")
        self.program = os.path.join(lab.programs(), "sandbox-net")
        self.errors = open(os.path.join(folder, "said"), "wb")
        script = 'mount -t tmpfs -o mode=755 tmpfs /run && exec "$@"'
        self.process = subprocess.Popen(lab.host.command(
            ["unshare", "--mount", "sh", "-c", script, "sh", self.program, "oci-service", "--permits", os.path.dirname(permits),
             "--log", self.log]), stderr=self.errors)
        self.run_dir = f"/proc/{self.process.pid}/root/run"
        wait_for(lambda: os.path.exists(f"{self.run_dir}/netgate-service/socket"), "the service's socket")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.errors.close()

    def command(self, argv, uid):
        """As this user, with the service's /run."""
        return ["nsenter", f"--target={self.process.pid}", "--mount", "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *argv]

    def said(self):
        with open(os.path.join(self.folder, "said")) as text:
            return text.read()

    def hook(self, sandbox, ident, caps=(), status="created", **annotations):
        """What a user's podman calls, in the user namespace that it has made."""
        bundle = os.path.join(self.folder, ident)
        os.makedirs(bundle, exist_ok=True)
        with open(os.path.join(bundle, "config.json"), "w") as out:
            json.dump({"process": {"capabilities": {"bounding": list(caps)}}, "linux": {}}, out)
        state = {"id": ident, "pid": sandbox.pid, "status": status, "bundle": bundle,
                 "annotations": {f"dev.netgate.{key}": value for key, value in annotations.items()}}
        return subprocess.run(self.command(["unshare", "--user", "--map-root-user", self.program, "oci-hook"], self.lab.user.uid),
                              input=json.dumps(state), capture_output=True, text=True, timeout=120)

    @contextlib.contextmanager
    def held(self, uid):
        """Four connections of a user that say nothing."""
        with subprocess.Popen(self.command([sys.executable, "-c", HOLD], uid), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            assert holder.stdout.readline() == b"held\n"
            yield


@pytest.fixture
def service(lab):
    """In a folder that users may enter: of pytest's own, another run of it takes that away."""
    folder = lab.workspace()
    for path in (folder, lab.folder):
        os.chmod(path, 0o755)
    with Service(lab, folder) as it:
        yield it


def test_many_ids(lab, service):
    """Users to whom nothing is permitted take no place: one user may come as many (/etc/subuid)."""
    with contextlib.ExitStack() as stack:
        for uid in range(400000, 400010):
            stack.enter_context(service.held(uid))
        with Sandbox(lab, lab.user) as sandbox:
            done = service.hook(sandbox, "one")
            assert done.returncode == 0, done
            assert sandbox.links() == ["lo", "eth0"]
        wait_for(lambda: read_log(service.log)[-1]["type"] == "end", "the end of the gate")


def test_end_while_the_service_is_busy(lab, service):
    """When many containers end at once: nobody tells of an end a second time. A start is refused."""
    with Sandbox(lab, lab.user) as sandbox, concurrent.futures.ThreadPoolExecutor(1) as pool:
        with service.held(lab.user.uid):
            wait_for(lambda: "busy" in service.hook(sandbox, "one").stderr, "the places to be taken")
            before = service.said().count("busy")
            end = pool.submit(service.hook, sandbox, "one", status="stopped")
            wait_for(lambda: end.done() or service.said().count("busy") > before + 1, "the hook to ask again")
        assert end.result().returncode == 0, end.result()


def test_lock_of_a_user(lab, service):
    """Two services don't run at once, and no user can keep one from being started anew by a lock on what he may open."""
    folder = "/run/netgate-service"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with contextlib.ExitStack() as stack:
        holder = stack.enter_context(subprocess.Popen(service.command(["sh", "-c", "echo there; cat"], lab.user.uid), **pipes))
        stack.callback(holder.communicate)
        assert holder.stdout.readline() == b"there\n"
        there = ["nsenter", f"--target={holder.pid}", "--mount"]
        second = subprocess.run([*there, service.program, "oci-service"], capture_output=True, text=True, timeout=120)
        assert second.returncode != 0 and "does the service run already?" in second.stderr, second
        service.process.terminate()
        service.process.wait()
        for path, held in {folder: b"held\n", f"{folder}/resolv.conf": b"held\n", f"{folder}/lock": b""}.items():
            locker = stack.enter_context(subprocess.Popen(
                [*there, "setpriv", f"--reuid={lab.user.uid}", "--clear-groups", "flock", path, "sh", "-c", "echo held; cat"], **pipes))
            stack.callback(locker.communicate)
            assert locker.stdout.readline() == held
        again = stack.enter_context(subprocess.Popen([*there, service.program, "oci-service"], **pipes))
        wait_for(lambda: again.poll() is not None or os.path.exists(f"/proc/{again.pid}/root{folder}/socket"), "the service")
        again.terminate()
        assert again.wait() == 0, again.stderr.read()


ASK = """
import socket, sys, time
begun, asked = time.monotonic(), 3000
for _ in range(asked):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.connect("/run/netgate-service/socket")
    sock.recv(1000)
    sock.close()
print(asked, time.monotonic() - begun)
"""


def test_refusals_that_are_many(lab, service):
    """Whoever asks again and again does not fill the journal; none goes uncounted."""
    done = subprocess.run(service.command([sys.executable, "-c", ASK], 400000), capture_output=True, text=True, timeout=120)
    asked, seconds = map(float, done.stdout.split())
    service.process.terminate()
    assert service.process.wait() == 0
    said = service.said().splitlines()
    refused = [line for line in said if "permits nothing to user 400000" in line]
    more = [int(line.split()[1]) for line in said if line.endswith("more requests were refused")]
    assert len(refused) + sum(more) == asked and 100 <= len(refused) <= 100 + 10 * (seconds + 1), (len(refused), more, seconds)


def test_nothing_is_permitted(lab, service):
    """The reason arrives, whoever is faster."""
    os.rename(os.path.join(service.folder, "users", lab.user.name), os.path.join(service.folder, "users", "somebody"))
    with Sandbox(lab, lab.user) as sandbox:
        for ident in ("one", "two", "three", "four"):
            done = service.hook(sandbox, ident)
            assert done.returncode != 0 and f"permits nothing to user {lab.user.name}" in done.stderr, done
        assert sandbox.links() == ["lo"]


@contextlib.contextmanager
def listed(service, names):
    """A netgate that waits for job "team", of which these sandboxes are said to be attached (base/attach.h)."""
    def message(kind, name=""):
        return struct.pack("=2I40x72s1536x", 0x6e670101, kind, name.encode())

    def answer():
        with contextlib.suppress(OSError):
            while True:
                with sock.accept()[0] as asker:
                    asker.recv(4096)
                    for name in names:
                        asker.send(message(7, name))
                    asker.send(message(4))

    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        sock.bind(f"{service.run_dir}/netgate/team.sock")
        sock.listen()
        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield
        finally:
            sock.shutdown(socket.SHUT_RDWR)
            thread.join()
    os.unlink(f"{service.run_dir}/netgate/team.sock")


def test_many_gates(lab, service):
    """Those of a user are counted, whatever job they are in, and no others; not what a netgate that was killed has left."""
    gates, own = f"{service.run_dir}/netgate", [f"u{lab.user.uid}-{i}" for i in range(128)]
    os.mkdir(gates, 0o700)
    for name in own:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stale:
            stale.bind(f"{gates}/{name}.sock")
    open(os.path.join(service.folder, "users", lab.user.name, "team.job"), "w").close()
    others = [f"u{lab.user.uid}0-{i}" for i in range(128)]
    with Sandbox(lab, lab.user) as sandbox:
        with listed(service, own + others):
            for annotations in ({}, {"job": "team"}):
                done = service.hook(sandbox, "one", **annotations)
                assert done.returncode != 0 and "has 128 gates, which is as many as one may have" in done.stderr, done
        with listed(service, own[1:] + others):
            assert service.hook(sandbox, "one").returncode == 0
            with Sandbox(lab, lab.user) as another:
                assert "has 128 gates" in service.hook(another, "two").stderr
    wait_for(lambda: read_log(service.log)[-1]["type"] == "end", "the end of the gate")


@contextlib.contextmanager
def silent(service, job):
    """A netgate that waits for a job and says nothing, and has no room for one who asks."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as held:
        path = f"{service.run_dir}/netgate/{job}.sock"
        sock.bind(path)
        sock.listen(0)
        held.connect(path)
        yield
    os.unlink(path)


def test_silent_gates(lab, service):
    """One of the user's own counts; where he may join and nobody says how many there are, it is refused; the others' cost him nothing."""
    os.mkdir(f"{service.run_dir}/netgate", 0o700)
    permit = os.path.join(service.folder, "users", lab.user.name, "silent.job")
    with Sandbox(lab, lab.user) as sandbox, silent(service, "silent"):
        with listed(service, [f"u{lab.user.uid}-{i}" for i in range(127)]), silent(service, f"u{lab.user.uid}-own"):
            assert "has 128 gates" in service.hook(sandbox, "one").stderr
        open(permit, "w").close()
        done = service.hook(sandbox, "one")
        assert done.returncode != 0 and "does not say how many gates it has" in done.stderr, done
        os.unlink(permit)
        done = service.hook(sandbox, "one")
        assert done.returncode == 0, done
    wait_for(lambda: read_log(service.log)[-1]["type"] == "end", "the end of the gate")


def test_last_gate(lab, service):
    """Of several that are asked for at the same time, no more are made than there may be."""
    os.mkdir(f"{service.run_dir}/netgate", 0o700)
    with listed(service, [f"u{lab.user.uid}-{i}" for i in range(127)]), contextlib.ExitStack() as stack:
        boxes = [stack.enter_context(Sandbox(lab, lab.user)) for _ in range(4)]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            done = list(pool.map(lambda i: service.hook(boxes[i], f"box{i}"), range(4)))
        assert sorted(one.returncode != 0 for one in done) == [False, True, True, True], done
        assert all("has 128 gates" in one.stderr for one in done if one.returncode), done


@pytest.mark.parametrize("caps,works", [([], False), (["CAP_NET_ADMIN"], True)], ids=["alone", "with-capability"])
@pytest.mark.parametrize("family", ["4", "6"])
def test_interface_that_comes_later(lab, service, caps, works, family):
    """podman connects a container that has a user namespace of its own after the hooks. Without the capability in there, to no avail, and the gate ends."""
    here, there = {"4": ("192.0.2.1", "192.0.2.2"), "6": ("2001:db8::1", "2001:db8::2")}[family]
    with Sandbox(lab, lab.user) as sandbox:
        assert service.hook(sandbox, "one", caps).returncode == 0
        lab.host.net.ip(f"link add later type veth peer name later netns /proc/{sandbox.pid}/ns/net")
        try:
            lab.host.net.ip("link set later up", f"addr add {here}/64 dev later nodad" if family == "6" else f"addr add {here}/30 dev later")
            added = f"{there}/64 dev later nodad" if family == "6" else f"{there}/30 dev later"
            assert sandbox.run(["sh", "-c", f"ip link set later up && ip addr add {added}"]).returncode == 0
            for run, to in ((lab.on_host, there), (sandbox.run, here)):
                ping = lambda run=run, to=to: run(["ping", "-c", "1", "-W", "2", to]).returncode == 0
                assert wait_for(ping, "an answer") if works else not ping()
            wait_for(lambda: "later" in [record.get("name") for record in read_log(service.log)], "a record of it")
            if works:
                assert sandbox.run(["curl", "-sS", "--proxy", "10.200.0.1:3128", "http://ok.test/hello"]).stdout == "hello from ok.test\n"
            else:
                wait_for(lambda: read_log(service.log)[-1].get("ended") == "another_interface", "the end of the gate")
        finally:
            lab.host.net.ip("link del later")
    wait_for(lambda: read_log(service.log)[-1]["type"] == "end", "the end of the gate")
