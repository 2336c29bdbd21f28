# SPDX-License-Identifier: Apache-2.0
"""python3 -m lab [--user] [COMMAND...]: runs a command (a shell by default) on the lab's host, for trying things by hand."""

import subprocess
import sys

from . import Lab


def main():
    args = sys.argv[1:]
    with Lab() as lab:
        user = lab.user if args[:1] == ["--user"] else None
        workspace = lab.workspace(user)
        lab.start_h2()
        lab.start_git()
        env = lab.environment(workspace, user)
        env["PATH"] = f"{lab.programs()}:{env['PATH']}"
        command = args[1 if user else 0 :] or ["bash", "--norc"]
        return subprocess.call(lab.host.command(command, user, cwd=workspace), env=env)


sys.exit(main())
