# SPDX-License-Identifier: Apache-2.0
"""Plain OCI bundles: runc and crun, without a daemon. See gvisor.py for a third."""

import itertools
import json
import os
import subprocess

from .runtime import Box, Runtime


def merge(config, changes):
    """`changes` laid over a bundle's configuration: objects member by member, lists appended, everything else replaced."""
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(config.get(key), dict):
            merge(config[key], value)
        elif isinstance(value, list) and isinstance(config.get(key), list):
            config[key] = config[key] + value
        else:
            config[key] = value
    return config


class Oci(Runtime):
    """`program`: runc, crun or a path. `network` of run() and start(): "none", or the path of a network namespace.

    The root file system is the image's own and read-only; /tmp and /run are tmpfs.
    """

    def __init__(self, lab, images, program="runc", name=None):
        super().__init__(lab, images, name or program)
        self.program = program
        self._state = os.path.join(self.folder, "state")
        self._counter = itertools.count()

    def bundle(self, argv, image=None, network="none", **changes):
        """Makes a bundle and returns its folder; `changes` are merge()d into its config.json."""
        ident = f"{self.name}-{os.getpid()}-{next(self._counter)}"
        path = os.path.join(self.folder, ident)
        os.mkdir(path)
        subprocess.run(["runc", "spec", "--bundle", path], check=True, timeout=60)
        with open(os.path.join(path, "config.json")) as spec:
            config = json.load(spec)
        config["process"] |= {"terminal": False, "args": list(argv)}
        config["root"] = {"path": (image or self.images.busybox()).rootfs, "readonly": True}
        config["mounts"] += [{"destination": target, "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "mode=1777"]}
                             for target in ("/tmp", "/run")]
        config["linux"]["cgroupsPath"] = f"{self.site.cgroup.boxes}/{ident}"
        if network != "none":
            for namespace in config["linux"]["namespaces"]:
                if namespace["type"] == "network":
                    namespace["path"] = network
        with open(os.path.join(path, "config.json"), "w") as out:
            json.dump(merge(config, changes), out)
        return path

    def client(self, *argv, **kwargs):
        return self.site.run([self.program, f"--root={self._state}", *argv], **kwargs)

    def run(self, argv, image=None, network="none", options=(), **changes):
        return self.run_bundle(self.bundle(argv, image, network, **changes), options)

    def run_bundle(self, path, options=()):
        return self.client("run", *options, f"--bundle={path}", os.path.basename(path))

    def start(self, argv, image=None, network="none", options=(), **changes):
        path = self.bundle(argv, image, network, **changes)
        ident, pid_file = os.path.basename(path), os.path.join(path, "pid")
        with open(os.path.join(path, "log"), "w+") as log:
            done = self.client("run", "--detach", f"--pid-file={pid_file}", *options, f"--bundle={path}", ident, stdout=log,
                               stderr=log)
            if done.returncode != 0:
                log.seek(0)
                raise RuntimeError(f"{self.program} run: exit status {done.returncode}\n{log.read()}")
        with open(pid_file) as pid:
            return Box(self, ident, int(pid.read()))

    def exec(self, box, argv):
        return self.client("exec", box.id, *argv)

    def logs(self, box):
        with open(os.path.join(self.folder, box.id, "log"), errors="replace") as log:
            return log.read()

    def kill(self, box, number):
        self.client("kill", box.id, str(int(number)), check=True)

    def remove(self, box):
        self.client("delete", "--force", box.id)

    def containers(self):
        return [entry["id"] for entry in json.loads(self.client("list", "--format=json", check=True).stdout) or []]

    def end(self):
        for ident in self.containers():
            self.client("delete", "--force", ident)
