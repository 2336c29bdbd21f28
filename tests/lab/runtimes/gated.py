# SPDX-License-Identifier: Apache-2.0
"""Containers that get a gate while they are made: each runtime with `sandbox-net oci-…` where its administrator would put it.

    with GATED["docker"](lab, images, Policies(lab)) as gated:
        gated.run(["curl", "https://ok.test/"], ask={"allow": "ok.test"})      # as the runtime's run() and start()
        gated.records()
"""

import contextlib
import itertools
import json
import os

from ..loop import wait_for
from ..run import read_log
from .docker import Docker
from .gvisor import Gvisor, runsc
from .images import CA
from .oci import Oci
from .podman import Podman
from .runtime import write

HOOKS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))), "sandbox-net/oci/hooks.d")
INSTALLED = "/usr/local/bin/sandbox-net"
RESOLV = "/etc/resolv.conf"

_numbers = itertools.count()


class Policies:
    """A directory for --permits: what is in `files`, by name and extension."""

    def __init__(self, lab, files):
        self.path = os.path.join(lab.folder, f"policies{next(_numbers)}")
        os.mkdir(self.path)
        for name, text in files.items():
            self.write(name, text)

    def write(self, name, text):
        path = os.path.join(self.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return write(path, text)

    def remove(self, name):
        os.unlink(os.path.join(self.path, name))


class Gated:
    """`runtime` (see runtime.py), `log` (of all its gates), `words` (what follows sandbox-net oci-…: may be changed before it begins)."""

    name = ""  # in GATED

    def __init__(self, lab, images, policies, words=()):
        self.lab, self.images, self.policies = lab, images, policies
        self.program = os.path.join(lab.programs(), "sandbox-net")
        self.log = os.path.join(lab.state(), f"gated{next(_numbers)}.jsonl")
        self.words = ["--permits", policies.path, "--log", self.log, *words]
        self.runtime = self.make()

    def __enter__(self):
        self.runtime.__enter__()
        try:
            self.begin()
            self._links = self.links()
        except BaseException:
            self.runtime.close()
            raise
        return self

    def __exit__(self, *_):
        try:
            self.end()
        finally:
            self.runtime.close()

    def make(self):
        raise NotImplementedError

    def begin(self):
        """After the runtime's own begin()."""

    def end(self):
        """Before the runtime's own end()."""

    @property
    def site(self):
        return self.runtime.site

    def asking(self, ask, options, changes):
        """The runtime's own options and changes for what is asked for, {"allow": …, "policy": …, "job": …}."""
        raise NotImplementedError

    def run(self, argv, ask=None, image=None, options=(), network="none", **changes):
        options, changes = self.asking(ask or {}, list(options), changes)
        return self.runtime.run(argv, image, network, options, **changes)

    def start(self, argv=("sleep", "1000"), ask=None, image=None, options=(), network="none", **changes):
        options, changes = self.asking(ask or {}, list(options), changes)
        return self.runtime.start(list(argv), image, network, options, **changes)

    def start_client(self, *options, **kwargs):
        """start() with the programs of the Debian image, the lab's certificates, and inside.py in /work."""
        workspace = self.lab.workspace()
        return self.start(image=self.images.debian(), options=[*self.mounting(self.lab.ca_file, CA), *self.mounting(workspace, "/work"), *options],
                          **kwargs)

    def mounting(self, source, target):
        return [f"--volume={source}:{target}:ro"]

    def sandbox(self, box):
        """The name of a box's sandbox in the records."""
        return box.id[:64]

    def records(self, box=None, kind=None, **fields):
        return [record for record in read_log(self.log) if (box is None or record["sandbox"] == self.sandbox(box))
                and kind in (None, record["type"]) and all(record.get(key) == value for key, value in fields.items())]

    # What is there of netgate

    def processes(self):
        """{pid: name} of netgate's processes on the runtime's host."""
        found = {}
        for pid in self.site.cgroup.processes():
            with contextlib.suppress(OSError), open(f"/proc/{pid}/comm") as comm:
                name = comm.read().strip()
                if name.startswith(("netgate", "sandbox-net")):
                    found[pid] = name
        return found

    def gates(self):
        """What `sandbox-net ls` says, as objects."""
        done = self.site.run([self.program, "ls", "--json"], check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def files(self):
        """What is in the directory of sockets, but for the resolv.conf that all containers share."""
        return self.site.run(["sh", "-c", "ls /run/netgate 2>/dev/null | grep -vx resolv.conf"]).stdout.split()

    def links(self):
        """The names of the host's interfaces, but for the bridges that engines keep."""
        names = {line.split()[1].rstrip(":") for line in self.site.host.net.run("ip", "-o", "link").splitlines()}
        return names - {"cni-podman0", "docker0"}

    def nothing_left(self):
        """Waits until of no gate anything is left on the host: processes, sockets, interfaces."""
        wait_for(lambda: not self.processes(), "the end of netgate")
        wait_for(lambda: not self.files(), "the end of the sockets")
        wait_for(lambda: self.links() == self._links, "the host's own interfaces, and no others")


class GatedDocker(Gated):
    """--runtime netgate of a dockerd; with netgate-named the policy is always "named"."""

    def make(self):
        words = ["oci-runtime", *self.words, *self.other()]
        runtimes = {"netgate": {"path": self.program, "runtimeArgs": [*words, "--"]},
                    "netgate-named": {"path": self.program, "runtimeArgs": [*words, "--choose", "named", "--"]}}
        return Docker(self.lab, self.images, runtimes=runtimes, name="gdocker")

    def other(self):
        return []

    def asking(self, ask, options, changes):
        return ["--runtime=netgate", *(f"--env=NETGATE_{key.upper()}={value}" for key, value in ask.items()), *options], changes


class GatedDockerGvisor(GatedDocker):
    def other(self):
        return ["--runtime", runsc(self.lab.folder)]


class GatedPodman(Gated):
    """Root's podman with the shipped files of hooks.d; `variant`: opt-in or always."""

    def __init__(self, *args, variant="opt-in", runtime="runc", user=None, **kwargs):
        self.variant, self.oci, self.user = variant, runtime, user
        super().__init__(*args, **kwargs)

    def make(self):
        return Podman(self.lab, self.images, runtime=self.oci, user=self.user, name="gpodman")

    def begin(self):
        for name in os.listdir(os.path.join(HOOKS, self.variant)):
            with open(os.path.join(HOOKS, self.variant, name)) as text:
                self.install(name, text.read())

    def install(self, name, text):
        """A shipped file, where its administrator would put it."""
        if name.endswith(".conf"):
            self.runtime.install(f"containers.conf.d/{name}", text)
            return
        hook = json.loads(text)
        assert hook["hook"]["path"] == INSTALLED
        hook["hook"]["path"] = self.program
        if "createRuntime" in hook["stages"]:
            hook["hook"]["args"] += self.words
        self.runtime.install(f"oci/hooks.d/{name}", json.dumps(hook))

    def asking(self, ask, options, changes):
        return [*(f"--annotation=dev.netgate.{key}={value}" for key, value in ask.items()), *options], changes


class GatedRootless(GatedPodman):
    """An ordinary user's podman, with root's service."""

    def __init__(self, lab, *args, **kwargs):
        super().__init__(lab, *args, user=lab.user, **kwargs)
        self.service = None
        self.service_log = os.path.join(self.runtime.folder, "service.log")

    def begin(self):
        super().begin()
        self.start_service()

    def start_service(self):
        with open(self.service_log, "ab") as log:
            self.service = self.site.start([self.program, "oci-service", *self.words], stderr=log)
        wait_for(lambda: self.service.poll() is not None or self.listens(), "the service's socket")
        assert self.service.poll() is None, self.said()

    def listens(self):
        return self.site.run(["sh", "-c", "grep -q netgate-service /proc/net/unix"]).returncode == 0

    def stop_service(self):
        self.service.terminate()
        assert self.service.wait(timeout=60) == 0, self.said()

    def said(self):
        with open(self.service_log, errors="replace") as log:
            return log.read()

    def end(self):
        if self.service and self.service.poll() is None:
            self.stop_service()

    def sandbox(self, box):
        return f"u{self.user.uid}-{box.id[:52]}"

    def processes(self):
        service = self.service.pid if self.service else None
        return {pid: name for pid, name in super().processes().items() if pid != service}


class GatedOci(Gated):
    """A bundle whose configuration names the hook."""

    def make(self):
        return Oci(self.lab, self.images, name="grunc")

    def mounting(self, source, target):
        return [(source, target)]

    def asking(self, ask, options, changes):
        mounts = [option for option in options if isinstance(option, tuple)]
        resolv = write(os.path.join(self.runtime.folder, "resolv.conf"), "nameserver 10.200.0.1\n")
        hook = {"path": self.program, "args": ["sandbox-net", "oci-hook", *self.words]}
        changes = {"annotations": {f"dev.netgate.{key}": value for key, value in ask.items()},
                   "hooks": {"createRuntime": [hook], "poststop": [hook]},
                   "mounts": [{"destination": target, "type": "bind", "source": source, "options": ["bind", "ro"]}
                              for source, target in [(resolv, RESOLV), *mounts]]} | changes
        return [option for option in options if option not in mounts], changes


class GatedCrun(GatedOci):
    """crun keeps what a hook says to itself, unless it is told otherwise."""

    def make(self):
        return Oci(self.lab, self.images, "crun", name="gcrun")

    def asking(self, ask, options, changes):
        options, changes = super().asking(ask, options, changes)
        changes["annotations"]["run.oci.hooks.stderr"] = "/dev/stderr"
        return options, changes


class GatedGvisor(GatedOci):
    def make(self):
        return Gvisor(self.lab, self.images, name="ggvisor")


GATED = {"docker": GatedDocker, "docker-gvisor": GatedDockerGvisor, "podman": GatedPodman, "rootless": GatedRootless, "runc": GatedOci,
         "crun": GatedCrun, "gvisor": GatedGvisor}
for _name, _kind in GATED.items():
    _kind.name = _name
