# SPDX-License-Identifier: Apache-2.0
"""The launcher by itself: what a command can and can't reach, and how it starts and ends.

The proxy is fake_proxy.c, which lets nothing through, so that only the sandbox is tried here.
Three callers: root; an ordinary user; root under sudo, for that user.
"""

import ctypes
import json
import os
import pathlib
import pty
import select
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import textwrap
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
UID = 23456  # nobody's
PYTHON = "/usr/bin/python3"
CALLERS = ["root", "user", "sudo"]

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be all three callers")


def wait_for(what, seconds=120):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return
        time.sleep(0.01)
    raise AssertionError("waited in vain")


class Result:
    def __init__(self, rc, out, err, reports):
        self.rc, self.out, self.err, self.reports = rc, out, err, reports

    def report(self, kind):
        """The texts of the reports of one kind."""
        return [text for name, _, text in self.reports if name == kind]

    def __repr__(self):
        return f"rc={self.rc}\nout={self.out}\nerr={self.err}\nreports={self.reports}"


class World:
    """A directory tree of the host's, outside of /tmp: a workspace, a home, and what should be out of reach."""

    def __init__(self, build):
        self.build = build
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="netgate-seal-", dir="/var/lib"))
        self.base.chmod(0o755)
        self.home = self.base / "people" / "ann"
        self.ws = self.home / "project"
        self.outside = self.base / "outside"
        for path in (self.ws, self.outside):
            path.mkdir(parents=True)
        for path in (self.home, self.ws, self.outside):
            os.chown(path, UID, UID)
            path.chmod(0o777)  # root without capabilities is just another user
        (self.base / "readable").write_text("readable")

    def env(self, caller, **more):
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": str(self.home)}
        if caller == "sudo":
            env.update(SUDO_UID=str(UID), SUDO_GID=str(UID), SUDO_USER="ann")
        env.update(more)
        return env

    def argv(self, caller, args, command, fake=()):
        self.reports = tempfile.mktemp(prefix="reports-", dir=self.base)
        pathlib.Path(self.reports).touch()
        os.chown(self.reports, UID, UID)
        prefix = ["setpriv", "--reuid", str(UID), "--regid", str(UID), "--clear-groups"] if caller == "user" else []
        return [str(a) for a in (*prefix, self.build / "fake_proxy", self.reports, *fake, self.build / "sandbox-net", *args, "--", *command)]

    def read_reports(self):
        lines = pathlib.Path(self.reports).read_text().splitlines()
        return [tuple(line.split(" ", 2)) for line in lines]

    def start(self, caller, command, args=(), fake=(), env=None, inherit=None, **options):
        options.setdefault("cwd", self.ws)
        if inherit:  # {number in the child: descriptor here}
            options["pass_fds"] = tuple(inherit)
            options["preexec_fn"] = lambda: [os.dup2(fd, number) for number, fd in inherit.items()]
        for name in ("stdin", "stdout", "stderr"):
            options.setdefault(name, subprocess.PIPE)
        return subprocess.Popen(self.argv(caller, args, command, fake), env=self.env(caller, **(env or {})), **options)

    def run(self, caller, command, args=(), fake=(), env=None, text="", **options):
        process = self.start(caller, command, args, fake, env, **options)
        out, err = process.communicate(text.encode() if process.stdin else None, timeout=60)
        return Result(process.returncode, (out or b"").decode(errors="replace"), (err or b"").decode(errors="replace"), self.read_reports())

    def python(self, caller, code, *argv, args=(), **options):
        """Runs Python inside; `show(...)` there prints what comes back as a list."""
        head = "import json, os, sys, socket, errno, ctypes, subprocess\ndef show(x): print(json.dumps(x), flush=True)\n" \
               "def attempt(f):\n    try:\n        return f() or 'ok'\n    except OSError as e:\n        return errno.errorcode[e.errno]\n"
        result = self.run(caller, [PYTHON, "-c", head + textwrap.dedent(code), *map(str, argv)], args, **options)
        assert result.rc == 0, result
        result.shown = [json.loads(line) for line in result.out.splitlines()]
        return result

    def launcher(self):
        wait_for(lambda: any(r[0] == "LAUNCHER" for r in self.read_reports()))
        return int(next(r[1] for r in self.read_reports() if r[0] == "LAUNCHER"))

    def command(self):
        wait_for(lambda: any(r[0] == "STARTED" for r in self.read_reports()))
        return int(next(r[1] for r in self.read_reports() if r[0] == "STARTED"))


@pytest.fixture(scope="session")
def build_dir(tmp_path_factory):
    """Both programs where every caller can execute them."""
    built = pathlib.Path(os.environ.get("BUILD", "build"))
    built = built if built.is_absolute() else ROOT / built
    place = pathlib.Path(tempfile.mkdtemp(prefix="netgate-bin-", dir="/var/lib"))
    place.chmod(0o755)
    shutil.copy(built / "sandbox-net", place)
    subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-D_GNU_SOURCE", f"-I{ROOT}", "-O1", "-o", place / "fake_proxy",
                    ROOT / "tests/system/fake_proxy.c", ROOT / "base/fdpass.c"], check=True)
    yield place
    shutil.rmtree(place)


@pytest.fixture
def world(build_dir):
    world = World(build_dir)
    yield world
    shutil.rmtree(world.base)


@pytest.fixture(params=CALLERS)
def caller(request):
    return request.param


