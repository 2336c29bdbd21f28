# SPDX-License-Identifier: Apache-2.0
"""docker-compose, with the examples of the documentation."""

import os
import re

import yaml

from ..lab import TOP
from .runtime import write


def example(name):
    """The configuration in docs/NAME, which has one."""
    with open(os.path.join(TOP, "docs", name), encoding="utf-8") as document:
        (text,) = re.findall(r"^```yaml\n(services:\n.*?)^```$", document.read(), re.DOTALL | re.MULTILINE)
    return yaml.safe_load(text)


def run(docker, config, service, script):
    """Runs a shell script in a service of a configuration, all of whose images are busybox here; returns CompletedProcess."""
    for each in config["services"].values():
        docker.client("tag", docker.add(docker.images.busybox()), each["image"], check=True)
    path = write(os.path.join(docker.lab.workspace(), "compose.yaml"), yaml.safe_dump(config))
    return docker.site.run(["docker-compose", f"--file={path}", "--project-name=lab", "run", "--rm", "-T", service, "sh", "-c", script],
                           env=docker.environment())
