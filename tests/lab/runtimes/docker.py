# SPDX-License-Identifier: Apache-2.0
"""Debian's dockerd with its own containerd, on a host of the lab and in folders of its own."""

import itertools
import json
import os

from ..loop import wait_for
from .runtime import Store, write

CLIENT = "/usr/bin/docker"  # not a newer one that may come first in PATH: the daemon must know its API


class Docker(Store):
    """`runtimes`: {name: {"path": program}} besides runc, for run(options=["--runtime=NAME"]); `config`: more of daemon.json."""

    name = "docker"

    def __init__(self, lab, images, runtimes=None, config=None, name=None):
        super().__init__(lab, images, name)
        self._config = {"runtimes": runtimes or {}, "cgroup-parent": self.site.cgroup.boxes,
                        "exec-opts": ["native.cgroupdriver=cgroupfs"]} | (config or {})
        self._daemon = None
        self._counter = itertools.count()
        self._log = os.path.join(self.folder, "dockerd.log")
        self.socket = os.path.join(self.folder, "docker.sock")
        self.containerd = os.path.join(self.folder, "exec/containerd/containerd.sock")

    def begin(self):
        path = write(os.path.join(self.folder, "daemon.json"), json.dumps(self._config))
        with open(self._log, "wb") as log:
            self._daemon = self.site.start(
                ["dockerd", f"--config-file={path}", f"--data-root={self.folder}/data", f"--exec-root={self.folder}/exec",
                 f"--pidfile={self.folder}/dockerd.pid", f"--host=unix://{self.socket}"], stdout=log, stderr=log)
        wait_for(self._ready, "dockerd's answer")

    def _ready(self):
        """It listens before it has come up, and may still end then."""
        if self._daemon.poll() is not None:
            raise RuntimeError(f"dockerd ended:\n{self.log()}")
        return os.path.exists(self.socket) and self.client("version").returncode == 0

    def log(self):
        """What dockerd wrote."""
        with open(self._log, errors="replace") as log:
            return log.read()

    def client(self, *argv, **kwargs):
        return self.site.run([CLIENT, f"--host=unix://{self.socket}", *argv], **kwargs)

    def environment(self):
        return {"DOCKER_HOST": f"unix://{self.socket}"}

    def ctr(self, *argv, **kwargs):
        """containerd's own client. Its containers must have an end: dockerd does not know them."""
        return self.site.run(["ctr", f"--address={self.containerd}", *argv], **kwargs)

    def ctr_run(self, argv, image=None, network=None):
        """Runs a command by ctr to its end. `network`: the path of a network namespace; None is a new one."""
        ident = f"ctr-{next(self._counter)}"
        namespace = [f"--with-ns=network:{network}"] if network else []
        return self.ctr("run", "--rm", "--rootfs", "--env=PATH=/usr/bin:/bin", f"--cgroup={self.site.cgroup.boxes}/{ident}", *namespace,
                        (image or self.images.busybox()).rootfs, ident, *argv)

    def end(self):
        if not self._daemon:
            return
        if self._daemon.poll() is None:
            for ident in self.containers():
                self.client(*self.removal, ident)
            self._daemon.terminate()
        self._daemon.wait(timeout=120)