@pytest.fixture
def mounts(world):
    """Runs the following in a mount namespace of the test's own, so that the host's table can be changed."""
    libc = ctypes.CDLL(None, use_errno=True)
    old = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    cwd = os.open(".", os.O_RDONLY)
    assert libc.unshare(0x20000) == 0 and libc.mount(b"none", b"/", None, 1 << 14 | 1 << 18, None) == 0

    def mount(*args):
        subprocess.run(["mount", *map(str, args)], check=True)

    yield mount
    assert libc.setns(old, 0x20000) == 0
    os.fchdir(cwd)
    os.close(old)
    os.close(cwd)


# --- who, where, with what ---

def test_who_and_where(world, caller):
    result = world.python(caller, """
        status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
        show([os.getuid(), os.getgid(), os.getcwd(), os.environ["PWD"], socket.gethostname()])
        show([status[k].strip() for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")])
        show(sorted(int(p) for p in os.listdir("/proc") if p.isdigit()))
        show(open("/proc/self/uid_map").read().split())
        import resource
        show(resource.getrlimit(resource.RLIMIT_CORE))
    """)
    uid = 0 if caller == "root" else UID
    assert result.shown[0] == [uid, uid, str(world.ws), str(world.ws), "sandbox"]
    assert result.shown[1] == ["0000000000000000"] * 5 + ["1", "2"]
    assert result.shown[2] == [1, 2]
    assert [result.shown[3][0], result.shown[3][2]] == [str(uid), "1"]
    assert result.shown[4] == [1, 1]
    assert [r[0] for r in result.reports] == ["LAUNCHER", "STARTED", "ENDED"]


def test_user_option(world):
    result = world.python("root", "show([os.getuid(), os.getgroups(), os.environ.get('HOME'), os.environ.get('USER')])", args=["--user", "nobody", "--workspace", world.outside])
    assert result.shown == [[65534, [65534], "/nonexistent", "nobody"]]
    assert world.python("root", "show(os.getuid())", args=["--user", UID]).shown == [UID]
    result = world.run("user", ["true"], args=["--user", "nobody"])
    assert result.rc == 125 and "needs root" in result.report("FAILED")[0]
    result = world.run("root", ["true"], args=["--user", "no-such-user"])
    assert result.rc == 125 and "no such user" in result.report("FAILED")[0]


def test_environment(world, caller):
    env = {"SSH_AUTH_SOCK": "/tmp/agent", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/x", "XDG_RUNTIME_DIR": "/run/user/1", "http_proxy": "http://x",
           "HTTPS_PROXY": "http://x", "no_proxy": "*", "DOCKER_HOST": "x", "KEPT": "1"}
    shown = world.python(caller, "show(dict(os.environ))", env=env).shown[0]
    assert shown["KEPT"] == "1" and not (set(env) - {"KEPT"}) & set(shown) and not any(k.startswith("SUDO_") for k in shown)
    if caller != "sudo":
        assert shown["HOME"] == str(world.home)


@pytest.mark.parametrize("command,status", [
    (["true"], 0), (["sh", "-c", "exit 42"], 42), (["sh", "-c", "kill -9 $$"], 137), (["no-such-program"], 127), (["/nonexistent/x"], 127),
    (["./notes.txt"], 126), (["/usr"], 126), (["./tool"], 7), (["sub/../tool"], 7),
])
def test_exit_status(world, caller, command, status):
    (world.ws / "notes.txt").write_text("plain")
    (world.ws / "sub").mkdir()
    (world.ws / "tool").write_text("#!/bin/sh\nexit 7\n")
    (world.ws / "tool").chmod(0o755)
    result = world.run(caller, command)
    assert result.rc == status, result
    if status in (126, 127):
        assert result.report("EXEC")[0].startswith(command[0]), result
    assert [r[0] for r in result.reports][-1] == "ENDED"


def test_command_starts_where_it_was_called(world, caller):
    (world.ws / "a" / "b").mkdir(parents=True)
    os.chown(world.ws / "a" / "b", UID, UID)
    result = world.run(caller, ["pwd"], args=["--workspace", world.ws], cwd=world.ws / "a" / "b")
    assert result.out == f"{world.ws}/a/b\n"
    result = world.run(caller, ["pwd"], args=["--workspace", world.ws / "a"], cwd=world.outside)
    assert result.out == f"{world.ws}/a\n"
    (world.base / "link").symlink_to(world.ws)
    assert world.run(caller, ["pwd"], args=["--workspace", world.base / "link"], cwd=world.outside).out == f"{world.ws}\n"


def test_writes_reach_the_workspace_only(world, caller):
    writable = [world.ws, "/tmp", "/var/tmp", "/dev/shm"] + ([world.home] if caller != "sudo" else [])
    read_only = ["/", "/usr", "/etc", "/var", world.base, world.outside, "/home", "/proc/sys/kernel/hostname", "/sys", "/boot"]
    result = world.python(caller, """
        def write(path):
            with open(path if os.path.isfile(path) else path + "/netgate-test", "w") as f:
                f.write("x")
        show([attempt(lambda: write(p)) for p in sys.argv[1:]])
    """, *writable, *read_only)
    assert result.shown[0][:len(writable)] == ["ok"] * len(writable), result
    assert set(result.shown[0][len(writable):]) <= {"EROFS", "EACCES", "EPERM"}, result
    for path in writable + read_only:
        assert (pathlib.Path(path) / "netgate-test").exists() == (path == world.ws)
    assert (world.ws / "netgate-test").stat().st_uid == (0 if caller == "root" else UID)


