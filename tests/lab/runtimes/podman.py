# SPDX-License-Identifier: Apache-2.0
"""Podman, as root or as an ordinary user, with a store of its own, and in /etc a configuration on top of Debian's."""

import os

from .runtime import Store, write

# The ulimits are given because podman would raise its own, which takes CAP_SYS_RESOURCE.
CONFIG = """[containers]
log_driver = "k8s-file"
default_ulimits = ["nofile=1024:16384", "nproc=4096:4096"]
[engine]
tmp_dir = "{temporary}"
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "{runtime}"
[network]
network_backend = "cni"
cni_plugin_dirs = ["{plugins}", "/usr/lib/cni"]
network_config_dir = "{networks}"
"""


ETC = "/etc/containers"  # the site's own
STATE = "/run/state"  # podman wants it at most 50 characters long; the site's /run is its own


class Podman(Store):
    """`runtime`: runc or crun. `user`: None is root. Before its start, or at any time after it:

    `networks`: a folder for CNI configurations (*.conflist), for run(network=NAME); `plugins`: one for CNI plugins besides Debian's.
    """

    name = "podman"
    removal = [*Store.removal, "--time=0"]  # else it would wait 10 s for a first process that takes no SIGTERM

    def __init__(self, lab, images, runtime="runc", user=None, name=None):
        super().__init__(lab, images, name)
        self.user = user
        owner = [f"--owner={user.uid}", f"--group={user.gid}"] if user else []
        self.networks, self.plugins, self._store, self._temporary = (
            os.path.join(self.folder, name) for name in ("networks", "plugins", "store", "tmp"))
        self.site.run(["install", "-d", *owner, STATE, self._store, self._temporary, self.networks, self.plugins], check=True)
        with open(f"{ETC}/policy.json") as policy:
            self.install("policy.json", policy.read())
        self.install("containers.conf", CONFIG.format(runtime=runtime, temporary=self._temporary, plugins=self.plugins, networks=self.networks))
        self._env = {"XDG_RUNTIME_DIR": STATE}

    def install(self, name, text):
        """A file of the administrator's, below /etc/containers."""
        self.site.run(["install", "-D", "-m", "644", "/dev/stdin", f"{ETC}/{name}"], input=text, check=True)

    def client(self, *argv, **kwargs):
        words = ["podman", f"--root={self._store}", f"--runroot={STATE}"]
        return self.site.run([*words, *argv], user=self.user, env=self._env, **kwargs)

    def environment(self):
        driver = self.client("info", "--format={{.Store.GraphDriverName}}", check=True).stdout.strip()
        storage = f'[storage]\ndriver = "{driver}"\ngraphroot = "{self._store}"\nrunroot = "{STATE}"\n'
        return self._env | {"CONTAINERS_STORAGE_CONF": write(os.path.join(self.folder, "storage.conf"), storage)}

    def defaults(self):
        # An ordinary user may make no cgroup in v1: there the container stays in the client's.
        return [] if self.user else [f"--cgroup-parent={self.site.cgroup.boxes}"]

    def end(self):
        self.client(*self.removal, "--all")
