# SPDX-License-Identifier: Apache-2.0
"""What runs in the containers: root file systems, made once and cached below the build folder by what they were made of.

Nothing is fetched for these. `busybox` is one static program (2 MB). `debian` is a Debian system with what an agent's job
uses (PACKAGES), put together from the files of this machine's own packages: they are the same files that a
bootstrap would download and unpack, in a fiftieth of the time.

A runtime with an image store of its own takes `tar`; the others run on `rootfs` itself and must not write to it.

For virtual machines `machine` has Debian's kernel, whose package is fetched and unpacked, but not installed, and an initramfs
with busybox and the drivers of network cards.
"""

import dataclasses
import fcntl
import functools
import gzip
import hashlib
import os
import re
import shutil
import subprocess

PACKAGES = ["apt", "bash", "ca-certificates", "curl", "iproute2", "iputils-ping", "libc-bin", "openssl", "procps", "python3"]

# Empty folders and files that runtimes mount over, also where the root file system is read-only.
FOLDERS = ["bin", "dev", "etc/ssl/certs", "home", "proc", "root", "run", "sys", "tmp", "usr/sbin", "var", "work"]
FILES = {"etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
         "etc/group": "root:x:0:\nnogroup:x:65534:\n", "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
         "etc/hostname": "box\n", "etc/resolv.conf": "", "etc/ssl/certs/ca-certificates.crt": "",
         "etc/nsswitch.conf": "hosts: files dns\n"}
CA = "/etc/ssl/certs/ca-certificates.crt"  # the place in each image over which a test mounts its certificates

KERNEL = "linux-image-cloud-amd64"
MODULES = ["virtio_ring", "virtio", "virtio_mmio", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci", "failover", "net_failover",
           "virtio_net"]  # in the order in which they can be loaded

LEFT_OUT = re.compile(r"/usr/share/(doc|man|locale|info|lintian|bug)/")


class Image:
    """`name` (as stores call it), `rootfs` (a folder), `tar` (the same as a file)."""

    def __init__(self, name, folder):
        self.name = name
        self.rootfs, self.tar = os.path.join(folder, "rootfs"), os.path.join(folder, "rootfs.tar")


@dataclasses.dataclass
class Machine:
    """Paths. Further archives may follow the first in an initramfs: it runs /init, which no archive has yet."""

    kernel: str
    initramfs: str