def test_descriptors(world, caller):
    """Only 0, 1 and 2; a socket among them is noted, a directory refused."""
    a, b = socket.socketpair()
    directory = os.open(world.outside, os.O_RDONLY)
    extra = os.open(world.base / "readable", os.O_RDONLY)
    fds = {7: a.fileno(), 8: directory, 9: extra}
    result = world.python(caller, """
        show(sorted(os.listdir("/proc/self/fd")))
        show(attempt(lambda: os.fstat(7)))
        show(attempt(lambda: os.readlink("/proc/1/fd/0")))
    """, inherit=fds)
    assert result.shown == [["0", "1", "2", "3"], "EBADF", "EACCES"]
    noted = world.run(caller, ["true"], stdout=b)
    assert noted.rc == 0 and "stdout is a socket" in noted.report("NOTE")[0]
    refused = world.run(caller, ["true"], stdin=directory)
    assert refused.rc == 125 and "stdin is a directory" in refused.report("FAILED")[0]
    for fd in (directory, extra):
        os.close(fd)


# --- the file system ---

def test_homes_hold_what_was_asked_for(world, caller):
    (world.home / ".ssh").mkdir()
    (world.home / ".ssh" / "id").write_text("key")
    for name in ("bin", "docs", "tools/v1/bin"):
        (world.home / name).mkdir(parents=True)
        (world.home / name / "file").write_text(name)
    (world.home / "current").symlink_to("tools/v1")
    subprocess.run(["chown", "-R", f"{UID}:{UID}", world.home], check=True)
    if caller == "sudo":
        pytest.skip("this user has no home in the user database")
    path = f"{world.home}/current/bin:{world.home}/bin:/usr/bin:/bin"
    result = world.python(caller, """
        home = os.environ["HOME"]
        show(sorted(os.listdir(home)))
        show([attempt(lambda: open(home + p).close()) for p in ("/.ssh/id", "/bin/file", "/current/bin/file", "/docs/file")])
        show([attempt(lambda: open(home + p + "/new", "w").close()) for p in ("/bin", "/docs")])
        show([os.listdir("/home"), [f for f in os.listdir("/root") if f != home.split("/")[1]]])
    """, args=["--read", world.home / "docs"], env={"PATH": path})
    assert result.shown[0] == ["bin", "current", "docs", "project", "tools"]
    assert result.shown[1] == ["ENOENT", "ok", "ok", "ok"]
    assert result.shown[2] == ["EROFS", "EROFS"]
    assert result.shown[3] == [[], []]


def make_tree(top, *paths):
    for path in paths:
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(path)


TREES = {"venv": "venv/bin", "pyenv": "pyenv/shims", "pyenv itself": "pyenv/bin", "node": "nvm/v1/bin"}
BARE = {"no tree": "plain/bin", "another directory": "venv/tools", ".local": ".local/bin", ".cargo": ".cargo/bin", ".config": ".config/bin",
        "the home": "bin"}


@pytest.mark.parametrize("entry", [*TREES, *BARE])
def test_trees_of_tools(world, caller, entry):
    """A directory of PATH brings along what its tools need around them, where a marker says what they are, and nothing else."""
    if caller == "sudo":
        pytest.skip("this user has no home in the user database")
    folder = TREES.get(entry) or BARE[entry]
    top = pathlib.Path(folder).parent
    make_tree(world.home, "venv/pyvenv.cfg", "pyenv/libexec/pyenv", "nvm/v1/lib/node_modules/npm", "pyvenv.cfg", ".local/lib/node_modules/x",
              ".cargo/pyvenv.cfg", ".config/pyvenv.cfg", "plain/lib/other", f"{folder}/tool", f"{top}/around/file")
    (world.home / "current").symlink_to(top)
    subprocess.run(["chown", "-R", f"{UID}:{UID}", world.home], check=True)
    result = world.python(caller, """
        top = os.path.join(os.environ["HOME"], sys.argv[1])
        show([attempt(lambda: open(p).close()) for p in (os.path.join(top, "around/file"), sys.argv[2] + "/tool")])
        show([attempt(lambda: open(os.path.join(top, p), "w").close()) for p in ("new", "around/file")])
    """, top, f"{world.home}/current/{pathlib.Path(folder).name}", env={"PATH": f"{world.home}/current/{pathlib.Path(folder).name}:/usr/bin:/bin"})
    assert result.shown[0] == ["ok" if entry in TREES else "ENOENT", "ok"], result
    if entry in TREES:
        assert result.shown[1] == ["EROFS", "EROFS"], result


@pytest.mark.parametrize("name", ["ws", "."])
def test_workspace_that_is_only_read(world, caller, name):
    (world.ws / "f").write_text("f")
    result = world.python(caller, "show([os.getcwd(), attempt(lambda: open('f').close()), attempt(lambda: open('f', 'w')), attempt(lambda: os.mkdir('d'))])",
                          args=["--read", world.ws if name == "ws" else name])
    assert result.shown == [[str(world.ws), "ok", "EROFS", "EROFS"]], result
    assert (world.ws / "f").read_text() == "f"


def test_read_above_the_workspace(world, caller):
    """Whether the workspace is meant too must be said."""
    project = world.outside / "a" / "b"
    project.mkdir(parents=True)
    for path in (project, project / "..", project / "../.."):
        path.chmod(0o777)
    code = "show([attempt(lambda: open(p + '/new', 'w').close()) for p in ('.', '..')])"
    above = ["--read", world.outside]
    result = world.run(caller, ["true"], args=above, cwd=project)
    assert result.rc == 125, result
    assert f"--read {project}" in result.report("FAILED")[0] and f"--write {project}" in result.report("FAILED")[0], result
    assert world.python(caller, code, args=[*above, "--read", "."], cwd=project).shown == [["EROFS", "EROFS"]]
    assert world.python(caller, code, args=[*above, "--write", "."], cwd=project).shown == [["ok", "EROFS"]]


def test_removed_directory(world, caller):
    gone = world.ws / "gone"
    gone.mkdir()
    result = world.run(caller, ["true"], fake=(), preexec_fn=lambda: (os.chdir(gone), gone.rmdir()), cwd=None)
    assert result.rc == 125 and result.report("FAILED") == ["the current directory was removed; change to another one"], result


