# SPDX-License-Identifier: Apache-2.0
"""Podman, as root or as an ordinary user, with a configuration and a store of its own."""

import os

from .runtime import Store, write

# The ulimits are given because podman would raise its own, which takes CAP_SYS_RESOURCE.
CONFIG = """[containers]
log_driver = "k8s-file"
default_ulimits = ["nofile=1024:16384", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "{runtime}"
[network]
network_backend = "cni"
cni_plugin_dirs = ["{plugins}", "/usr/lib/cni"]
network_config_dir = "{networks}"
"""


STATE = "/run/state"  # podman wants it at most 50 characters long; the site's /run is its own


class Podman(Store):
    """`runtime`: runc or crun. `user`: None is root. Before its start, or at any time after it:

    `hooks`: a folder for OCI hook files (*.json); `networks`: one for CNI configurations (*.conflist), for run(network=NAME);
    `plugins`: one for CNI plugins besides Debian's.
    """

    name = "podman"
    removal = [*Store.removal, "--time=0"]  # else it would wait 10 s for a first process that takes no SIGTERM

    def __init__(self, lab, images, runtime="runc", user=None, name=None):
        super().__init__(lab, images, name)
        self.user = user
        owner = [f"--owner={user.uid}", f"--group={user.gid}"] if user else []
        self.hooks, self.networks, self.plugins, self._store, self._temporary = (
            os.path.join(self.folder, name) for name in ("hooks", "networks", "plugins", "store", "tmp"))
        self.site.run(["install", "-d", *owner, STATE, self._store, self._temporary, self.hooks, self.networks, self.plugins],
                      check=True)
        self._config = write(os.path.join(self.folder, "containers.conf"),
                             CONFIG.format(runtime=runtime, plugins=self.plugins, networks=self.networks))

    def client(self, *argv, **kwargs):
        words = ["podman", f"--root={self._store}", f"--runroot={STATE}", f"--tmpdir={self._temporary}", f"--hooks-dir={self.hooks}"]
        env = {"CONTAINERS_CONF": self._config, "XDG_RUNTIME_DIR": STATE}
        return self.site.run([*words, *argv], user=self.user, env=env, **kwargs)

    def defaults(self):
        # An ordinary user may make no cgroup in v1: there the container stays in the client's.
        return [] if self.user else [f"--cgroup-parent={self.site.cgroup.boxes}"]

    def end(self):
        self.client(*self.removal, "--all")
