# SPDX-License-Identifier: Apache-2.0
"""What all runtimes have in common, so that one test can go over all of them."""

import os
import signal

from .site import Site


class Box:
    """A running container (or VM): `id`, `pid` (of its first process, as the host sees it). Ended when its `with` block ends."""

    def __init__(self, runtime, ident, pid):
        self.runtime, self.id, self.pid = runtime, ident, pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

    @property
    def netns(self):
        """The path of its network namespace."""
        return f"/proc/{self.pid}/ns/net"

    def exec(self, argv):
        """Runs a command in it."""
        return self.runtime.exec(self, argv)

    def logs(self):
        """What it has written so far."""
        return self.runtime.logs(self)

    def kill(self, number=signal.SIGKILL):
        """A signal for its first process, by way of the runtime."""
        self.runtime.kill(self, number)

    def remove(self):
        """Ends it and waits until nothing of it is left. A second time does nothing."""
        self.runtime.remove(self)

    def alive(self):
        """Whether its first process runs."""
        try:
            with open(f"/proc/{self.pid}/stat") as stat:
                return stat.read().rpartition(")")[2].split()[0] not in "ZX"
        except (FileNotFoundError, ProcessLookupError):
            return False


class Runtime:
    """A context manager; `site` is the host on which it runs.

    run(argv, image, network, options) → CompletedProcess with the command's exit status and text output.
    start(argv, image, network, options) → Box, whose command goes on.

    `image`: an Image, busybox by default. `network`: "none" (default: a namespace with only lo) or whatever else the runtime knows.
    `options`: further words of the runtime's own command line.
    """

    name = ""

    def __init__(self, lab, images, name=None):
        self.lab, self.images = lab, images
        self.name = name or self.name
        self.site = Site(lab, self.name)
        self.folder = self.site.folder

    def __enter__(self):
        try:
            self.begin()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def begin(self):
        """Starts what the runtime needs."""

    def end(self):
        """Ends it in the ordinary way; what then still runs is killed."""

    def close(self):
        try:
            self.end()
        finally:
            self.site.close()


class Store(Runtime):
    """A runtime with an image store and a command line like docker's."""

    removal = ["rm", "--force", "--volumes"]

    def __init__(self, lab, images, name=None):
        super().__init__(lab, images, name)
        self._imported = set()

    def client(self, *argv, **kwargs):
        """Runs the client program with these words."""
        raise NotImplementedError

    def environment(self):
        """With which the client finds this store when somebody else calls it, without options."""
        raise NotImplementedError

    def add(self, image):
        """Imports an image when it is first used; returns its name in the store."""
        if image.name not in self._imported:
            with open(image.tar, "rb") as tar:
                self.client("import", "-", image.name, stdin=tar, check=True)
            self._imported.add(image.name)
        return image.name

    def _words(self, argv, image, network, options):
        return [f"--network={network}", *self.defaults(), *options, self.add(image or self.images.busybox()), *argv]

    def defaults(self):
        """Options of every `run`."""
        return []

    def run(self, argv, image=None, network="none", options=()):
        return self.client("run", "--rm", *self._words(argv, image, network, options))

    def start(self, argv, image=None, network="none", options=()):
        done = self.client("run", "--detach", *self._words(argv, image, network, options), check=True)
        ident = done.stdout.strip()
        pid = self.client("inspect", "--format={{.State.Pid}}", ident, check=True).stdout
        return Box(self, ident, int(pid))

    def exec(self, box, argv):
        return self.client("exec", box.id, *argv)

    def logs(self, box):
        return self.client("logs", box.id, check=True).stdout

    def kill(self, box, number):
        self.client("kill", f"--signal={int(number)}", box.id, check=True)

    def remove(self, box):
        self.client(*self.removal, box.id)

    def containers(self):
        return self.client("ps", "--all", "--quiet", "--no-trunc", check=True).stdout.split()


def write(path, text, mode=0o644):
    """A small file; returns its path."""
    with open(path, "w") as out:
        out.write(text)
    os.chmod(path, mode)
    return path