def test_empty_path(world, caller):
    result = world.run(caller, ["true"], args=["--read", ""])
    assert (result.rc, result.err, result.report("FAILED")) == (125, "", ['--read: "": not a path']), result


@pytest.mark.parametrize("command,why", [
    ("no-such-program", "command not found in the sandbox's PATH"),
    ("echo hi", "command not found in the sandbox's PATH (it is one word; for a shell's line, sh -c '...')"),
    ("./nothing", "no such file in the sandbox"), ("./script", "its interpreter /opt/no/such-python is not there"),
    ("./odd", "the file is there, but not the loader that it names"), ("./dir/x", "no such file in the sandbox"), ("in-path", "its interpreter nothing is not there"),
])
def test_not_found_says_what(world, caller, command, why):
    make_tree(world.ws, "script", "odd", "dir/y", "in-path")
    (world.ws / "script").write_text("#! /opt/no/such-python -u\n")
    (world.ws / "odd").write_text("#!/opt/\x1b[31m\n")
    (world.ws / "in-path").write_text("#!nothing\n")
    for name in ("script", "odd", "in-path"):
        (world.ws / name).chmod(0o755)
    result = world.run(caller, [command], env={"PATH": f"/usr/bin:{world.ws}:/bin"})
    assert (result.rc, result.report("EXEC")) == (127, [f"{command}: {why}"]), result


def test_read_and_write(world, caller):
    (world.outside / "f").write_text("f")
    os.chown(world.outside / "f", UID, UID)
    (world.base / "more").mkdir()
    (world.base / "more").chmod(0o777)
    result = world.python(caller, "show([attempt(lambda: open(p, 'a').close()) for p in sys.argv[1:]])", world.outside / "f", world.base / "more" / "new",
                          args=["--write", world.base / "more", "--read", world.outside])
    assert result.shown == [["EROFS", "ok"]] and (world.base / "more" / "new").exists()
    result = world.python(caller, "show([attempt(lambda: open(p, 'a').close()) for p in sys.argv[1:]])", world.outside / "f", world.outside / "new",
                          args=["--write", world.outside / "f"])
    assert result.shown == [["EACCES" if caller == "root" else "ok", "EROFS"]]
    for args, text in ((["--read", "/nonexistent"], "No such file"), (["--write", "/"], "--fs host"), (["--read", "/proc/1"], "always the sandbox's own"),
                       (["--read", "/dev/null"], "always the sandbox's own")):
        result = world.run(caller, ["true"], args=args)
        assert result.rc == 125 and text in result.report("FAILED")[0], result


def test_secrets_of_root(world, caller):
    secret = world.base / "secret"
    secret.mkdir(mode=0o700)
    (secret / "inner").write_text("inner")
    (world.base / "key").write_text("key")
    (world.base / "key").chmod(0o600)
    paths = ["/etc/shadow", "/etc/gshadow", "/etc/ssl/private", world.base / "key", secret / "inner"]
    result = world.python(caller, "show([attempt(lambda: (os.listdir if os.path.isdir(p) else open)(p) and None) for p in sys.argv[1:]])", *paths)
    assert set(result.shown[0]) <= {"EACCES", "ENOENT"}, result
    if caller == "root":  # asked for, it is there
        result = world.python(caller, "show([open(p).read() for p in sys.argv[1:]])", world.base / "key", secret / "inner",
                              args=["--read", world.base / "key", "--read", secret])
        assert result.shown == [["key", "inner"]]


@pytest.mark.parametrize("where", ["/", "home", "above", "/tmp", "/etc", "/usr/share"])
def test_too_wide_a_workspace(world, where):
    path = {"home": str(world.home), "above": str(world.base)}.get(where, where)
    for args, cwd in (([], path), (["--workspace", path], world.ws)):
        result = world.run("user", ["true"], args=args, cwd=cwd)
        assert result.rc == 125 and f"--write {path}" in result.report("FAILED")[0], result
    if where in ("home", "above"):
        result = world.run("user", ["sh", "-c", "pwd; cat readable; touch made"], args=["--write", path], cwd=path)
        assert result.out.startswith(path + "\n") and ((world.home / "made").exists() or where == "above"), result


def test_hide(world, caller):
    log = world.ws / "log"
    log.mkdir()
    (log / "audit").write_text("audit")
    (world.ws / "one").write_text("one")
    (world.outside / "two").write_text("two")
    hidden = [log, world.ws / "one", world.outside / "two"]
    args = [x for path in hidden for x in ("--hide", path)]
    result = world.python(caller, """
        log, one, two = sys.argv[1:]
        show([attempt(lambda: open(p).close()) for p in (log + "/audit", one, two)])
        show([attempt(lambda: open(p, "w").close()) for p in (log + "/audit", one, two)])
        show([attempt(lambda: os.rename(p, p + "2")) for p in (log, one)] + [attempt(lambda: os.chmod(p, 0o777)) for p in (log, one, two)])
        show(os.listdir(log))
    """, *hidden, args=args)
    assert result.shown.pop() == []
    assert set(sum(result.shown, [])) <= {"EACCES", "EBUSY", "EROFS", "EPERM", "ENOENT"}, result
    assert (log / "audit").read_text() == "audit"
    result = world.run(caller, ["true"], args=["--hide", world.ws])
    assert result.rc == 125 and "must not be seen" in result.report("FAILED")[0]
    (log / "deep").mkdir()
    result = world.run(caller, ["true"], args=["--hide", log / "deep"])
    assert result.rc == 125 and "out of the command's hands" in result.report("FAILED")[0]
    result = world.run(caller, ["true"], args=["--hide", world.base / "absent"])
    assert result.rc == 125 and "absent" in result.report("FAILED")[0]


