# SPDX-License-Identifier: Apache-2.0
"""A host of the lab for one runtime: what the runtime leaves there is gone with it, also when it or the lab was killed.

Namespaces go with their last process. Its processes, those of containers too, stay below one cgroup and end with it; the cgroups of
labs that were killed go with the next site. The paths that a runtime has built in lie in a /run, a /var/lib and an /etc/containers that only this
site's mount namespace has.

A machine in cgroup's hybrid mode (v1, and v2 with almost nothing in it) is shown to runtimes as one with v1: crun
refuses the hybrid.
"""

import os
import subprocess
import tempfile

from ..loop import wait_for

PREFIX = "netgate-lab-"
HYBRID = "/sys/fs/cgroup/unified"
PATIENCE = 120  # seconds; only for what hangs
PRIVATE = {"/run": "64m", "/var/lib": "64m", "/etc/containers": "1m"}

ENTER = 'echo 0 >"$0/cgroup.procs" && exec "$@"'


def _hierarchies():
    """Where cgroup hierarchies are mounted; first the one by which processes are found."""
    found = {}
    with open("/proc/self/mountinfo") as mounts:
        for line in mounts:
            before, _, after = line.partition(" - ")
            kind, _, options = after.split()[:3]
            if kind in ("cgroup", "cgroup2"):
                found[before.split()[4]] = "" if kind == "cgroup2" else options.split(",")
    found.pop(HYBRID, None)
    return sorted(found, key=lambda path: "pids" not in found[path])


def _tree(top):
    """A folder of a cgroup hierarchy and those below it, the deepest first."""
    return [folder for folder, _, _ in os.walk(top, topdown=False)]


def processes_below(top):
    found = []
    for folder in _tree(top):
        try:
            with open(os.path.join(folder, "cgroup.procs")) as procs:
                found += [int(line) for line in procs]
        except FileNotFoundError:
            pass
    return found


def _kill_below(top):
    """Ends every process below; True when there is none (any more)."""
    pids = processes_below(top)
    for pid in pids:
        try:
            os.kill(pid, 9)
        except ProcessLookupError:
            pass
    return not pids


def _remove(top):
    """True when the cgroup is gone: one whose last process is just ending is busy."""
    for folder in _tree(top):
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            pass
        except OSError:
            return False
    return True


class Cgroup:
    """`daemons`: the folder of the cgroup for daemons and clients; `boxes`: the name of the one below which containers belong."""

    _count = 0

    def __init__(self):
        self._mounts = _hierarchies()
        self._sweep()
        Cgroup._count += 1
        self.number = Cgroup._count
        self.name = f"{PREFIX}{os.getpid()}-{self.number}"
        self.boxes = f"/{self.name}/boxes"
        self.daemons = os.path.join(self._mounts[0], self.name, "daemons")
        os.makedirs(self.daemons)

    def _sweep(self):
        for mount in self._mounts:
            for name in os.listdir(mount):
                owner = name[len(PREFIX):].partition("-")[0]
                if name.startswith(PREFIX) and owner.isdigit() and not os.path.exists(f"/proc/{owner}"):
                    self._end(name)

    def _end(self, name):
        wait_for(lambda: _kill_below(os.path.join(self._mounts[0], name)), f"the end of what is in cgroup {name}")
        for mount in self._mounts:
            wait_for(lambda top=os.path.join(mount, name): _remove(top), f"the end of cgroup {name} in {mount}")

    def processes(self):
        return processes_below(os.path.join(self._mounts[0], self.name))

    def close(self):
        self._end(self.name)


class Site:
    """`host` and `mounts` (give both to lab.netgate() for a netgate that runs beside the runtime), `folder`, `cgroup`.

    `name`: 12 characters at most.
    """

    def __init__(self, lab, name):
        self.lab = lab
        self.cgroup = Cgroup()
        try:
            self.host = lab.add_host(f"{name}{self.cgroup.number}")
        except BaseException:
            self.cgroup.close()
            raise
        self.mounts = self.host.mounts(tmpfs=PRIVATE, without=[HYBRID] if os.path.ismount(HYBRID) else [])
        self.folder = tempfile.mkdtemp(prefix=f"{name}-", dir=lab.folder)
        os.chmod(self.folder, 0o755)

    def command(self, argv, user=None):
        """The words that run `argv` on the site's host, in its cgroup."""
        words = ["sh", "-c", ENTER, self.cgroup.daemons, *(user.become if user else []), *argv]
        return self.host.command(words, mounts=self.mounts, cwd=self.folder)

    def environment(self, user=None, extra=None):
        return self.lab.environment(None, user) | (extra or {})

    def run(self, argv, user=None, env=None, check=False, stdin=None, **kwargs):
        """Runs a command there to its end. `stdin`: a file or a descriptor. With `check`, a failure raises with what it said."""
        kwargs = {"timeout": PATIENCE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "errors": "replace"} | kwargs
        if "input" not in kwargs:
            kwargs["stdin"] = subprocess.DEVNULL if stdin is None else stdin
        done = subprocess.run(self.command(argv, user), env=self.environment(user, env), **kwargs)
        if check and done.returncode != 0:
            raise RuntimeError(f"{' '.join(argv)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def start(self, argv, user=None, env=None, **kwargs):
        """Starts a daemon that ends with this process at the latest."""
        return subprocess.Popen(self.command(["setpriv", "--pdeathsig", "KILL", *argv], user), stdin=subprocess.DEVNULL,
                                env=self.environment(user, env), **kwargs)

    def close(self):
        self.cgroup.close()
        self.host.close()
