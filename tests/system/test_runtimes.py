# SPDX-License-Identifier: Apache-2.0
"""The lab's runtimes, without netgate: they run, are cut off when they should be and only then, and leave nothing behind."""

import contextlib
import glob
import json
import os
import re
import subprocess
import sys

import pytest

from lab import v4, wait_for
from lab.runtimes import CA, KINDS, Cni, Docker, runsc


def in_namespaces(process):
    """Those that a process is in, such as "net:[4026531840]"; `process`: its folder in /proc."""
    found = set()
    for link in glob.glob(f"{process}/ns/*"):
        try:
            found.add(os.readlink(link))
        except OSError:
            pass
    return found


def holders(namespaces):
    """The processes that are in one of these namespaces. One that has ended, and whose parent (by now the machine's init) has
    yet to learn that, does not count."""
    found = []
    for process in glob.glob("/proc/[0-9]*"):
        if in_namespaces(process) & namespaces:
            try:
                with open(f"{process}/stat") as stat:
                    text = stat.read()
            except OSError:
                continue
            if text.rpartition(")")[2].split()[0] not in "ZX":
                found.append(text)
    return found


@contextlib.contextmanager
def namespaces_of(pid):
    """Those that a process does not share with this one. Within the block their numbers are not given to others."""
    with contextlib.ExitStack() as stack:
        for link in glob.glob(f"/proc/{pid}/ns/*"):
            stack.callback(os.close, os.open(link, os.O_RDONLY | os.O_CLOEXEC))
        yield in_namespaces(f"/proc/{pid}") - in_namespaces("/proc/self")


def mounts_below(folder):
    with open("/proc/self/mountinfo") as mounts:
        return [line for line in mounts if folder in line]


def cgroups_named(name):
    return glob.glob(f"/sys/fs/cgroup/{name}*") + glob.glob(f"/sys/fs/cgroup/*/{name}*")


def test_output_and_exit_status(runtime):
    done = runtime.run(["sh", "-c", "echo one; echo two; exit 3"])
    assert (done.returncode, done.stdout.splitlines()) == (3, ["one", "two"]), done


def test_without_network_there_is_only_lo(runtime, lab):
    with lab.capture(runtime.site.host) as capture:
        done = runtime.run(["sh", "-c", f"cat /proc/net/dev; wget -q -O - http://{v4('web')}/"])
        assert done.returncode == 1 and "hello" not in done.stdout, done
        interfaces = re.findall(r"^ *(\w+):(?= *\d)", done.stdout, re.MULTILINE)
        # gVisor does not show one that is down.
        assert interfaces == ([] if runtime.name == "gvisor" else ["lo"]), done
    assert capture.packets == []
    assert lab.web.requests == []


def test_box(runtime):
    with contextlib.ExitStack() as stack:
        with runtime.start(["sh", "-c", "echo up; exec sleep 1000"]) as box:
            wait_for(lambda: "up" in box.logs(), "the command's output")
            assert box.alive()
            assert box.pid in runtime.site.cgroup.processes()
            host = os.readlink(runtime.site.host.net.path)
            assert (os.readlink(box.netns) == host) == (runtime.name == "qemu"), "a machine's QEMU is on the host, a container is not"
            if runtime.name != "qemu":
                done = box.exec(["sh", "-c", "echo inside; exit 4"])
                assert (done.returncode, done.stdout) == (4, "inside\n"), done
            # A machine has none of its own, and the user namespace of rootless podman is one for all of its containers.
            mine = {name for name in stack.enter_context(namespaces_of(box.pid)) if not name.startswith("user:")}
            if runtime.name == "qemu":
                mine = set()
            assert len(mine) >= 4 or runtime.name == "qemu"
            box.kill()
            wait_for(lambda: not box.alive(), "the end of a killed box")
        assert holders(mine) == []
    assert runtime.containers() == []


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_stays_behind(lab, images, kind):
    """Also of a box that nobody removed."""
    before = {path: os.path.exists(path) for path in ("/var/lib/docker", "/var/lib/containers", "/var/lib/cni", "/run/docker")}
    with contextlib.ExitStack() as stack:
        with KINDS[kind](lab, images) as runtime:
            box = runtime.start(["sleep", "1000"])
            namespaces = stack.enter_context(namespaces_of(box.pid))
            name, folder = runtime.site.cgroup.name, runtime.folder
            assert cgroups_named(name)
            assert runtime.site.cgroup.processes()
        assert not box.alive()
        assert holders(namespaces) == []
    assert cgroups_named(name) == []
    assert mounts_below(folder) == []
    assert {path: os.path.exists(path) for path in before} == before
    assert os.stat("/dev/null").st_uid == 0
    assert runtime.site.host.name not in lab.inet.run("ip", "-o", "link")