def test_unix_sockets_and_fifos_of_the_host(world, caller):
    """Those that were there before and those that come later, wherever they are; the sandbox's own work as usual."""
    places = [pathlib.Path(p) for p in ("/run", "/tmp", "/var/tmp", "/dev/shm", world.base, world.outside, world.home)]
    sockets = [[], []]

    def listen(when):
        for place in places:
            path = place / f"seal-{os.getpid()}-{when}.sock"
            path.unlink(missing_ok=True)
            sock = socket.socket(socket.AF_UNIX)
            sock.bind(str(path))
            sock.listen()
            path.chmod(0o777)
            sockets[when].append((str(path), sock))

    fifo = world.outside / "fifo"
    os.mkfifo(fifo, 0o666)
    fifo.chmod(0o666)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    os.mknod(world.outside / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    (world.outside / "null").chmod(0o666)
    listen(0)
    code = """
        def connect(path, kind=socket.SOCK_STREAM):
            with socket.socket(socket.AF_UNIX, kind) as s:
                s.connect(path)
        paths = json.loads(sys.argv[1])
        show([attempt(lambda: connect(p)) for p in paths[0]])
        sys.stdin.readline()
        show([attempt(lambda: connect(p)) for p in paths[1]])
        show([attempt(lambda: connect("\\0" + sys.argv[3])), attempt(lambda: os.close(os.open(sys.argv[2] + "/fifo", os.O_WRONLY | os.O_NONBLOCK))),
              attempt(lambda: os.close(os.open(sys.argv[2] + "/null", os.O_RDONLY)))])
        own = socket.socket(socket.AF_UNIX); own.bind("/tmp/own"); own.listen()
        show([attempt(lambda: connect("/tmp/own")), attempt(lambda: [s.close() for s in socket.socketpair()] and None)])
    """
    paths = [[str(p / f"seal-{os.getpid()}-{when}.sock") for p in places] for when in (0, 1)]
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind(f"\0seal-{os.getpid()}")
    abstract.listen()
    head = "import json, os, sys, socket, errno\ndef show(x): print(json.dumps(x), flush=True)\n" \
           "def attempt(f):\n    try:\n        return f() or 'ok'\n    except OSError as e:\n        return errno.errorcode[e.errno]\n"
    try:
        process = world.start(caller, [PYTHON, "-c", head + textwrap.dedent(code), json.dumps(paths), str(world.outside), f"seal-{os.getpid()}"])
        first = json.loads(process.stdout.readline())
        listen(1)
        out, err = process.communicate(b"\n", timeout=120)
        assert process.returncode == 0, err
        later, other, own = map(json.loads, out.splitlines())
    finally:
        for path, sock in sockets[0] + sockets[1]:
            sock.close()
            os.unlink(path)
        os.close(reader)
        abstract.close()
    assert set(first) | set(later) <= {"ECONNREFUSED", "ENOENT", "EACCES"}, (first, later)
    assert "ECONNREFUSED" in first and "ECONNREFUSED" in later  # seen, but another inode
    assert other == ["ECONNREFUSED", "ENXIO", "EACCES"] and own == ["ok", "ok"]


def test_dev_and_sys_are_minimal(world, caller):
    result = world.python(caller, """
        show(sorted(os.listdir("/dev")))
        show([attempt(lambda: open(p, "r+b", buffering=0).close()) for p in ("/dev/null", "/dev/zero", "/dev/full")])
        show(len(open("/dev/urandom", "rb").read(8)))
        import pty
        m, s = pty.openpty()
        show(os.ttyname(s))
        show(sorted(os.listdir("/sys") + os.listdir("/sys/devices/system")))
        show([attempt(lambda: os.chmod(p, 0o600)) for p in ("/dev/null", "/dev/tty", "/proc/sys")] + [attempt(lambda: os.fchmod(0, 0o600))])
    """, stdin=subprocess.DEVNULL)
    assert result.shown[0] == sorted(["fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero"])
    assert result.shown[1] == ["ok"] * 3 and result.shown[2] == 8 and result.shown[3].startswith("/dev/pts/")
    assert set(result.shown[4]) <= {"devices", "kernel", "cpu", "node"}
    assert set(result.shown[5]) <= {"EROFS", "EPERM", "EACCES"}, result
    assert stat.S_IMODE(os.stat("/dev/null").st_mode) == 0o666


def test_nothing_can_be_uncovered(world, caller):
    """Root in a namespace of the command's own can take no mount off, change none, and make none that shows more."""
    result = world.python(caller, """
        libc = ctypes.CDLL(None, use_errno=True)
        def call(name, *args):
            r = getattr(libc, name)(*args)
            return "ok" if r >= 0 else errno.errorcode[ctypes.get_errno()]
        uid, gid = os.getuid(), os.getgid()
        show(call("unshare", 0x10000000 | 0x20000))
        def maps():
            for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
                with open("/proc/self/" + name, "w") as f: f.write(text)
        show(attempt(maps))
        table = [line.split()[4] for line in open("/proc/self/mountinfo")]
        show(table.count("/"))
        show({p: call("umount2", p.encode(), flags) for p in table[1:] for flags in (0, 2)})
        show({p: call("mount", None, p.encode(), None, 0x1000 | 32, None) for p in ("/", "/usr", "/etc", "/proc/sys", "/var")})
        show([call("mount", b"x", b"/tmp", kind, 0, None) for kind in (b"proc", b"sysfs", b"cgroup", b"cgroup2", b"devtmpfs", b"debugfs", b"ext4")])
        show([call("mount", b"/var", b"/tmp", None, 0x1000, None), call("unshare", 0x02000000)])
        fd = os.open("/proc/self/ns/mnt", os.O_RDONLY)
        libc.setns(fd, 0x20000)
        show(sorted(os.listdir("/")))
    """)
    expected = world.python(caller, "show(sorted(os.listdir('/')))").shown[0]
    unshared, mapped, roots, umounts, remounts, new, others, entries = result.shown
    assert unshared == "ok" and roots == 1 and entries == expected
    assert mapped == ("EPERM" if caller == "root" else "ok")  # the kernel lets root's uid be mapped only with CAP_SETFCAP
    assert set(umounts.values()) == {"EINVAL"} and set(remounts.values()) <= {"EPERM", "EACCES"}
    assert "ok" not in new and "ok" not in others, result


def test_mounts_of_the_host(world, caller, mounts):
    """Plain file systems are shown through overlays of their own, others not at all, hidden ones by no other name."""
    for name in ("plain", "queue", "homes", "deep/disk"):
        (world.base / name).mkdir(parents=True)
    mounts("-t", "tmpfs", "none", world.base / "plain")
    mounts("-t", "mqueue", "none", world.base / "queue")
    mounts("--bind", world.home.parent, world.base / "homes")
    mounts("-t", "tmpfs", "none", world.base / "deep" / "disk")
    (world.ws / "queue").mkdir()
    mounts("-t", "mqueue", "none", world.ws / "queue")
    (world.base / "plain" / "file").write_text("plain")
    (world.base / "queue" / "secret-name").touch()
    (world.home / "key").write_text("key")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(world.base / "deep" / "disk" / "sock"))
        sock.listen()
        (world.base / "deep" / "disk" / "sock").chmod(0o777)
        result = world.python(caller, """
            base, ws = sys.argv[1:]
            show(open(base + "/plain/file").read())
            show([os.listdir(base + "/queue"), os.listdir(ws + "/queue"), os.listdir(base + "/homes/ann")])
            show(attempt(lambda: socket.socket(socket.AF_UNIX).connect(base + "/deep/disk/sock")))
            show(open(base + "/readable").read())
        """, world.base, world.ws)
    homes = result.shown[1].pop()
    assert result.shown == ["plain", [[], []], "ECONNREFUSED", "readable"]
    assert homes == [] or caller == "sudo"  # that user has no home to hide


