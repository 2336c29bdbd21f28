# SPDX-License-Identifier: Apache-2.0
"""sandbox-net oci-service, and who may not stand in the way of whom there. Each has a /run of its own."""

import contextlib
import json
import os
import subprocess
import sys

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
        script = 'mount -t tmpfs -o mode=755 tmpfs /run && exec "$@"'
        self.process = subprocess.Popen(lab.host.command(
            ["unshare", "--mount", "sh", "-c", script, "sh", self.program, "oci-service", "--permits", os.path.dirname(permits),
             "--log", self.log]), stderr=subprocess.DEVNULL)
        self.run_dir = f"/proc/{self.process.pid}/root/run"
        wait_for(lambda: os.path.exists(f"{self.run_dir}/netgate-service/socket"), "the service's socket")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def command(self, argv, uid):
        """As this user, with the service's /run."""
        return ["nsenter", f"--target={self.process.pid}", "--mount", "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *argv]

    def hook(self, sandbox, ident, caps=()):
        """What a user's podman calls, in the user namespace that it has made."""
        with open(os.path.join(self.folder, "config.json"), "w") as out:
            json.dump({"process": {"capabilities": {"bounding": list(caps)}}, "linux": {}}, out)
        state = {"id": ident, "pid": sandbox.pid, "status": "created", "bundle": self.folder}
        return subprocess.run(self.command(["unshare", "--user", "--map-root-user", self.program, "oci-hook"], self.lab.user.uid),
                              input=json.dumps(state), capture_output=True, text=True, timeout=120)

    @contextlib.contextmanager
    def held(self, uid):
        """Four connections of a user that say nothing."""
        with subprocess.Popen(self.command([sys.executable, "-c", HOLD], uid), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            assert holder.stdout.readline() == b"held\n"
            yield


@pytest.fixture
def service(lab, tmp_path):
    for folder in (tmp_path, *tmp_path.parents[:2]):
        os.chmod(folder, 0o755)
    with Service(lab, str(tmp_path)) as it:
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


def test_nothing_is_permitted(lab, service):
    """The reason arrives, whoever is faster."""
    os.rename(os.path.join(service.folder, "users", lab.user.name), os.path.join(service.folder, "users", "somebody"))
    with Sandbox(lab, lab.user) as sandbox:
        for ident in ("one", "two", "three", "four"):
            done = service.hook(sandbox, ident)
            assert done.returncode != 0 and f"permits nothing to user {lab.user.name}" in done.stderr, done
        assert sandbox.links() == ["lo"]


def test_many_gates(lab, service):
    """Those of a user are counted, and no others."""
    gates = f"{service.run_dir}/netgate"
    os.mkdir(gates, 0o700)
    for i in range(128):
        open(f"{gates}/u{lab.user.uid}-{i}.sock", "w").close()
        open(f"{gates}/u{lab.user.uid}0-{i}.sock", "w").close()
    with Sandbox(lab, lab.user) as sandbox:
        done = service.hook(sandbox, "one")
        assert done.returncode != 0 and "has 128 gates, which is as many as one may have" in done.stderr, done
        os.unlink(f"{gates}/u{lab.user.uid}-0.sock")
        assert service.hook(sandbox, "one").returncode == 0
    wait_for(lambda: read_log(service.log)[-1]["type"] == "end", "the end of the gate")


@pytest.mark.parametrize("caps,works", [([], False), (["CAP_NET_ADMIN"], True)], ids=["alone", "with-capability"])
@pytest.mark.parametrize("family", ["4", "6"])
def test_interface_that_comes_later(lab, service, caps, works, family):
    """podman connects a container that has a user namespace of its own after the hooks. Without the capability in there, to no avail."""
    here, there = {"4": ("192.0.2.1", "192.0.2.2"), "6": ("2001:db8::1", "2001:db8::2")}[family]
    with Sandbox(lab, lab.user) as sandbox:
        assert service.hook(sandbox, "one", caps).returncode == 0
        lab.host.net.ip(f"link add later type veth peer name later netns /proc/{sandbox.pid}/ns/net")
        try:
            lab.host.net.ip("link set later up", f"addr add {here}/64 dev later nodad" if family == "6" else f"addr add {here}/30 dev later")
            added = f"{there}/64 dev later nodad" if family == "6" else f"{there}/30 dev later"
            assert sandbox.run(["sh", "-c", f"ip link set later up && ip addr add {added}"]).returncode == 0
            for program in (lab.on_host(["ping", "-c", "1", "-W", "2", there]), sandbox.run(["ping", "-c", "1", "-W", "2", here])):
                assert (program.returncode == 0) == works, program
            assert sandbox.run(["curl", "-sS", "--proxy", "10.200.0.1:3128", "http://ok.test/hello"]).stdout == "hello from ok.test\n"
        finally:
            lab.host.net.ip("link del later")
    wait_for(lambda: read_log(service.log)[-1]["type"] == "end", "the end of the gate")