def test_a_killed_lab_is_swept(lab, images):
    """dockerd ends with its owner, but its containers do not: the next site ends them."""
    script = ("import sys; from lab import Lab; from lab.runtimes import Docker, Images\n"
              "docker = Docker(Lab(sys.argv[1]), Images(sys.argv[2])).__enter__(); box = docker.start(['sleep', '1000'])\n"
              "print(box.pid, docker.site.cgroup.name, flush=True); input()")
    arguments = [sys.executable, "-c", script, lab.build, os.path.join(lab.build, "images")]
    with contextlib.ExitStack() as stack:
        with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env=os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(__file__))}) as child:
            pid, name = child.stdout.readline().split()
            namespaces = stack.enter_context(namespaces_of(pid))
            assert cgroups_named(name)
            child.kill()
        with KINDS["runc"](lab, images):
            assert holders(namespaces) == []
            assert cgroups_named(name) == []


def test_debian_image(runtimes, images):
    """What an agent's job finds in there; nothing is trusted until a test mounts its certificates."""
    for command in (["curl", "--version"], ["python3", "-c", "import ssl, sqlite3, json"], ["openssl", "version"], ["ip", "-V"],
                    ["ping", "-V"], ["ps", "--version"], ["dpkg", "--verify", "curl"], ["apt-get", "check"], ["test", "!", "-s", CA]):
        done = runtimes["runc"].run(command, image=images.debian())
        assert done.returncode == 0, (command, done)


@pytest.mark.parametrize("kind, network", [("docker", "bridge"), ("podman", "podman")])
def test_bridge_reaches_the_internet(lab, runtimes, kind, network):
    """So that "nothing was seen" means something elsewhere."""
    done = runtimes[kind].run(["wget", "-q", "-O", "-", "http://ok.test/hello"], network=network)
    assert done.stdout == "hello from ok.test\n", done
    assert {request.address for request in lab.web.requests} == {v4("web")}


def test_debian_in_docker_with_certificates(lab, runtimes, images):
    done = runtimes["docker"].run(["curl", "-sS", "https://ok.test/hello"], image=images.debian(), network="bridge",
                                  options=[f"--volume={lab.ca_file}:{CA}:ro"])
    assert done.stdout == "hello from ok.test\n", done


def test_podman_hooks(runtimes):
    podman = runtimes["podman"]
    state = os.path.join(podman.folder, "state.json")
    podman.install("containers.conf.d/test.conf", '[engine]\nhooks_dir = ["/etc/containers/oci/hooks.d"]\n')
    podman.install("oci/hooks.d/test.json", json.dumps({"version": "1.0.0", "hook": {"path": "/usr/bin/tee", "args": ["tee", state]},
                                                        "when": {"always": True}, "stages": ["createRuntime"]}))
    try:
        with podman.start(["sleep", "1000"], options=["--annotation=netgate.policy=p1"]) as box, open(state) as seen:
            seen = json.load(seen)
        assert (seen["pid"], seen["annotations"]["netgate.policy"]) == (box.pid, "p1")
    finally:
        podman.site.run(["rm", "/etc/containers/containers.conf.d/test.conf", "/etc/containers/oci/hooks.d/test.json"], check=True)


def test_machine_with_a_network(lab, runtimes):
    """A TAP interface of its host."""
    qemu = runtimes["qemu"]
    qemu.site.host.net.ip("tuntap add tap0 mode tap", "addr add 10.91.0.1/24 dev tap0", "link set tap0 up")
    try:
        done = qemu.run(["ping", "-c", "1", "-W", "60", "10.91.0.1"], network="tap0",
                        setup="ip link set eth0 up; ip addr add 10.91.0.2/24 dev eth0")
    finally:
        qemu.site.host.net.ip("link del tap0")
    assert done.returncode == 0 and "1 packets received" in done.stdout, done