def test_without_an_overlay_unix_sockets_are_refused(world, mounts):
    """A directory that is too big to split, with a mount in it, without root."""
    big = world.base / "big"
    for i in range(300):
        (big / str(i)).mkdir(parents=True)
    mounts("-t", "tmpfs", "none", big / "7")
    result = world.python("user", """
        show([attempt(lambda: socket.socket(f).close()) for f in (socket.AF_UNIX, socket.AF_INET)])
        show([attempt(lambda: [s.close() for s in socket.socketpair()] and None)])
        show(attempt(lambda: open(sys.argv[1] + "/1/x", "w").close()))
    """, big)
    assert result.shown[0] == ["EAFNOSUPPORT", "ok"] and result.shown[1] == ["ok"] and result.shown[2] in ("EROFS", "EACCES")
    assert "AF_UNIX is refused" in result.report("NOTE")[0] and str(big) in result.report("NOTE")[0]
    assert world.python("root", "show(attempt(lambda: socket.socket(socket.AF_UNIX).close()))").shown == ["ok"]


@pytest.mark.parametrize("kind", ["plain", "link", "dangling"])
def test_resolv_conf(world, caller, mounts, kind):
    """The gate's name server alone, also where the host's file is a link into /run or says 127.0.0.53."""
    for name in ("upper", "work", "run"):
        (world.base / name).mkdir()
    mounts("-t", "overlay", "-o", f"lowerdir=/etc,upperdir={world.base}/upper,workdir={world.base}/work", "none", "/etc")
    mounts("-t", "tmpfs", "none", "/run")
    os.unlink("/etc/resolv.conf")
    if kind == "plain":
        pathlib.Path("/etc/resolv.conf").write_text("nameserver 127.0.0.53\nsearch corp.example\n")
    else:
        os.symlink("../run/systemd/resolve/stub-resolv.conf", "/etc/resolv.conf")
    if kind == "link":
        os.makedirs("/run/systemd/resolve")
        pathlib.Path("/run/systemd/resolve/stub-resolv.conf").write_text("nameserver 127.0.0.53\n")
    for args in ([], ["--fs", "host"]) if kind != "dangling" else ([],):
        result = world.python(caller, "show([open('/etc/' + n).read() for n in ('resolv.conf', 'hosts', 'nsswitch.conf')])", args=args)
        resolv, hosts, nsswitch = result.shown[0]
        assert resolv == "nameserver 10.200.0.1\n" and "127.0.0.1 localhost" in hosts and "\nhosts: files dns\n" in nsswitch


def test_fs_host(world, caller):
    result = world.python(caller, """
        show(sorted(os.listdir(sys.argv[1])))
        show(attempt(lambda: open(sys.argv[1] + "/made", "w").close()))
        show(sorted(int(p) for p in os.listdir("/proc") if p.isdigit()))
        show(attempt(lambda: open(sys.argv[2]).close()))
        show(len(os.listdir("/dev")))
    """, world.outside, world.base / "readable", args=["--fs", "host", "--hide", world.base / "readable"])
    assert result.shown[1] == "ok" and (world.outside / "made").exists()
    assert result.shown[2] == [1, 2] and result.shown[3] == "EACCES" and result.shown[4] == 13
    assert "Unix socket" in result.report("NOTE")[0]


# --- system calls ---

