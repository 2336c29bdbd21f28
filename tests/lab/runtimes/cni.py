# SPDX-License-Identifier: Apache-2.0
"""Calls a CNI plugin as the specification says: parameters in the environment, configuration on stdin, the result on stdout.

A client of CNI for tests is podman: see `networks` and `plugins` there.
"""

import dataclasses
import json
import os

PATH = "/usr/lib/cni"


@dataclasses.dataclass
class Answer:
    rc: int
    object: dict  # the result, or the error; None when the plugin printed nothing
    err: str  # its stderr


class Cni:
    """`path`: folders with plugins, looked through before Debian's."""

    def __init__(self, site, path=()):
        self._site, self._path = site, [*path, PATH]

    def call(self, command, config, box=None, interface="eth0", args="", container=None, netns=None):
        """`command`: ADD, CHECK, DEL; VERSION, GC, STATUS. For a Box; or, with `container` and `netns`, for anything that has these."""
        program = next(path for path in (os.path.join(folder, config["type"]) for folder in self._path) if os.path.exists(path))
        env = {"CNI_COMMAND": command, "CNI_PATH": ":".join(self._path)}
        if command not in ("VERSION", "GC", "STATUS"):
            env |= {"CNI_CONTAINERID": container or box.id, "CNI_IFNAME": interface}
            if netns or box:
                env["CNI_NETNS"] = netns or box.netns
        if args:
            env["CNI_ARGS"] = args
        done = self._site.run([program], env=env, input=json.dumps(config))
        return Answer(done.returncode, json.loads(done.stdout) if done.stdout.strip() else None, done.stderr)
