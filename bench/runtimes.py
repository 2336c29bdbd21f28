# SPDX-License-Identifier: Apache-2.0
"""What a gate adds to the start of a container: `true` in each runtime with and without one, in turns.

    sudo /usr/bin/python3 bench/runtimes.py [ROUNDS]
"""

import os
import statistics
import sys
import time

from common import figure, table
from lab import Lab
from lab.runtimes import GATED, Images, Policies

ALONE = {"docker", "podman", "rootless", "runc", "crun", "gvisor"}  # those that also run containers without a gate


def timed(run):
    begun = time.monotonic()
    done = run()
    if done.returncode != 0:
        raise RuntimeError(f"exit status {done.returncode}: {done.stdout}{done.stderr}")
    return (time.monotonic() - begun) * 1000


def measure(lab, images, kind, rounds):
    """A row: ms without and with a gate, and the ratio of the medians."""
    name = f"{lab.user.name}/permit.yaml" if kind == "rootless" else "permit.yaml"
    with GATED[kind](lab, images, Policies(lab, {name: "version: 1\nallow: [ok.test]\n"})) as gated:
        def without():
            return gated.runtime.run(["true"])

        def with_gate():
            return gated.run(["true"], ask={"allow": "ok.test"})
        without(), with_gate()
        pairs = [(timed(without), timed(with_gate)) for _ in range(rounds)]
    alone, behind = zip(*pairs)
    return [kind, figure(alone, 0), figure(behind, 0), f"{statistics.median(behind) / statistics.median(alone):.2f}"]


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    with Lab() as lab:
        images = Images(os.path.join(lab.build, "images"))
        rows = [measure(lab, images, kind, rounds) for kind in GATED if kind in ALONE]
    table(f"Start and end of a container, median of {rounds}", ["runtime", "alone, ms", "with a gate, ms", "ratio"], rows)


if __name__ == "__main__":
    main()