def test_refused_calls(world, caller):
    result = world.python(caller, """
        def family(*args):
            return attempt(lambda: socket.socket(*args).close())
        show([family(f) for f in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6)] + [family(socket.AF_NETLINK, socket.SOCK_RAW, 0)])
        # VSOCK, PACKET, ALG, CAN, BLUETOOTH, TIPC, NFC, QIPCRTR, XDP, and one of the future
        show([family(f, socket.SOCK_DGRAM) for f in (40, 17, 38, 29, 31, 30, 39, 42, 44, 60)])
        show([family(socket.AF_NETLINK, socket.SOCK_RAW, p) for p in (4, 9, 12, 15, 16)] + [family(socket.AF_INET, 1, p) for p in (33, 132, 256, 263)])
        libc = ctypes.CDLL(None, use_errno=True)
        def call(nr, *args):
            ctypes.set_errno(0)
            return "ok" if libc.syscall(nr, *map(ctypes.c_ulong, args)) >= 0 else errno.errorcode[ctypes.get_errno()]
        show([call(425, 8, 0), call(426, 0), call(427, 0)])                                  # io_uring
        show([call(248, 0), call(249, 0), call(250, 0), call(435, 0, 0)])                    # keys, clone3
        show([call(321, 0), call(298, 0), call(323, 0), call(304, 0), call(246, 0), call(175, 0), call(103, 3, 0, 0), call(163, 0)])
        show([call(41, 0x100000028, 1, 0), call(16, 0, 0x100005412, 0), call(16, 0, 0x541c, 0), call(0x40000000 + 39)])  # upper halves, x32
        show([call(160, 4, 0), call(302, 0, 4, 1, 0)])                                        # RLIMIT_CORE: "yes"
        import resource
        show(resource.getrlimit(resource.RLIMIT_CORE))
    """)
    assert result.shown == [
        ["ok"] * 4, ["EAFNOSUPPORT"] * 10, ["EPROTONOSUPPORT"] * 9, ["ENOSYS"] * 3, ["ENOSYS"] * 4, ["EPERM"] * 8,
        ["EAFNOSUPPORT", "EPERM", "EPERM", "ENOSYS"], ["ok"] * 2, [1, 1]], result


