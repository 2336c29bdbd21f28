# SPDX-License-Identifier: Apache-2.0
"""gVisor: a kernel in user space, with a network stack of its own, as an OCI runtime.

It takes over the addresses and routes that the container's network namespace has when the container starts, and then uses
the interfaces itself: what a hook sets up in time is what it sees.
"""

import os
import re

from ..lab import TOP
from .oci import Oci
from .runtime import write


def runsc(folder):
    """Writes the program of docs/containers.md that runs runsc: to be one of Docker(runtimes={NAME: {"path": …}})."""
    with open(os.path.join(TOP, "docs/containers.md"), encoding="utf-8") as document:
        (program,) = re.findall(r"^```sh\n(#!/bin/sh\n.*?)^```$", document.read(), re.DOTALL | re.MULTILINE)
    return write(os.path.join(folder, "runsc"), program, 0o755)


class Gvisor(Oci):
    def __init__(self, lab, images, name="gvisor"):
        super().__init__(lab, images, name=name)
        self.program = runsc(self.folder)