def cached(cache, name, key, build):
    """The folder below `cache` that `build(folder)` filled for this key: now, or in an earlier run. Older ones go.

    `build` may ask for other names' folders.
    """
    os.makedirs(cache, exist_ok=True)
    folder = os.path.join(cache, f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}")
    with open(os.path.join(cache, f".{name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isdir(folder):
            for old in os.listdir(cache):
                if old.startswith(f"{name}-"):
                    shutil.rmtree(os.path.join(cache, old))
            unfinished = os.path.join(cache, f"{name}-unfinished")
            os.mkdir(unfinished)
            build(unfinished)
            os.rename(unfinished, folder)
    return folder


def _skeleton(root):
    for folder in FOLDERS:
        os.makedirs(os.path.join(root, folder), exist_ok=True)
    for path, text in FILES.items():
        with open(os.path.join(root, path), "w") as out:
            out.write(text)
    os.chmod(os.path.join(root, "tmp"), 0o1777)


def _pack(root, tar):
    subprocess.run(["tar", "-C", root, "--numeric-owner", "-cf", tar, "."], check=True, timeout=120)


def _busybox(folder):
    root = os.path.join(folder, "rootfs")
    _skeleton(root)
    program = os.path.join(root, "bin/busybox")
    shutil.copy("/bin/busybox", program)
    applets = subprocess.run([program, "--list"], check=True, capture_output=True, text=True, timeout=60).stdout.split()
    for applet in set(applets) - {"busybox"}:
        os.symlink("busybox", os.path.join(root, "bin", applet))
    _pack(root, os.path.join(folder, "rootfs.tar"))


def _installed():
    """{package: (needs, version, essential)} of this machine, and {virtual package: package}."""
    fields = "${Package}|${db:Status-Status}|${Version}|${Essential}|${Provides}|${Pre-Depends},${Depends}\n"
    shown = subprocess.run(["dpkg-query", "-W", "-f", fields], check=True, capture_output=True, text=True, timeout=60)
    packages, virtual = {}, {}
    for line in shown.stdout.splitlines():
        package, status, version, essential, provides, needs = line.split("|", 5)
        if status == "installed":
            packages[package] = (needs, version, essential == "yes")
            virtual |= {name: package for name in _names(provides, ",")}
    return packages, virtual


def _names(text, separator):
    """The names in a field such as "a (>= 1), b:any"."""
    return [name for name in (re.split(r"[\s(:]", one.strip())[0] for one in text.split(separator)) if name]


def _closure(wanted, packages, virtual):
    """{package: version} of those wanted, the essential ones, and all that they need."""
    todo = [*wanted, *(name for name, (_, _, essential) in packages.items() if essential)]
    found = {}
    while todo:
        package = todo.pop()
        if package in found:
            continue
        needs, found[package], _ = packages[package]
        for alternatives in needs.split(","):
            candidates = [name if name in packages else virtual.get(name) for name in _names(alternatives, "|")]
            todo += [name for name in candidates if name][:1]
    return found


def _debian(folder, closure):
    root = os.path.join(folder, "rootfs")
    os.mkdir(root)
    listed = subprocess.run(["dpkg-query", "-L", *closure], check=True, capture_output=True, text=True, timeout=60)
    paths = {path for path in listed.stdout.splitlines() if path.startswith("/") and not LEFT_OUT.search(path)}
    # /bin and the like are links, and the packages' names for what is in there are not.
    for top in ("bin", "sbin", "lib", "lib64"):
        os.makedirs(os.path.join(root, "usr", top), exist_ok=True)
        os.symlink(f"usr/{top}", os.path.join(root, top))
    paths |= _alternatives(paths)
    names = "\0".join(sorted(os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))[1:]
                             for path in paths if os.path.lexists(path) and os.path.dirname(path) != "/"))
    with subprocess.Popen(["tar", "-C", "/", "-c", "--no-recursion", "--null", "-T", "-"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as source, \
         subprocess.Popen(["tar", "-C", root, "-x"], stdin=source.stdout) as target:
        source.stdin.write(names.encode())
        source.stdin.close()
    if source.returncode or target.returncode:
        raise RuntimeError("the packages' files could not be copied")
    _skeleton(root)
    _dpkg_database(root, closure)
    subprocess.run(["ldconfig", "-r", root], check=True, timeout=60)
    _pack(root, os.path.join(folder, "rootfs.tar"))


def _alternatives(paths):
    """The links such as /usr/bin/awk that no package owns, of programs among `paths`."""
    found = set()
    for name in os.listdir("/etc/alternatives"):
        choice, link = f"/etc/alternatives/{name}", f"/usr/bin/{name}"
        if os.path.islink(link) and os.readlink(link) == choice and os.readlink(choice) in paths:
            found |= {choice, link}
    return found


def _dpkg_database(root, closure):
    """So that dpkg and apt know in there what is installed."""
    database = os.path.join(root, "var/lib/dpkg")
    for folder in ("info", "updates", "triggers"):
        os.makedirs(os.path.join(database, folder), exist_ok=True)
    status = subprocess.run(["dpkg-query", "-s", *closure], check=True, capture_output=True, timeout=60).stdout
    with open(os.path.join(database, "status"), "wb") as out:
        out.write(status)
    for name in os.listdir("/var/lib/dpkg/info"):
        if re.split(r"[:.]", name)[0] in closure or name.rpartition(".")[0].partition(":")[0] in closure:
            shutil.copy(os.path.join("/var/lib/dpkg/info", name), os.path.join(database, "info"))


def _apt(*argv, folder="/"):
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr}")
    return done.stdout


def _kernel_package():
    """The name of the package that Debian's meta package stands for."""
    find = re.compile(r"Depends: (linux-image-\S+)")
    found = find.search(_apt("apt-cache", "depends", KERNEL))
    if not found:  # no package lists yet
        _apt("apt-get", "-qq", "update")
        found = find.search(_apt("apt-cache", "depends", KERNEL))
    return found[1]


def archive(root):
    """A folder as a cpio archive, which is what the kernel unpacks its initramfs from."""
    names = [os.path.relpath(os.path.join(folder, name), root) for folder, folders, files in os.walk(root) for name in folders + files]
    return subprocess.run(["busybox", "cpio", "-o", "-H", "newc"], cwd=root, input="\n".join(sorted(names)).encode() + b"\n",
                          check=True, capture_output=True, timeout=60).stdout


def _machine(folder, package, busybox):
    _apt("apt-get", "-qq", "download", package, folder=folder)
    deb, = [name for name in os.listdir(folder) if name.endswith(".deb")]
    unpacked = os.path.join(folder, "unpacked")
    _apt("dpkg-deb", "--extract", deb, unpacked, folder=folder)
    boot = os.path.join(unpacked, "boot")
    kernel, = [name for name in os.listdir(boot) if name.startswith("vmlinuz-")]
    os.rename(os.path.join(boot, kernel), os.path.join(folder, "vmlinuz"))
    root = os.path.join(folder, "initramfs")
    shutil.copytree(busybox.rootfs, root, symlinks=True)
    os.mkdir(os.path.join(root, "modules"))
    for where, _, names in os.walk(os.path.join(unpacked, "lib/modules")):
        for name in names:
            if name in {f"{module}.ko" for module in MODULES}:
                shutil.copy(os.path.join(where, name), os.path.join(root, "modules"))
    with open(os.path.join(folder, "initramfs.gz"), "wb") as out:
        packed = gzip.compress(archive(root), 1)
        out.write(packed + bytes(-len(packed) % 4))  # the kernel looks for the next archive at a multiple of 4
    for done in (unpacked, root):
        shutil.rmtree(done)
    os.unlink(os.path.join(folder, deb))


class Images:
    """`cache`: a folder for them that stays."""

    def __init__(self, cache):
        self._cache = cache
        with open(__file__) as source:
            self._source = source.read()

    @functools.cache
    def busybox(self):
        with open("/bin/busybox", "rb") as program:
            key = hashlib.sha256(program.read()).hexdigest() + self._source
        return Image("busybox", cached(self._cache, "busybox", key, _busybox))

    @functools.cache
    def debian(self):
        closure = _closure(PACKAGES, *_installed())
        key = repr(sorted(closure.items())) + self._source
        return Image("debian", cached(self._cache, "debian", key, lambda folder: _debian(folder, closure)))

    @functools.cache
    def machine(self):
        package = _kernel_package()
        key = _apt("apt-get", "download", "--print-uris", package) + self._source
        folder = cached(self._cache, "machine", key, lambda folder: _machine(folder, package, self.busybox()))
        return Machine(os.path.join(folder, "vmlinuz"), os.path.join(folder, "initramfs.gz"))
