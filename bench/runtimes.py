# SPDX-License-Identifier: Apache-2.0
"""What a gate adds to the start of a container: `true` in each runtime with and without one, in turns.

    sudo /usr/bin/python3 bench/runtimes.py [ROUNDS [ROW…]]
"""

import argparse
import os
import statistics
import subprocess
import time

from common import figure, table
from lab import Lab
from lab.machine import Console, Machine
from lab.runtimes import GATED, Docker, Images, Podman, Policies, networks


def timed(run):
    begun = time.monotonic()
    done = run()
    if done.returncode != 0:
        raise RuntimeError(f"exit status {done.returncode}: {done.stdout}{done.stderr}")
    return (time.monotonic() - begun) * 1000


def row(kind, without, with_gate, rounds):
    """ms without and with a gate, and the ratio of the medians."""
    without(), with_gate()
    pairs = [(without(), with_gate()) for _ in range(rounds)]
    alone, behind = zip(*pairs)
    return [kind, figure(alone, 0), figure(behind, 0), f"{statistics.median(behind) / statistics.median(alone):.2f}"]


def hooked(lab, images, kind, rounds):
    """A container that gets its gate while it is made."""
    name = f"{lab.user.name}/permit.yaml" if kind == "rootless" else "permit.yaml"
    with GATED[kind](lab, images, Policies(lab, {name: "version: 1\nallow: [ok.test]\n"})) as gated:
        return row(kind, lambda: timed(lambda: gated.runtime.run(["true"])),
                   lambda: timed(lambda: gated.run(["true"], ask={"allow": "ok.test"})), rounds)


def docker_network(lab, images, kind, rounds):
    with Docker(lab, images) as docker, networks.docker_network(lab, docker, lab.workspace()):
        return row(kind, lambda: timed(lambda: docker.run(["true"])), lambda: timed(lambda: docker.run(["true"], network=networks.NAME)), rounds)


def podman_cni(lab, images, kind, rounds):
    with Podman(lab, images) as podman:
        networks.podman_cni(lab, podman, f"{lab.workspace()}/log.jsonl")
        return row(kind, lambda: timed(lambda: podman.run(["true"])),
                   lambda: timed(lambda: podman.run(["true"], network=networks.NAME, options=["--dns=10.200.0.1"])), rounds)


def qemu(lab, images, kind, rounds):
    """Until the guest's shell is ready. The machine alone has no network card."""
    machine = Machine(images)
    initramfs = machine.initramfs(lab.workspace())
    gate = [os.path.join(lab.programs(), "netgate"), "--tap", "tap0", "--read", machine.kernel, "--allow", "ok.test", "--"]

    def boot(command):
        begun = time.monotonic()
        with subprocess.Popen(lab.host.command(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              env=lab.environment()) as process:
            with Console(process.stdin, process.stdout):
                return (time.monotonic() - begun) * 1000
    return row(kind, lambda: boot(machine.command(initramfs, None)), lambda: boot([*gate, *machine.command(initramfs, "tap0")]), rounds)


ROWS = {**dict.fromkeys(["docker", "podman", "rootless", "runc", "crun", "gvisor"], hooked),  # those that also run containers without a gate
        "docker network": docker_network, "podman CNI": podman_cni, "QEMU": qemu}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rounds", nargs="?", type=int, default=10, help="starts of each, of which the median is shown (10)")
    parser.add_argument("rows", nargs="*", metavar="row", help=f"which (all): {', '.join(ROWS)}")
    options = parser.parse_args()
    if unknown := set(options.rows) - set(ROWS):
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    with Lab() as lab:
        images = Images(os.path.join(lab.build, "images"))
        rows = [ROWS[kind](lab, images, kind, options.rounds) for kind in options.rows or ROWS]
    table(f"Start and end of a container, or until a machine's shell is ready, median of {options.rounds}",
          ["runtime", "alone, ms", "with a gate, ms", "ratio"], rows)


if __name__ == "__main__":
    main()
