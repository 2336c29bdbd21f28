# SPDX-License-Identifier: Apache-2.0
"""Networks of netgate's among a runtime's own: containers that are started in the network NAME have a gate that allows ok.test."""

import contextlib
import json
import os

from ..loop import wait_for
from .runtime import write

NAME = "gated"


def podman_cni(lab, podman, log):
    """For a Podman of root's, by netgate as its CNI plugin. `log`: a file."""
    os.symlink(os.path.join(lab.programs(), "sandbox-net"), os.path.join(podman.plugins, "netgate"))
    plugin = {"type": "netgate", "allow": ["ok.test"], "options": [f"--log={log}"]}
    write(os.path.join(podman.networks, f"{NAME}.conflist"), json.dumps({"cniVersion": "0.4.0", "name": NAME, "plugins": [plugin]}))


@contextlib.contextmanager
def docker_network(lab, docker, logs):
    """For a Docker, by netgate as its network driver, which ends with the block. `logs`: a folder."""
    driver = docker.site.start([os.path.join(lab.programs(), "sandbox-net"), "docker-driver", "--state", os.path.join(docker.folder, "state")])
    try:
        socket = "/run/docker/plugins/netgate.sock"
        wait_for(lambda: driver.poll() is not None or docker.site.run(["test", "-S", socket]).returncode == 0, "the driver's socket")
        docker.client("network", "create", "--driver=netgate", "--subnet=172.30.5.0/24", "--ipv6", "--subnet=fd30:5::/64", "--opt=allow=ok.test",
                      f"--opt=log={logs}", f"--opt=name={NAME}", NAME, check=True)
        yield
    finally:
        driver.terminate()
        driver.wait(timeout=60)