def test_gvisor_with_a_network(lab, runtimes):
    """On its own stack, with the addresses that it finds."""
    host = lab.add_host("gvisor-net")
    try:
        done = runtimes["gvisor"].run(["wget", "-q", "-O", "-", f"http://{v4('web')}/"], network=host.net.path)
    finally:
        host.close()
    assert done.stdout == f"hello from {v4('web')}\n", done


@pytest.mark.parametrize("kind", ["runc", "crun"])
def test_bundle_changes(runtimes, kind):
    runtime = runtimes[kind]
    state = os.path.join(runtime.folder, "state.json")
    hooks = {"createRuntime": [{"path": "/usr/bin/tee", "args": ["tee", state]}]}
    done = runtime.run(["sh", "-c", "ip -o -4 addr show dev eth0; echo $WORD"], network=runtime.site.host.net.path,
                       hooks=hooks, annotations={"netgate.policy": "p1"}, process={"env": ["WORD=here"]})
    assert f"{v4('dns').rpartition('.')[0]}." in done.stdout and done.stdout.endswith("here\n"), done
    with open(state) as seen:
        assert json.load(seen)["annotations"]["netgate.policy"] == "p1"
    failing = runtime.run(["true"], hooks={"createRuntime": [{"path": "/bin/false"}]})
    assert failing.returncode != 0, failing


@pytest.mark.parametrize("name", ["crun", "runsc"])
def test_docker_with_another_runtime(lab, images, tmp_path, name):
    """The daemon's configuration is the test's to change."""
    program = runsc(tmp_path) if name == "runsc" else f"/usr/bin/{name}"
    with Docker(lab, images, runtimes={name: {"path": program}}, name=f"docker-{name}") as docker:
        with docker.start(["sleep", "1000"], options=[f"--runtime={name}"]) as box:
            assert docker.client("inspect", "--format={{.HostConfig.Runtime}}", box.id).stdout == f"{name}\n"
            assert box.alive()
            assert ("gVisor" in box.exec(["dmesg"]).stdout) == (name == "runsc")


PTP = {"cniVersion": "1.0.0", "name": "lab", "type": "ptp", "ipMasq": True,
       "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.93.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}


def test_cni_plugin_by_hand(lab, runtimes):
    """ADD, CHECK and DEL of one of Debian's plugins give a container a network and take it away; errors come back as objects."""
    runc = runtimes["runc"]
    cni = Cni(runc.site)
    assert "1.0.0" in cni.call("VERSION", PTP).object["supportedVersions"]
    with runc.start(["sleep", "1000"]) as box:
        added = cni.call("ADD", PTP, box)
        assert added.rc == 0 and added.object["ips"][0]["address"].startswith("10.93.0."), added
        assert cni.call("CHECK", PTP | {"prevResult": added.object}, box).rc == 0
        done = box.exec(["wget", "-q", "-O", "-", f"http://{v4('web')}/"])
        assert done.stdout == f"hello from {v4('web')}\n", done
        assert cni.call("DEL", PTP | {"prevResult": added.object}, box).rc == 0
        assert "eth0" not in box.exec(["ip", "-o", "link"]).stdout
        failed = cni.call("ADD", PTP | {"cniVersion": "9.9.9"}, box)
        assert failed.rc != 0 and failed.object["msg"], failed


def test_podman_with_a_cni_network(lab, runtimes):
    podman = runtimes["podman"]
    with open(os.path.join(podman.networks, "lab.conflist"), "w") as out:
        json.dump({"cniVersion": "0.4.0", "name": "lab", "plugins": [{key: PTP[key] for key in ("type", "ipMasq", "ipam")}]}, out)
    try:
        done = podman.run(["wget", "-q", "-O", "-", "http://ok.test/"], network="lab")
        assert done.stdout == "hello from ok.test\n", done
    finally:
        os.unlink(out.name)


def test_ctr_with_a_network_namespace(lab, runtimes):
    """containerd's own client, with the daemon that dockerd started."""
    docker = runtimes["docker"]
    done = docker.ctr_run(["ip", "-o", "-4", "addr", "show", "dev", "eth0"], network=docker.site.host.net.path)
    assert "203.0.114." in done.stdout, done
    assert docker.ctr("containers", "list", "--quiet", check=True).stdout == ""
