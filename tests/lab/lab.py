# SPDX-License-Identifier: Apache-2.0
"""The lab: a host to run netgate on, and an internet for it, on one machine and with no link to anything real.

    host (203.0.114.2/30) ── eth0 ══ dual ── inet: router (203.0.114.1), all servers as addresses of its lo
    v4only (203.0.114.6/30) ─ eth0 ══ v4only ┘

The addresses look public because netgate refuses to dial others; only the router is on-link. The namespaces have no
other interface, so no packet can leave the machine. The servers run in this process (two are programs), their state
is at hand for a test's assertions.
"""

import itertools
import os
import shutil
import stat
import subprocess
import tempfile
import textwrap

from . import mirror
from .ca import CA
from .capture import Capture
from .dns import Server as DnsServer
from .loop import Loop, wait_for
from .ns import MountNS, NetNS
from .raw import Raw, Ssh
from .run import MARK, Running
from .user import User
from .web import Web

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

NET4, NET6 = "203.0.114", "2a0f:1ab:0"
# Last number of each server's address: 203.0.114.N and 2a0f:1ab:0:2::N.
HOSTS = {"dns": 53, "web": 80, "h2": 81, "raw": 90, "ssh": 22, "other": 85}
UDP_ECHO = 5000  # the port of "raw" that sends datagrams back
DEAD = 66  # routed to the internet, and nothing there answers
ORPHANS = {"04", "05", "09", "0B"}  # in /proc/net/tcp: FIN_WAIT1, FIN_WAIT2, LAST_ACK, CLOSING
MORE_HOSTS = range(100, 256, 4)  # of these numbers are the networks of the hosts that tests add
METADATA = "169.254.169.254"
TUN = "/dev/net/tun"
PRIVATE = "10.77.0.1"  # of the internet's side, with an echo service

PORTS = {"echo": 7, "sink": 9, "source": 19, "banner": 25, "mute": 4444, "rude": 4445, "postgres": 5432}
WEB_NAMES = ["ok.test", "bad.test", "other.test", "git.test", "pip.test", "apt.test", "example.com", "api.example.com",
             "www.example.com", "a_b.wild.test", "x.wild.test"]


FOLDER = "netgate-lab-"


def _sweep():
    """Removes the folders of labs that were killed."""
    for name in os.listdir(tempfile.gettempdir()):
        owner = name[len(FOLDER):].partition("-")[0]
        if name.startswith(FOLDER) and owner.isdigit() and not os.path.exists(f"/proc/{owner}"):
            shutil.rmtree(os.path.join(tempfile.gettempdir(), name), ignore_errors=True)


def v4(name):
    return f"{NET4}.{HOSTS.get(name, name)}"


def v6(name):
    return f"{NET6}:2::{HOSTS.get(name, name)}"


