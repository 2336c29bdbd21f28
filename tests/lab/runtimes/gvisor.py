# SPDX-License-Identifier: Apache-2.0
"""gVisor: a kernel in user space, with a network stack of its own, as an OCI runtime.

It takes over the addresses and routes that the container's network namespace has when the container starts, and then uses
the interfaces itself: what a hook sets up in time is what it sees.
"""

import os

from .oci import Oci
from .runtime import write

# Debian's runsc takes a network namespace with a /proc/sys/net/core/rmem_default for the machine's first one and refuses to use its
# own stack there. Newer kernels have that file in each. And it gives its standard streams to "nobody": it gets a null device of its
# own, so that the machine's keeps its owner.
WRAPPER = """#!/bin/sh
exec unshare --mount sh -c '
mount -t tmpfs tmpfs /proc/sys/net && mknod -m 666 /proc/sys/net/null c 1 3 || exit
[ "$(readlink /proc/$$/fd/0)" != /dev/null ] || exec </proc/sys/net/null
[ "$(readlink /proc/$$/fd/1)" != /dev/null ] || exec >/proc/sys/net/null
[ "$(readlink /proc/$$/fd/2)" != /dev/null ] || exec 2>/proc/sys/net/null
exec "$@"' sh runsc --platform=ptrace --network=sandbox --ignore-cgroups "$@"
"""


def runsc(folder):
    """Writes the program that runs runsc here: to be one of Docker(runtimes={NAME: {"path": …}})."""
    return write(os.path.join(folder, "runsc"), WRAPPER, 0o755)


class Gvisor(Oci):
    def __init__(self, lab, images, name="gvisor"):
        super().__init__(lab, images, name=name)
        self.program = runsc(self.folder)
