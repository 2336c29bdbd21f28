# SPDX-License-Identifier: Apache-2.0
"""An ordinary user, made for a run of the lab and removed after it; leftovers of a killed run go with the next one."""

import itertools
import os
import pwd
import subprocess

PREFIX = "ngl"
_numbers = itertools.count(1)  # of this process's users


def _remove(name):
    subprocess.run(["userdel", "--force", "--remove", name], capture_output=True, timeout=60)


def _sweep():
    for entry in pwd.getpwall():
        owner = entry.pw_name[len(PREFIX):].partition("-")[0]
        if entry.pw_name.startswith(PREFIX) and owner.isdigit() and not os.path.exists(f"/proc/{owner}"):
            _remove(entry.pw_name)


class User:
    """`name`, `uid`, `gid`, `home`. The password field is "*": no password fits, but a key may log in."""

    def __init__(self):
        _sweep()
        self.name = f"{PREFIX}{os.getpid()}-{next(_numbers)}"
        subprocess.run(["useradd", "--create-home", "--user-group", "--shell", "/bin/sh", "--password", "*", self.name],
                       check=True, capture_output=True, timeout=60)
        entry = pwd.getpwnam(self.name)
        self.uid, self.gid, self.home = entry.pw_uid, entry.pw_gid, entry.pw_dir

    @property
    def become(self):
        """The words before a command that root runs as this user."""
        return ["setpriv", f"--reuid={self.uid}", f"--regid={self.gid}", "--init-groups", "--"]

    def close(self):
        _remove(self.name)