I386_CALLS = """
    import ctypes, errno, json, mmap
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    # push rbx; mov eax, edi; mov ebx, esi; mov ecx, edx; mov edx, ecx(saved in r8d by the ABI: 4th is rcx); int 0x80; pop rbx; ret
    code.write(bytes.fromhex("53" "4189c8" "89f8" "89f3" "89d1" "4489c2" "cd80" "5b" "c3"))
    f = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint, ctypes.c_uint, ctypes.c_uint, ctypes.c_uint)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    def call(nr, *args):
        r = f(nr, *(list(args) + [0, 0, 0])[:3])
        return errno.errorcode[-r] if r < 0 else "ok"
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="int 0x80 is x86")
def test_calls_of_the_32_bit_kind(world, caller):
    """The same filter holds for i386 calls made from a 64-bit process."""
    here = subprocess.run([PYTHON, "-c", textwrap.dedent(I386_CALLS) + "call(20)"], timeout=60, check=False)
    if here.returncode == -signal.SIGSEGV:
        pytest.skip("this kernel has no gate for i386 calls at all")
    result = world.python(caller, I386_CALLS + """
    show([call(20), call(359, 2, 1, 0), call(359, 40, 1, 0), call(359, 17, 3, 0), call(102, 1, 0), call(425, 8, 0), call(288, 0), call(287, 0), call(54, 0, 0x5412, 0)])
    """)
    assert result.shown[0] in (["ok", "ok", "EAFNOSUPPORT", "EAFNOSUPPORT", "ENOSYS", "ENOSYS", "ENOSYS", "ENOSYS", "EPERM"], ["ENOSYS"] * 9), result


def test_setuid_programs_gain_nothing(world, caller):
    tool = world.ws / "tool"
    shutil.copy("/usr/bin/id", tool)
    tool.chmod(0o4755)
    other = world.base / "tool"
    shutil.copy("/usr/bin/id", other)
    other.chmod(0o4755)
    uid = 0 if caller == "root" else UID
    for path in (tool, other):
        assert world.run(caller, [path, "-u"]).out == f"{uid}\n"


def test_init_is_out_of_reach(world, caller):
    result = world.python(caller, """
        libc = ctypes.CDLL(None, use_errno=True)
        show([attempt(lambda: open("/proc/1/" + n).read() and None) for n in ("environ", "maps", "mem")] +
             [attempt(lambda: os.readlink("/proc/1/" + n)) for n in ("exe", "cwd", "root", "ns/mnt")])
        show([libc.ptrace(16, 1, 0, 0)])
        show([attempt(lambda: os.kill(1, s)) for s in (9, 15, 19, 17, 2)])
        show(open("/proc/1/cmdline").read().strip("\\0").split("\\0"))
    """, args=["--hide", world.base / "readable"])
    assert set(result.shown[0]) == {"EACCES"} or caller == "root" and set(result.shown[0]) <= {"EACCES", "EPERM"}, result
    assert result.shown[1] == [-1] and len(result.shown[3]) == 1 and result.shown[3][0].endswith("sandbox-net")


# --- life ---

def snapshot():
    links = set(os.listdir("/sys/class/net"))
    with open("/proc/self/mountinfo") as f:
        mounts = sorted(line.split()[4] for line in f)
    return links, mounts


def members(launcher):
    """The processes below the launcher, itself included."""
    found, todo = [], [launcher]
    while todo:
        pid = todo.pop()
        found.append(pid)
        try:
            with open(f"/proc/{pid}/task/{pid}/children") as f:
                todo += [int(p) for p in f.read().split()]
        except FileNotFoundError:
            pass
    return found


@pytest.mark.parametrize("victim", ["launcher", "proxy", "init", "command"])
def test_killed_and_nothing_stays(world, caller, victim):
    before = snapshot()
    process = world.start(caller, ["sh", "-c", "sleep 1000 & setsid sleep 1000 & wait"])
    command, launcher = world.command(), world.launcher()
    wait_for(lambda: len(members(launcher)) >= 5)
    all_of_them = members(launcher)
    init = all_of_them[1]
    os.kill({"launcher": launcher, "proxy": process.pid, "init": init, "command": command}[victim], signal.SIGKILL)
    rc = process.wait(timeout=120)
    process.communicate()
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in all_of_them))
    assert snapshot() == before
    assert rc == (-9 if victim == "proxy" else 137)


@pytest.mark.parametrize("stage", ["gate", "arm"])
def test_a_proxy_that_ends_starts_nothing(world, caller, stage):
    result = world.run(caller, ["touch", "was-here"], fake=["--end-at", stage])
    assert result.rc == 125 and "the proxy has ended" in result.report("FAILED")[0], result
    assert not (world.ws / "was-here").exists() and not result.report("STARTED")


def test_signals_are_passed_on(world, caller):
    code = "import os, signal\nfor s in (1, 2, 3, 10, 12, 15): signal.signal(s, lambda s, f: os.write(1, b'%d\\n' % s))\nos.write(1, b'ready\\n')\nwhile True: signal.pause()"
    process = world.start(caller, [PYTHON, "-c", code])
    assert process.stdout.readline() == b"ready\n"
    for sig in (1, 2, 3, 10, 12, 15):
        os.kill(world.launcher(), sig)
        assert process.stdout.readline() == b"%d\n" % sig
    os.kill(world.command(), 9)
    assert process.wait(timeout=120) == 137
    process.communicate()


def test_ignored_signals_stay_ignored(world, caller):
    process = world.start(caller, ["sh", "-c", "echo ready; read line; echo done"], preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    assert process.stdout.readline() == b"ready\n"
    os.kill(world.launcher(), signal.SIGHUP)
    out, _ = process.communicate(b"\n", timeout=120)
    assert out == b"done\n" and process.returncode == 0


class Shell:
    """A little shell with job control on a terminal of its own: one job, in the foreground."""

    def __init__(self, world, caller, command):
        argv = world.argv(caller, [], command)
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            try:
                signal.signal(signal.SIGTTOU, signal.SIG_IGN)
                os.chdir(world.ws)
                self.job(argv, world.env(caller))
            finally:
                os._exit(98)
        self.text = b""

    def read(self):
        """What has come meanwhile."""
        try:
            while select.select([self.master], [], [], 0)[0]:
                self.text += os.read(self.master, 4096)
        except OSError:  # the other end is closed
            pass

    @staticmethod
    def job(argv, env):
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            os.tcsetpgrp(0, os.getpid())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            os.execvpe(argv[0], argv, env)
        while True:
            _, status = os.waitpid(pid, os.WUNTRACED)
            os.tcsetpgrp(0, os.getpgrp())
            if not os.WIFSTOPPED(status):
                os.write(1, b"rc=%d\n" % os.waitstatus_to_exitcode(status))
                os._exit(0)
            os.write(1, b"stopped\n")
            os.read(0, 100)
            os.tcsetpgrp(0, pid)
            os.killpg(pid, signal.SIGCONT)

    def expect(self, text):
        wait_for(lambda: self.read() or text in self.text)
        self.text = self.text.split(text, 1)[1]

    def type(self, data):
        os.write(self.master, data)

    def close(self):
        self.expect(b"rc=")
        os.waitpid(self.pid, 0)
        os.close(self.master)


def test_terminal(world, caller):
    """Window size, foreground group, Ctrl-C; nothing can be typed on the command's behalf."""
    code = """
        import fcntl, termios, errno, os, sys, signal, time
        print("fg", os.tcgetpgrp(0) == os.getpgrp(), os.get_terminal_size(0).columns > -1, flush=True)
        for request, arg in ((termios.TIOCSTI, b"x"), (0x541c, b"\\x03"), (0x541d, b"")):
            try:
                fcntl.ioctl(0, request, arg); print("injected", flush=True)
            except OSError as e:
                print(errno.errorcode[e.errno], flush=True)
        print(open("/dev/tty", "wb", buffering=0).isatty(), flush=True)
        time.sleep(1000)
    """
    shell = Shell(world, caller, [PYTHON, "-c", textwrap.dedent(code)])
    for line in (b"fg True True", b"EPERM", b"EPERM", b"EPERM", b"True"):
        shell.expect(line)
    shell.type(b"\x03")
    shell.expect(b"rc=130")
    shell.text = b"rc="
    shell.close()


def test_job_control(world, caller):
    """Ctrl-Z stops the job as the shell sees it; continued, it has the terminal again."""
    code = "import os, sys\nprint('ready', flush=True)\nwhile True:\n    line = sys.stdin.readline()\n    print('got', line.strip(), os.tcgetpgrp(0) == os.getpgrp(), flush=True)\n    if line == 'end\\n': sys.exit(5)"
    shell = Shell(world, caller, [PYTHON, "-c", code])
    shell.expect(b"ready")
    for round in range(3):
        shell.type(b"\x1a")
        shell.expect(b"stopped")
        shell.type(b"fg\n")
        wait_for(lambda: os.tcgetpgrp(shell.master) == world.command())
        shell.type(b"hello%d\n" % round)
        shell.expect(b"got hello%d True" % round)
    shell.type(b"end\n")
    shell.expect(b"rc=5")
    shell.text = b"rc="
    shell.close()
