# SPDX-License-Identifier: Apache-2.0
"""Real container and VM runtimes beside the lab's internet, each on a host of its own.

    with Lab() as lab, Docker(lab, Images(lab.build)) as docker:
        done = docker.run(["ip", "addr"])                       # CompletedProcess
        with docker.start(["sleep", "1000"]) as box:            # a Box
            print(box.pid, box.netns, box.exec(["id"]).stdout)

A Pool starts the KINDS when they are first asked for. runtime.py has the interface that all of them share, site.py how each is kept apart and ended, images.py what runs in them,
compose.py the documentation's examples for docker-compose.
Debian's versions of the programs are in .ci/deps/test.
"""

import contextlib

from .cni import Cni
from .docker import Docker
from .gated import GATED, Gated, Policies
from .gvisor import Gvisor, runsc
from .images import CA, Image, Images
from .oci import Oci
from .podman import Podman
from .qemu import Qemu
from .runtime import Box, Runtime
from .site import Site

__all__ = ["CA", "GATED", "KINDS", "Box", "Cni", "Docker", "Gated", "Gvisor", "Image", "Images", "Oci", "Podman", "Policies", "Pool",
           "Qemu", "Runtime", "Site", "runsc"]

# Each with the interface of Runtime: what holds for one should hold for all.
KINDS = {
    "docker": Docker,
    "podman": Podman,
    "podman-crun": lambda lab, images: Podman(lab, images, runtime="crun", name="podman-crun"),
    "rootless": lambda lab, images: Podman(lab, images, user=lab.user, name="rootless"),
    "runc": Oci,
    "crun": lambda lab, images: Oci(lab, images, "crun"),
    "gvisor": Gvisor,
    "qemu": Qemu,
}


class Pool:
    """pool["docker"]: the one of this kind, started when first asked for; all end with the `with` block."""

    def __init__(self, lab, images):
        self._lab, self._images = lab, images
        self._started = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stack.close()

    def __getitem__(self, kind):
        if kind not in self._started:
            self._started[kind] = self._stack.enter_context(KINDS[kind](self._lab, self._images))
        return self._started[kind]