class Host:
    """A machine on which netgate runs: a network namespace and mount namespaces that differ in resolv.conf."""

    def __init__(self, lab, name, number, ipv6):
        self.lab, self.name, self.number = lab, name, number
        self.net = NetNS()
        self._mounts = {}
        here, there = f"{NET4}.{number + 2}", f"{NET4}.{number + 1}"
        lab.inet.ip(f"link add {name} type veth peer name eth0 netns {self.net.path}",
                    f"link set {name} addrgenmode none", f"addr add {there}/30 dev {name}",
                    f"link set {name} address 02:00:00:00:01:{number + 1:02x} up",
                    f"neigh replace {here} lladdr 02:00:00:00:01:{number + 2:02x} nud permanent dev {name}")
        self.net.ip("link set eth0 addrgenmode none", f"addr add {here}/30 dev eth0",
                    f"link set eth0 address 02:00:00:00:01:{number + 2:02x} up",
                    f"neigh replace {there} lladdr 02:00:00:00:01:{number + 1:02x} nud permanent dev eth0",
                    f"route add default via {there}")
        if ipv6:
            self._add_ipv6(number)
        lab.hosts.append(self)

    def _add_ipv6(self, number):
        here, there = f"{NET6}:1::{number + 2:x}", f"{NET6}:1::{number + 1:x}"
        self.lab.inet.ip(f"addr add {there}/126 dev {self.name} nodad",
                         f"neigh replace {here} lladdr 02:00:00:00:01:{number + 2:02x} nud permanent dev {self.name}")
        self.net.ip(f"addr add {here}/126 dev eth0 nodad",
                    f"neigh replace {there} lladdr 02:00:00:00:01:{number + 1:02x} nud permanent dev eth0",
                    f"route add ::/0 via {there}")

    def mounts(self, resolv=None, tmpfs=None, without=()):
        """The mount namespace with this resolv.conf (the default names the lab's server) and these tmpfs, {target: size}.

        `without`: mount points that are not mounted there.
        """
        resolv = resolv or f"nameserver {v4('dns')}\n"
        key = (resolv, str(tmpfs), tuple(without))
        if key not in self._mounts:
            path = os.path.join(self.lab.folder, f"resolv.conf.{self.name}.{len(self._mounts)}")
            with open(path, "w") as out:
                out.write(resolv)
            self._mounts[key] = MountNS({"/etc/resolv.conf": path} | self.lab.devices, tmpfs, without)
        return self._mounts[key]

    def command(self, argv, user=None, mounts=None, cwd=None):
        """The words that run `argv` on this host; with subprocess's own `cwd` the directory would be one of another mount."""
        command = ["nsenter", f"--net={self.net.path}", f"--mount={(mounts or self.mounts()).path}",
                   f"--wdns={cwd or self.lab.folder}"]
        return command + (user.become if user else []) + list(argv)

    def settle(self):
        """Waits for the end of connections whose process is gone: the kernel still sends their last packets."""
        wait_for(lambda: not self._orphans(), f"the end of what was sent by {self.name}", 120)

    def _orphans(self):
        rows = []
        with self.net.inside():
            for table in ("tcp", "tcp6"):
                with open(f"/proc/thread-self/net/{table}") as lines:
                    rows += [line.split() for line in lines]
        return [row for row in rows if row[3] in ORPHANS and row[9] == "0"]

    def mount_table(self):
        """What is mounted on this host."""
        path = self.mounts().path
        shown = subprocess.run(["nsenter", f"--mount={path}", "cat", "/proc/self/mountinfo"], check=True,
                               capture_output=True, text=True, timeout=60)
        return sorted(line.split()[4] for line in shown.stdout.splitlines())

    def close(self):
        """Takes the cable away at once; the kernel may keep a namespace for a while that nobody is in any more."""
        self.lab.hosts.remove(self)
        self.lab.inet.ip(f"link del {self.name}")
        for mounts in self._mounts.values():
            mounts.close()
        self.net.close()


