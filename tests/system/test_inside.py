# SPDX-License-Identifier: Apache-2.0
"""netgate inside a container of docker's: with the options that the README names it works, with fewer it says which are missing."""

import os
import re

import pytest

from lab.lab import TOP

CAPABILITIES, SECCOMP = ["--cap-add=SYS_ADMIN", "--cap-add=NET_ADMIN"], "--security-opt=seccomp=unconfined"


def named_in_readme():
    with open(os.path.join(TOP, "README.md"), encoding="utf-8") as readme:
        found = re.findall(r"`((?:--cap-add|--security-opt) [^`]*)`", readme.read())
    assert len(found) == 2, found
    return [words.split() for words in found]


def run(lab, runtimes, images, options):
    # This machine's programs and libraries; an image of netgate's would have its own.
    mounts = [f"--volume={path}:{path}:ro" for path in ("/usr", lab.programs())]
    return runtimes["docker"].run([f"{lab.programs()}/netgate", "--allow", "ok.test", "--", "curl", "-sS", "http://ok.test/hello"],
                                  image=images.debian(), network="host",
                                  options=[*mounts, "--tmpfs=/tmp", "--workdir=/srv", "--env=HOME=/tmp", *options])


@pytest.mark.parametrize("which,user", [(0, "0"), (1, "0"), (1, "1000")])
def test_options_of_the_readme(lab, runtimes, images, which, user):
    done = run(lab, runtimes, images, [*named_in_readme()[which], f"--user={user}"])
    assert (done.returncode, done.stdout) == (0, "hello from ok.test\n"), done


@pytest.mark.parametrize("options,missing", [
    ([], "seccomp=unconfined"), (CAPABILITIES, "seccomp=unconfined"), ([SECCOMP], "systempaths=unconfined"),
    ([*CAPABILITIES, SECCOMP, "--user=1000"], "systempaths=unconfined"),
])
def test_what_is_missing_is_said(lab, runtimes, images, options, missing):
    done = run(lab, runtimes, images, ["--security-opt=apparmor=unconfined", *options])
    assert done.returncode == 125 and f"--security-opt {missing}" in done.stderr, done
