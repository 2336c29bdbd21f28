# SPDX-License-Identifier: Apache-2.0
"""make install: a tree that works from where it was put, for everyone."""

import ctypes
import json
import os
import struct
import subprocess

from lab.lab import TOP

IN_MOVED_TO, IN_CREATE, IN_DELETE = 0x80, 0x100, 0x200


def install(lab):
    root = os.path.join(lab.folder, "installed")
    # Not as a part of the make that runs the tests.
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    subprocess.run(["make", "-C", TOP, "install", f"DESTDIR={root}", "PREFIX=/usr", f"BUILD={lab.build}"], check=True, env=env,
                   capture_output=True, timeout=600)
    return root


def changes(fd):
    """[(name, what happened to it)] of an inotify(7) descriptor."""
    data, found = os.read(fd, 1 << 20), []
    while data:
        _, mask, _, size = struct.unpack_from("iIII", data)
        found.append((data[16:16 + size].rstrip(b"\0").decode(), mask))
        data = data[16 + size:]
    return found


def test_upgrade(lab):
    """At no moment is a program missing: podman passes over a hook whose program is."""
    programs = os.path.join(install(lab), "usr/bin")
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.inotify_init1(os.O_CLOEXEC)
    try:
        assert libc.inotify_add_watch(fd, os.fsencode(programs), IN_MOVED_TO | IN_CREATE | IN_DELETE) > 0
        install(lab)
        seen = changes(fd)
    finally:
        os.close(fd)
    for name in ("netgate", "sandbox-net"):
        assert [mask for changed, mask in seen if changed == name] == [IN_MOVED_TO], seen
    assert sorted(os.listdir(programs)) == ["netgate", "sandbox-net"]


def test_install(lab, who):
    root = install(lab)
    installed = {os.path.relpath(os.path.join(folder, name), root) for folder, _, names in os.walk(root) for name in names}
    assert installed >= {"usr/bin/netgate", "usr/bin/sandbox-net", "usr/share/man/man1/netgate.1",
                         "usr/share/doc/netgate/policy.md", "usr/share/doc/netgate/records.md", "usr/lib/cni/netgate"}, installed
    with open(os.path.join(root, "usr/share/man/man1/netgate.1")) as page:
        see = page.read().partition(".SH SEE ALSO")[2]
    missing = [name for name in installed if name.endswith(".md") and os.path.basename(name) not in see]
    assert not missing, missing
    for name in ("opt-in/netgate.json", "opt-in/netgate-precreate.json", "always/netgate.json", "always/netgate-precreate.json"):
        with open(os.path.join(root, "usr/share/doc/netgate/hooks.d", name)) as hook:
            assert json.load(hook)["hook"]["path"] == "/usr/bin/sandbox-net"
    for name in ("opt-in/netgate.conf", "always/netgate.conf"):
        assert f"usr/share/doc/netgate/hooks.d/{name}" in installed
    for name in installed:
        mode = os.stat(os.path.join(root, name)).st_mode & 0o7777
        assert mode == (0o755 if "/bin/" in name or "/cni/" in name else 0o644), (name, oct(mode))
    plugin = subprocess.run([os.path.join(root, "usr/lib/cni/netgate")], env={"CNI_COMMAND": "STATUS"}, capture_output=True, text=True,
                            input='{"cniVersion": "1.1.0"}', timeout=60)
    assert (plugin.returncode, plugin.stdout) == (0, ""), plugin
    result = lab.netgate(["--allow", "ok.test"], ["curl", "-sS", "https://ok.test/hello"], user=who,
                         program=os.path.join(root, "usr/bin/netgate"))
    assert result.out == "hello from ok.test\n", result
