# SPDX-License-Identifier: Apache-2.0
"""The lab's runtimes, without netgate: they run, are cut off when they should be and only then, and leave nothing behind."""

import glob
import json
import os
import subprocess
import sys

import pytest

from lab import v4, wait_for
from lab.runtimes import CA, KINDS, Docker


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


def namespaces_of(pid):
    """Those that a process does not share with this one."""
    return in_namespaces(f"/proc/{pid}") - in_namespaces("/proc/self")


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
        links = runtime.run(["ip", "-o", "link"])
        assert [line.split()[1] for line in links.stdout.splitlines()] == ["lo:"], links
        refused = runtime.run(["wget", "-T", "5", "-q", "-O", "-", f"http://{v4('web')}/"])
        assert refused.returncode != 0, refused
    assert capture.packets == []
    assert lab.web.requests == []


def test_box(runtime):
    with runtime.start(["sh", "-c", "echo up; exec sleep 1000"]) as box:
        wait_for(lambda: "up" in box.logs(), "the command's output")
        assert box.alive()
        assert box.pid in runtime.site.cgroup.processes()
        assert os.readlink(box.netns) not in {os.readlink("/proc/self/ns/net"), os.readlink(runtime.site.host.net.path)}
        assert box.exec(["sh", "-c", "echo inside; exit 4"]).stdout == "inside\n"
        assert box.exec(["sh", "-c", "exit 4"]).returncode == 4
        # The user namespace of rootless podman is one for all of its containers.
        mine = {namespace for namespace in namespaces_of(box.pid) if not namespace.startswith("user:")}
        assert len(mine) >= 4
        assert holders(mine)
        box.kill()
        wait_for(lambda: not box.alive(), "the end of a killed box")
    assert holders(mine) == []
    assert runtime.containers() == []


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_stays_behind(lab, images, kind):
    """Also of a box that nobody removed."""
    before = {path: os.path.exists(path) for path in ("/var/lib/docker", "/var/lib/containers", "/var/lib/cni", "/run/docker")}
    with KINDS[kind](lab, images) as runtime:
        box = runtime.start(["sleep", "1000"])
        namespaces = namespaces_of(box.pid) | {os.readlink(runtime.site.host.net.path)}
        name, folder = runtime.site.cgroup.name, runtime.folder
        assert cgroups_named(name)
        assert runtime.site.cgroup.processes()
    assert not box.alive()
    assert holders(namespaces) == []
    assert cgroups_named(name) == []
    assert mounts_below(folder) == []
    assert {path: os.path.exists(path) for path in before} == before
    assert runtime.site.host.name not in lab.inet.run("ip", "-o", "link")


def test_a_killed_lab_is_swept(lab, images):
    """dockerd ends with its owner, but its containers do not: the next site ends them."""
    script = ("import sys; from lab import Lab; from lab.runtimes import Docker, Images\n"
              "docker = Docker(Lab(sys.argv[1]), Images(sys.argv[2])).__enter__(); box = docker.start(['sleep', '1000'])\n"
              "print(box.pid, docker.site.cgroup.name, flush=True); input()")
    arguments = [sys.executable, "-c", script, lab.build, os.path.join(lab.build, "images")]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          env=os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(__file__))}) as child:
        pid, name = child.stdout.readline().split()
        namespaces = namespaces_of(pid)
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


@pytest.mark.parametrize("kind", ["docker", "podman"])
def test_bridge_reaches_the_internet(lab, runtimes, images, kind):
    """So that "nothing was seen" means something elsewhere."""
    done = runtimes[kind].run(["curl", "-sS", "https://ok.test/hello"], image=images.debian(), network=BRIDGES[kind],
                              options=[f"--volume={lab.ca_file}:{CA}:ro"])
    assert done.stdout == "hello from ok.test\n", done
    assert {request.address for request in lab.web.requests} == {v4("web")}


BRIDGES = {"docker": "bridge", "podman": "podman"}


def test_podman_hooks(runtimes):
    podman = runtimes["podman"]
    state = os.path.join(podman.folder, "state.json")
    hook = os.path.join(podman.hooks, "test.json")
    with open(hook, "w") as out:
        json.dump({"version": "1.0.0", "hook": {"path": "/usr/bin/tee", "args": ["tee", state]}, "when": {"always": True},
                   "stages": ["createRuntime"]}, out)
    try:
        with podman.start(["sleep", "1000"], options=["--annotation=netgate.policy=p1"]) as box, open(state) as seen:
            seen = json.load(seen)
        assert (seen["pid"], seen["annotations"]["netgate.policy"]) == (box.pid, "p1")
    finally:
        os.unlink(hook)


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


def test_docker_with_another_runtime(lab, images):
    """The daemon's configuration is the test's to change."""
    with Docker(lab, images, runtimes={"crun": {"path": "/usr/bin/crun"}}, name="docker-crun") as docker:
        with docker.start(["sleep", "1000"], options=["--runtime=crun"]) as box:
            assert docker.client("inspect", "--format={{.HostConfig.Runtime}}", box.id).stdout == "crun\n"
            assert "docker-crun" in docker.site.host.name and box.alive()