class Lab:
    def __init__(self, build=None):
        if os.geteuid() != 0:
            raise PermissionError("the lab needs root: it makes network namespaces")
        self._closers = []
        self.hosts = []
        self._counter = itertools.count()
        self.build = build or os.path.join(TOP, os.environ.get("BUILD", "build"))
        _sweep()
        self.folder = tempfile.mkdtemp(prefix=f"{FOLDER}{os.getpid()}-")
        self._closers.append(lambda: shutil.rmtree(self.folder, ignore_errors=True))
        try:
            os.chmod(self.folder, 0o755)
            self._start()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        while self._closers:
            self._closers.pop()()

    def _own(self, thing):
        self._closers.append(thing.close)
        return thing

    def _start(self):
        self.user = self._own(User())
        self.devices = {TUN: self._node("tun", TUN)} if os.path.exists(TUN) else {}
        self.ca = CA(os.path.join(self.build, "lab-ca"))
        self.ca_file = os.path.join(self.folder, "ca.pem")
        shutil.copy(self.ca.ca, self.ca_file)
        os.chmod(self.ca_file, 0o644)
        self.inet = self._own(NetNS())
        numbers = [*HOSTS.values()]
        self.inet.ip(*[f"addr add {NET4}.{number}/32 dev lo" for number in numbers],
                     *[f"addr add {NET6}:2::{number}/128 dev lo nodad" for number in numbers],
                     f"addr add {METADATA}/32 dev lo", f"addr add {PRIVATE}/32 dev lo")
        self.host = self._own(Host(self, "dual", 0, True))
        self.v4only = self._own(Host(self, "v4only", 4, False))
        self._loop = Loop()
        self._closers.append(self._loop.stop)
        self._start_dns()
        self._start_web()
        self._start_raw()

    def _node(self, name, like):
        """A device node as a well-kept machine has it: open to everybody, whatever this one's own says."""
        path = os.path.join(self.folder, name)
        os.mknod(path, 0o666 | stat.S_IFCHR, os.stat(like).st_rdev)
        os.chmod(path, 0o666)
        return path

    def _start_dns(self):
        self.dns = self._own(DnsServer(self._loop))
        self.dns.listen(self.inet, v4("dns"), v6("dns"))
        # A stub resolver on the host's loopback, as systemd-resolved has it.
        self.dns.listen(self.host.net, "127.0.0.53")
        for name in WEB_NAMES:
            self.dns.add(name, a=[v4("web")], aaaa=[v6("web")])
        for name in ("h2", "raw", "ssh", "other"):
            self.dns.add(f"{name}.test", a=[v4(name)], aaaa=[v6(name)])
        self.dns.add("banner.test", a=[v4("raw")])
        self.dns.add("db.test", a=[v4("raw")])
        self.dns.add("meta.test", a=[METADATA])
        self.dns.add("private.test", a=["10.1.2.3"], aaaa=["fd00::1"])
        self.dns.add("loopback.test", a=["127.0.0.1"], aaaa=["::1"])

    def _start_web(self):
        self.web = self._own(Web(self._loop, self.ca))
        self.web.files |= mirror.pip_files() | mirror.apt_files()
        both = [v4("web"), v6("web"), v4("other"), v6("other")]
        self.web.listen(self.inet, *both, port=80)
        self.web.listen(self.inet, *both, port=443, tls=True)
        self.web.listen(self.inet, v4("web"), port=8080)
        self.web.listen(self.inet, v4("web"), port=8443, tls=True)
        self.metadata = self.new_web()
        self.metadata.listen(self.inet, METADATA, port=80)
        self.metadata.files["/latest/meta-data/"] = b"iam/security-credentials/\n"

    def new_web(self):
        """Another web server, with a memory of its own."""
        return self._own(Web(self._loop, self.ca))

    def _start_raw(self):
        self.raw = self._own(Raw(self._loop))
        for service, port in PORTS.items():
            self.raw.listen(self.inet, getattr(self.raw, service), v4("raw"), v6("raw"), port=port)
        self.raw.listen(self.inet, self.raw.echo, PRIVATE, port=PORTS["echo"])
        self.raw.listen_udp(self.inet, v4("raw"), v6("raw"), port=UDP_ECHO)

    def add_host(self, name):
        """One more dual-stack host for a test that changes a host; the caller closes it. `name`: 15 characters at most."""
        taken = {host.number for host in self.hosts}
        return Host(self, name, next(number for number in MORE_HOSTS if number not in taken), True)

    def start_ssh(self):
        """An SSH server at ssh.test; made when first asked for."""
        if not hasattr(self, "ssh"):
            folder = os.path.join(self.folder, "ssh")
            os.mkdir(folder)
            self.ssh = self._own(Ssh(folder, self.user))
            self.ssh.listen(self.inet, v4("ssh"))
        return self.ssh

    def start_h2(self):
        """An HTTP/2 server at h2.test; made when first asked for."""
        if not hasattr(self, "_h2"):
            script = os.path.join(os.path.dirname(__file__), "h2.js")
            self._h2 = subprocess.Popen(
                self.inet.command("setpriv", "--pdeathsig", "KILL", "node", script, self.ca.cert, self.ca.key, v4("h2"),
                                  v6("h2")), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
            self._closers.append(self._end_h2)
            if self._h2.stdout.readline() != b"ready\n":
                raise RuntimeError("the HTTP/2 server did not start")

    def _end_h2(self):
        self._h2.kill()
        self._h2.wait()
        self._h2.stdout.close()

    def start_git(self):
        """A bare repository that can be cloned from and pushed to: https://git.test/git/repo.git."""
        if self.web.git_root:
            return
        root = os.path.join(self.folder, "git")
        work, bare = os.path.join(root, "work"), os.path.join(root, "repo.git")
        os.makedirs(work)
        env = self.environment() | {"GIT_CONFIG_GLOBAL": "/dev/null", "HOME": root}
        for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "first"],
                        ["clone", "-q", "--bare", work, bare]):
            if command[0] == "add":
                for name in ("README", "data"):
                    with open(os.path.join(work, name), "wb") as out:
                        out.write(b"lab\n" if name == "README" else os.urandom(300_000))
            subprocess.run(["git", "-c", "user.name=lab", "-c", "user.email=lab@ok.test", "-C", work, *command],
                           check=True, env=env, capture_output=True, timeout=60)
        subprocess.run(["git", "-C", bare, "config", "http.receivepack", "true"], check=True, env=env, timeout=60)
        self.web.git_root = root

    def reset(self):
        """Forgets what the servers saw."""
        for seen in (self.dns.queries, self.web.requests, self.web.hellos, self.metadata.requests, self.raw.seen):
            seen.clear()

    def capture(self, host=None):
        """Everything that `host` (the dual-stack one by default) sends while the returned context lasts, and nothing of what was before."""
        host = host or self.host
        host.settle()
        return Capture(self.inet, host.name)

    # Running things

    def programs(self):
        """A folder that everyone can read with this build's netgate and sandbox-net."""
        folder = os.path.join(self.folder, "bin")
        for name in ("netgate", "sandbox-net"):
            if not os.path.exists(os.path.join(folder, name)):
                os.makedirs(folder, exist_ok=True)
                shutil.copy(os.path.join(self.build, name), folder)
        return folder

    def workspace(self, user=None):
        """A fresh folder that belongs to `user` (root when None), with the lab's CA and inside.py in it."""
        path = os.path.join(self.folder, f"ws{next(self._counter)}")
        os.mkdir(path)
        shutil.copy(self.ca_file, path)
        shutil.copy(os.path.join(os.path.dirname(__file__), "inside.py"), path)
        if user:
            os.chown(path, user.uid, user.gid)
        return path

    def environment(self, workspace=None, user=None):
        """A small environment in which every client trusts the lab's CA."""
        ca = os.path.join(workspace or self.folder, "ca.pem")
        return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "HOME": user.home if user else "/root", "LANG": "C.UTF-8", "USER": user.name if user else "root",
                "LOGNAME": user.name if user else "root", "SSL_CERT_FILE": ca, "CURL_CA_BUNDLE": ca,
                "GIT_SSL_CAINFO": ca, "NODE_EXTRA_CA_CERTS": ca, "PIP_CERT": ca, "REQUESTS_CA_BUNDLE": ca,
                "PYTHONDONTWRITEBYTECODE": "1"}

    def start(self, args, command, user=None, env=None, host=None, workspace=None, resolv=None, mounts=None,
              log=True, stdin=None, stdout=subprocess.PIPE, stderr=subprocess.PIPE, wrap=(), program=None, pass_fds=()):
        """Starts `netgate ARGS -- COMMAND` and returns it as Running.

        `log`: True for a file of its own (`--log` is added), a path, or None for no option. `user`: None is root.
        `mounts`: another mount namespace of the host than that for `resolv`. `wrap`: words before netgate, such as a
        program that changes limits. `program`: another netgate than this build's. stdin: None gives /dev/null.
        """
        workspace = workspace or self.workspace(user)
        mark = f"{os.getpid()}-{next(self._counter)}"
        environment = self.environment(workspace, user) | {"XDG_STATE_HOME": self.state(user), MARK: mark} | (env or {})
        if log is True:
            log = os.path.join(self.state(user), f"log{mark}.jsonl")
        argv = [*wrap, program or os.path.join(self.programs(), "netgate"), *(["--log", log] if log else []), *args]
        if command is not None:
            argv += ["--", *command]
        host = host or self.host
        process = subprocess.Popen(host.command(argv, user, mounts or host.mounts(resolv), workspace), env=environment,
                                   stdin=subprocess.DEVNULL if stdin is None else stdin, stdout=stdout, stderr=stderr,
                                   pass_fds=pass_fds)
        return Running(process, log, mark, argv)

    def netgate(self, args, command, stdin=None, **kwargs):
        """start() and wait for its end; `stdin`: bytes for the command."""
        with self.start(args, command, stdin=None if stdin is None else subprocess.PIPE, **kwargs) as running:
            return running.finish(stdin)

    @staticmethod
    def script(text, *args):
        """The command that runs a python script; it begins with `from inside import *`."""
        return ["/usr/bin/python3", "-c", "from inside import *\n" + textwrap.dedent(text), *args]

    def python(self, args, text, *script_args, **kwargs):
        """netgate() with a script() as the command."""
        return self.netgate(args, self.script(text, *script_args), **kwargs)

    def on_host(self, command, user=None, host=None, **kwargs):
        """Runs a command on the host without netgate: what the lab itself lets through."""
        kwargs = {"timeout": 120, "errors": "replace"} | kwargs
        return subprocess.run((host or self.host).command(command, user), capture_output=True, text=True,
                              env=self.environment(None, user), **kwargs)

    def state(self, user=None):
        """The user's XDG_STATE_HOME, where the logs go too."""
        path = os.path.join(self.folder, f"state-{user.name if user else 'root'}")
        if not os.path.exists(path):
            os.mkdir(path, 0o700)
            if user:
                os.chown(path, user.uid, user.gid)
        return path
