# SPDX-License-Identifier: Apache-2.0
"""The CNI plugin: called by hand as the specification says, by podman, and by containerd's client."""

import contextlib
import json
import os
import signal

import pytest

from lab import read_log, v4, wait_for
from lab.late import Late
from lab.runtimes import CA, Cni

GATE = "10.200.0.1"
VERSIONS = ["0.4.0", "1.0.0", "1.1.0"]
ARGS = "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_INFRA_CONTAINER_ID=x"


@pytest.fixture
def plugins(lab):
    """A folder with the plugin in it, as `make install` makes one."""
    folder = os.path.join(lab.folder, "cni")
    os.makedirs(folder, exist_ok=True)
    if not os.path.lexists(os.path.join(folder, "netgate")):
        os.symlink(os.path.join(lab.programs(), "sandbox-net"), os.path.join(folder, "netgate"))
    return folder


class Network:
    """A network's configuration and its log, on the host of a runtime."""

    def __init__(self, lab, runtime, plugins, version="1.1.0", **config):
        self.runtime, self.lab = runtime, lab
        self.log = os.path.join(lab.workspace(), "log.jsonl")
        self.config = {"cniVersion": version, "name": "lab", "type": "netgate", "options": [f"--log={self.log}"]} | config
        self.cni = Cni(runtime.site, [plugins])

    def call(self, command, box=None, result=None, config=None, **kwargs):
        more = {"prevResult": result} if result else {}
        return self.cni.call(command, self.config | more | (config or {}), box, **kwargs)

    @contextlib.contextmanager
    def added(self, box, **kwargs):
        """The result of an ADD; a DEL at the end."""
        added = self.call("ADD", box, **kwargs)
        assert added.rc == 0, added
        try:
            yield added.object
        finally:
            kwargs.pop("config", None)
            assert self.call("DEL", box, added.object, **kwargs).rc == 0

    def records(self, kind=None):
        return [record for record in read_log(self.log) if kind in (None, record["type"])]


@pytest.fixture
def network(lab, runtimes, plugins):
    return lambda *args, **kwargs: Network(lab, runtimes["runc"], plugins, *args, **kwargs)


@pytest.fixture
def box(lab, runtimes):
    """A container without a network, whose name server is the gate."""
    resolv = os.path.join(lab.folder, "resolv.gate")
    with open(resolv, "w") as out:
        out.write(f"nameserver {GATE}\n")
    mount = {"destination": "/etc/resolv.conf", "type": "bind", "source": resolv, "options": ["bind", "ro"]}
    with runtimes["runc"].start(["sleep", "1000"], mounts=[mount]) as box:
        yield box


def links(box):
    return [line.split(":")[1].split("@")[0].strip() for line in box.exec(["ip", "-o", "link"]).stdout.splitlines()]


def wget(box, url):
    return box.exec(["wget", "-q", "-O", "-", url])


def attached(lab, site):
    """What sandbox-net ls says on this host."""
    done = site.run([os.path.join(lab.programs(), "sandbox-net"), "ls", "--json"], check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def nothing_attached(lab, site):
    """A netgate whose last gate is closed ends, a moment later."""
    wait_for(lambda: attached(lab, site) == [], "the end of all gates")
    return True


def refused(answer, code, words):
    assert answer.rc != 0 and answer.object["code"] == code and words in answer.object["msg"], answer
    assert set(answer.object) == {"cniVersion", "code", "msg"}
    return True


# By hand

@pytest.mark.parametrize("version", VERSIONS)
def test_life(lab, network, box, version):
    net = network(version, allow=["ok.test"])
    with net.added(box, args=ARGS) as result:
        assert result["cniVersion"] == version
        mtu = {"mtu": 1500} if version == "1.1.0" else {}
        assert result["interfaces"] == [{"name": "eth0", "mac": "02:00:00:00:00:02", "sandbox": box.netns} | mtu]
        assert [ip["address"] for ip in result["ips"]] == ["10.200.0.2/30", "fd6e:6574:6761:7465::2/64"]
        assert [ip.get("version") for ip in result["ips"]] == (["4", "6"] if version == "0.4.0" else [None, None])
        assert result["dns"] == {"nameservers": [GATE]} and [route["dst"] for route in result["routes"]] == ["0.0.0.0/0", "::/0"]
        shown = box.exec(["ip", "-o", "addr", "show", "dev", "eth0"]).stdout
        assert all(ip["address"] in shown for ip in result["ips"]), shown
        assert wget(box, "http://ok.test/hello").stdout == "hello from ok.test\n"
        assert wget(box, f"http://{v4('web')}/").returncode != 0
        assert wget(box, "http://bad.test/").returncode != 0
        assert net.call("CHECK", box, result).rc == 0
        (item,) = attached(lab, box.runtime.site)
        assert (item["sandbox"], item["attached"]) == ("default.web", f"cni lab {box.id} eth0")
    assert links(box) == ["lo"]
    assert {request.headers["host"] for request in lab.web.requests} == {"ok.test"}
    assert net.call("DEL", box, result).rc == 0
    assert refused(net.call("CHECK", box, result), 100, "no gate")
    assert nothing_attached(lab, box.runtime.site)
    (start,), (end,) = net.records("start"), net.records("end")
    assert (start["sandbox"], end["ended"], end["denied"] > 0) == ("default.web", "detached", True), net.records()


def test_add_after_del(network, box):
    """When DEL is answered, the interface is gone."""
    net = network(allow=["ok.test"])
    for i in range(20):
        with net.added(box):
            pass
        shown = box.runtime.site.run(["nsenter", f"--net={box.netns}", "ip", "-o", "link"], check=True).stdout
        assert len(shown.splitlines()) == 1, f"round {i}: {shown}"


@pytest.mark.parametrize("up", ["by hand", "bridge"])
def test_another_interface(lab, network, box, up):
    """What somebody else adds later, another plugin for example, carries nothing, and the gate ends."""
    net = network(allow=["ok.test"])
    config = {"cniVersion": "1.0.0", "name": "other", "type": "bridge", "bridge": "lab-br", "isGateway": True,
              "ipam": {"type": "host-local", "subnet": "192.0.2.0/24", "dataDir": lab.workspace()}}
    late = Late(net.runtime.site.host, box.netns)
    with net.added(box, interface="net1"):
        assert wget(box, "http://ok.test/hello").stdout == "hello from ok.test\n"
        if up == "bridge":
            done = net.cni.call("ADD", config, box, interface="eth0")
            assert done.rc == 0, done
            assert box.exec(["ping", "-c", "1", "-W", "1", "192.0.2.1"]).returncode != 0
        with late.added() if up == "by hand" else contextlib.nullcontext():
            wait_for(lambda: net.records("end"), "the end of the gate")
            assert up == "bridge" or late.reached() == set()
        if up == "bridge":
            assert net.cni.call("DEL", config, box, interface="eth0").rc == 0
            net.runtime.site.run(["ip", "link", "del", "lab-br"], check=True)
    assert net.records("end")[0]["ended"] == "another_interface"
    assert [record["name"] for record in net.records("interface")] == ["later" if up == "by hand" else "eth0"]


def test_interface_of_another_name(network, box):
    net = network(allow=["ok.test"])
    with net.added(box, interface="net1") as result:
        assert result["interfaces"][0]["name"] == "net1" and links(box) == ["lo", "net1"]
        assert wget(box, "http://ok.test/hello").stdout == "hello from ok.test\n"
        assert net.call("CHECK", box, result, interface="net1").rc == 0
        assert refused(net.call("CHECK", box, result), 7, "eth0 is not in")
        assert net.call("DEL", box, result).rc == 0, "of an interface that was never added"
        assert links(box) == ["lo", "net1"]


def test_nothing_is_allowed_by_default(network, box):
    with network().added(box):
        assert wget(box, "http://ok.test/").returncode != 0


def test_ids_that_are_alike(runtimes, network, box):
    """Ids as long as the specification lets them be, which differ at their end only: two gates."""
    ids = ["a" * 127 + last for last in "12"]
    net = network(allow=["ok.test"])
    with runtimes["runc"].start(["sleep", "1000"]) as other, net.added(box, container=ids[0], netns=box.netns), \
            net.added(other, container=ids[1], netns=other.netns):
        assert wget(box, "http://ok.test/hello").stdout == "hello from ok.test\n"
        assert len({(record["job"], record["sandbox"]) for record in net.records("start")}) == 2


def test_version(network):
    answer = network("9.9.9").call("VERSION")
    assert answer.rc == 0 and answer.object == {"cniVersion": "9.9.9", "supportedVersions": VERSIONS}


@pytest.mark.parametrize("config, code, words", [
    ({"cniVersion": "0.2.0"}, 1, "0.4.0, 1.0.0 and 1.1.0"),
    ({"cniVersion": 1}, 1, "is missing"),
    ({"ipam": {"type": "host-local"}}, 2, '"ipam": {"type":"host-local"}'),
    ({"option": ["--deny=ok.test"]}, 2, '"option": ["--deny=ok.test"]: there is no such member'),
    ({"cni.dev": 1}, 2, '"cni.dev": 1'),
    ({"name": "a b"}, 7, "name"),
    ({"name": "lab\0x"}, 6, "NUL"),
    ({"allow": ["ok.test\0.bad.test"]}, 6, "NUL"),
    ({"allow": [1]}, 7, "allow"),
    ({"allow": {"a": 1}}, 7, "allow"),
    ({"allow": ["ok.test:notaport"]}, 100, "notaport"),
    ({"policy": "/nonexistent"}, 100, "/nonexistent"),
    ({"permits": ["a"]}, 7, "permits"),
    ({"acceptRisk": ["all"]}, 7, "net-admin"),
    ({"options": ["--no-such-option"]}, 100, "no-such-option"),
    ({"options": ["--keep"]}, 100, "--keep"),
    ({"options": "--jo=other"}, 100, "--jo=other"),
    ({"runtimeConfig": {"netgate": {"dev.netgate.policy": "p"}}}, 7, "permits"),
    ({"runtimeConfig": {"netgate": {"dev.netgate.policy": 1}}}, 7, "not a text"),
], ids=str)
def test_configuration_that_is_refused(lab, network, box, config, code, words):
    """Nothing is left, and DEL is answered."""
    net = network()
    assert refused(net.call("ADD", box, config=config), code, words)
    assert links(box) == ["lo"] and nothing_attached(lab, box.runtime.site)
    if code not in (1, 6) and "name" not in config:
        assert net.call("DEL", box, config=config).rc == 0


@pytest.mark.parametrize("value", ["netgate-number:7", "a\0b", "\u00fc \u212aind"])
@pytest.mark.parametrize("key", ["note", "n\u00f6te", "Type"])
def test_annotations_that_are_none_of_its_business(lab, network, box, key, value):
    """A pod may have any, and be torn down all the same."""
    net = network(allow=["ok.test"])
    config = {"runtimeConfig": {"io.kubernetes.cri.pod-annotations": {key: value}, "netgate": {key: value}}}
    with net.added(box, config=config) as result:
        assert box.exec(["wget", "-q", "-O", "-", "http://ok.test/hello"]).stdout == "hello from ok.test\n"
        assert net.call("CHECK", box, result, config=config).rc == 0
        assert net.call("GC", config=config | {"cni.dev/valid-attachments": [{"containerID": box.id, "ifname": "eth0"}]}).rc == 0
        assert links(box) == ["lo", "eth0"]
        assert net.call("DEL", box, config=config).rc == 0
        assert links(box) == ["lo"]


@pytest.mark.parametrize("kwargs, words", [
    ({"args": "K=V"}, "\"K\" is unknown"),
    ({"args": "IgnoreUnknown=0;K=V"}, "\"K\" is unknown"),
    ({"args": "IgnoreUnknown=maybe"}, "IgnoreUnknown"),
    ({"args": "K"}, "no KEY=VALUE"),
    ({"interface": "a/b"}, "CNI_IFNAME"),
    ({"interface": "lo"}, "CNI_IFNAME"),
    ({"interface": "0123456789abcdef"}, "CNI_IFNAME"),
    ({"container": "-x"}, "CNI_CONTAINERID"),
    ({"container": "x" * 129}, "CNI_CONTAINERID"),
    ({"netns": "relative"}, "CNI_NETNS"),
], ids=str)
def test_environment_that_is_refused(network, box, kwargs, words):
    assert refused(network().call("ADD", box, **kwargs), 4, words)
    assert links(box) == ["lo"]


def test_unknown_things(lab, network, box, tmp_path):
    net = network()
    assert refused(net.call("FROB", box), 4, "CNI_COMMAND")
    assert refused(net.call("ADD", container="c1", netns="/nonexistent/netns"), 3, "/nonexistent/netns")
    assert refused(net.call("ADD", container="c1", netns="/etc/passwd"), 100, "not a network namespace")
    assert refused(net.call("ADD", container="c1", netns=box.runtime.site.host.net.path), 100, "host's own network")
    assert net.call("DEL", container="never-added", netns="/nonexistent/netns").rc == 0
    done = box.runtime.site.run([os.path.join(lab.folder, "cni", "netgate")], env={"CNI_COMMAND": "VERSION"}, input="{")
    assert done.returncode != 0 and json.loads(done.stdout)["code"] == 6, done


def test_a_second_gate_is_refused(network, box):
    net = network(allow=["ok.test"])
    with net.added(box):
        assert refused(net.call("ADD", box), 100, "already")
        assert refused(net.call("ADD", box, interface="net1"), 100, "already")
        assert wget(box, "http://ok.test/hello").stdout == "hello from ok.test\n"


# What a pod may ask for

@pytest.fixture
def permits(lab):
    path = os.path.join(lab.folder, "cni-policies")
    os.makedirs(path, mode=0o755, exist_ok=True)
    for name, text in {"permit": "version: 1\nallow: [ok.test, other.test]\n", "named": "version: 1\nallow: [other.test]\n",
                       "default": "version: 1\nallow: [example.com]\n"}.items():
        with open(os.path.join(path, name + ".yaml"), "w") as out:
            out.write(text)
    return path


WEB = ["ok.test", "other.test", "example.com"]


@pytest.mark.parametrize("asks, reaches", [
    ({}, ["example.com"]),
    ({"config": {"runtimeConfig": {"io.kubernetes.cri.pod-annotations": {"dev.netgate.allow": "ok.test"}}}}, ["ok.test"]),
    ({"config": {"runtimeConfig": {"netgate": {"dev.netgate.policy": "named"}}}}, ["other.test"]),
    ({"args": ARGS + ";NETGATE_ALLOW=ok.test,other.test"}, ["ok.test", "other.test"]),
], ids=str)
def test_pod_narrows(network, box, permits, asks, reaches):
    with network(permits=permits).added(box, **asks):
        assert [name for name in WEB if wget(box, f"http://{name}/").returncode == 0] == reaches


@pytest.mark.parametrize("asks, code, words", [
    ({"dev.netgate.allow": "example.com"}, 100, "\"example.com\" is not permitted"),
    ({"dev.netgate.allow": "--audit"}, 100, "audit"),
    ({"dev.netgate.allow": "ok.test,*!"}, 100, "not permitted"),
    ({"dev.netgate.policy": "../named"}, 7, "dev.netgate.policy"),
    ({"dev.netgate.policy": "missing"}, 100, "no policy missing"),
    ({"dev.netgate.allow": "", "dev.netgate.policy": "named"}, 7, "dev.netgate.allow is there and empty"),
    ({"dev.netgate.policy": ""}, 7, "dev.netgate.policy is there and empty"),
    ({"dev.netgate.alow": "ok.test"}, 7, "dev.netgate.alow is unknown"),
    ({"dev.netgate.job": "other"}, 100, "other"),
], ids=str)
def test_pod_widens(lab, network, box, permits, asks, code, words):
    answer = network(permits=permits).call("ADD", box, config={"runtimeConfig": {"io.kubernetes.cri.pod-annotations": asks}})
    assert refused(answer, code, words)
    assert links(box) == ["lo"] and nothing_attached(lab, box.runtime.site)


def test_pod_asks_for_nothing_in_words(network, box, permits):
    assert refused(network(permits=permits).call("ADD", box, args="IgnoreUnknown=1;NETGATE_POLICY=named;NETGATE_ALLOW="), 7, "is there and empty")


def test_policy_that_the_network_chose(lab, network, box, permits):
    """A pod may narrow it, and choose no other."""
    net = network(permits=permits, options=["--choose=named"])
    pod = lambda key, value: {"runtimeConfig": {"io.kubernetes.cri.pod-annotations": {f"dev.netgate.{key}": value}}}
    assert refused(net.call("ADD", box, config=pod("policy", "default")), 100, "chosen already")
    assert refused(net.call("ADD", box, config=pod("allow", "ok.test")), 100, "is not permitted")
    assert links(box) == ["lo"] and nothing_attached(lab, box.runtime.site)
    with net.added(box):
        assert [name for name in WEB if wget(box, f"http://{name}/").returncode == 0] == ["other.test"]


def test_pod_asks_for_two_things(network, box, permits):
    answer = network(permits=permits).call("ADD", box, args="NETGATE_POLICY=named",
                                           config={"runtimeConfig": {"netgate": {"dev.netgate.policy": "default"}}})
    assert refused(answer, 7, "twice")


# CHECK, GC, STATUS

def test_check_finds_what_is_wrong(lab, network, box, runtimes):
    net = network(allow=["ok.test"])
    with net.added(box) as result:
        assert refused(net.call("CHECK", box), 7, "prevResult")
        assert refused(net.call("CHECK", box, result | {"ips": []}), 7, "addresses")
        with runtimes["runc"].start(["sleep", "1000"]) as other:
            answer = net.call("CHECK", result=result, container=box.id, netns=other.netns)
            assert refused(answer, 100, "another network namespace")
        # A question that nobody answers leaves a neighbour that is none, and is no way out.
        box.exec(["wget", "-q", "-O", "-", "http://[fd6e:6574:6761:7465::3]/"])
        assert "7465::3 dev eth0" in box.exec(["ip", "neigh"]).stdout
        assert net.call("CHECK", box, result).rc == 0
        enter = ["nsenter", f"--net={box.netns}", "ip"]
        box.runtime.site.run([*enter, "link", "add", "more0", "type", "veth", "peer", "name", "more1"], check=True)
        assert refused(net.call("CHECK", box, result), 100, "more")
        box.runtime.site.run([*enter, "link", "del", "more0"], check=True)
        box.runtime.site.run([*enter, "route", "add", "192.0.2.0/24", "dev", "lo"], check=True)
        assert net.call("CHECK", box, result).rc == 0, "a route that leads nowhere"
        (item,) = attached(lab, box.runtime.site)
        os.kill(item["pid"], signal.SIGKILL)
        wait_for(lambda: links(box) == ["lo"], "the end of the gate")
        assert refused(net.call("CHECK", box, result), 100, "")


def test_gc(lab, network, runtimes):
    """Of this network only, and only what is not in the list."""
    net, others = network(), network(name="others")
    with contextlib.ExitStack() as stack:
        boxes = [stack.enter_context(runtimes["runc"].start(["sleep", "1000"])) for _ in range(3)]
        for one, box in zip([net, net, others], boxes):
            stack.enter_context(one.added(box))
        assert refused(net.call("GC"), 7, "valid-attachments")
        assert refused(network("1.0.0").call("GC"), 1, "1.1.0")
        assert len(attached(lab, boxes[0].runtime.site)) == 3
        valid = [{"containerID": boxes[0].id, "ifname": "eth0"}, {"containerID": boxes[1].id, "ifname": "eth1"}]
        assert net.call("GC", config={"cni.dev/valid-attachments": valid}).rc == 0
        assert links(boxes[1]) == ["lo"]
        assert links(boxes[0]) == links(boxes[2]) == ["lo", "eth0"]
        assert len(attached(lab, boxes[0].runtime.site)) == 2


@pytest.mark.parametrize("config, code, words", [
    ({"policy": "/nonexistent"}, 50, "/nonexistent"),
    ({"permits": "/nonexistent"}, 50, "/nonexistent"),
    ({"permits": "PERMITS", "options": ["--choose=missing"]}, 50, "no policy missing"),
    ({"allow": ["ok.test:notaport"]}, 50, "notaport"),
    ({"options": ["--log=/nonexistent/log"]}, 50, "/nonexistent does not exist"),
    ({"permits": ["a"]}, 7, "permits"),
    ({"ipam": {"type": "host-local"}}, 2, "ipam"),
    ({"\u0001": "\u0001"}, 2, "there is no such member"),
], ids=str)
def test_status_of_a_network_that_no_pod_can_join(network, permits, config, code, words):
    config = {key: permits if value == "PERMITS" else value for key, value in config.items()}
    assert refused(network(**config).call("STATUS"), code, words)


def test_status(lab, network, permits, runtimes, tmp_path):
    given = {"capabilities": {"portMappings": True}, "args": {"labels": []}, "ipMasq": True, "dns": {}, "runtimeConfig": {"portMappings": []},
             "cni.dev/attachments": []}  # by runtimes
    for net in (network(), network(allow=["ok.test"]), network(permits=permits), network(permits=permits, options=["--choose=named"]),
                network(**given)):
        assert net.call("STATUS").rc == 0
        assert not (os.path.exists(net.log) and net.records()) and nothing_attached(lab, net.runtime.site)
    assert refused(network("1.0.0").call("STATUS"), 1, "1.1.0")
    lonely = os.path.join(lab.workspace(), "netgate")
    with open(os.path.join(lab.programs(), "sandbox-net"), "rb") as program, open(lonely, "wb") as out:
        out.write(program.read())
    os.chmod(lonely, 0o755)
    os.rename(lonely, os.path.join(os.path.dirname(lonely), "sandbox-net"))
    done = runtimes["runc"].site.run([os.path.join(os.path.dirname(lonely), "sandbox-net"), "cni"], env={"CNI_COMMAND": "STATUS"},
                                     input=json.dumps(network().config))
    assert done.returncode != 0 and json.loads(done.stdout)["code"] == 50, done


def test_end_with_the_container(lab, network, runtimes):
    """A container that goes without a DEL takes its gate along."""
    net = network(allow=["ok.test"])
    with runtimes["runc"].start(["sleep", "1000"]) as box:
        assert net.call("ADD", box).rc == 0
    wait_for(lambda: net.records("end"), "the end record")
    assert net.records("end")[0]["ended"] == "sandbox_gone"
    assert net.call("DEL", container=box.id).rc == 0


# Real clients

@pytest.fixture
def podman(lab, runtimes, plugins):
    """podman with a network "gated", which allows ok.test."""
    podman = runtimes["podman"]
    log = os.path.join(lab.workspace(), "log.jsonl")
    link = os.path.join(podman.plugins, "netgate")
    os.symlink(os.path.join(lab.programs(), "sandbox-net"), link)
    conflist = os.path.join(podman.networks, "gated.conflist")

    def configure(**config):
        plugin = {"type": "netgate", "options": [f"--log={log}"]} | config
        with open(conflist, "w") as out:
            json.dump({"cniVersion": "0.4.0", "name": "gated", "plugins": [plugin]}, out)
        return podman
    podman.gate_log = log
    yield configure
    os.unlink(conflist)
    os.unlink(link)


def test_podman(lab, podman, images):
    client = podman(allow=["ok.test"])
    options = [f"--volume={lab.ca_file}:{CA}:ro", f"--dns={GATE}"]
    done = client.run(["curl", "-sS", "https://ok.test/hello"], image=images.debian(), network="gated", options=options)
    assert (done.returncode, done.stdout) == (0, "hello from ok.test\n"), done
    done = client.run(["curl", "-sS", "https://bad.test/"], image=images.debian(), network="gated", options=options)
    assert done.returncode != 0 and "hello" not in done.stdout, done
    assert set(lab.web.hellos) == {"ok.test"}
    with client.start(["sleep", "1000"], network="gated") as box:
        assert links(box) == ["lo", "eth0"]
        assert len(attached(lab, client.site)) == 1
    nothing_attached(lab, client.site)


def test_podman_starts_nothing_without_a_gate(lab, podman):
    client = podman(policy="/nonexistent/policy.yaml")
    done = client.run(["echo", "it runs"], network="gated")
    assert done.returncode != 0 and "it runs" not in done.stdout and "/nonexistent/policy.yaml" in done.stderr, done
    assert nothing_attached(lab, client.site)


def test_podman_network_connect(lab, podman):
    """A network that is connected later carries nothing, and the gate ends."""
    client = podman(allow=["ok.test"])
    with open(os.path.join(client.networks, "other.conflist"), "w") as out:
        json.dump({"cniVersion": "0.4.0", "name": "other", "plugins": [
            {"type": "bridge", "bridge": "lab-br", "isGateway": True,
             "ipam": {"type": "host-local", "subnet": "192.0.2.0/24", "dataDir": lab.workspace()}}]}, out)
    try:
        with client.start(["sleep", "1000"], network="gated", options=[f"--dns={GATE}"]) as box:
            assert wget(box, "http://ok.test/hello").stdout == "hello from ok.test\n"
            done = client.client("network", "connect", "other", box.id)
            assert done.returncode == 0, done
            wait_for(lambda: links(box) == ["lo", "eth1"], "the end of the gate's link")
            assert box.exec(["ping", "-c", "1", "-W", "1", "192.0.2.1"]).returncode != 0
            assert client.site.run(["ping", "-c", "1", "-W", "1", "192.0.2.2"]).returncode != 0
    finally:
        client.site.run(["ip", "link", "del", "lab-br"])
        os.unlink(os.path.join(client.networks, "other.conflist"))
    records = read_log(client.gate_log)
    assert (records[-1]["ended"], [record["name"] for record in records if record["type"] == "interface"]) == ("another_interface", ["eth1"])


CTR = """
mount -t tmpfs tmpfs /opt && mount -t tmpfs tmpfs /etc/cni && mkdir -p /opt/cni/bin /etc/cni/net.d || exit
ln -s "$1" /opt/cni/bin/netgate && cp /usr/lib/cni/loopback /opt/cni/bin && cp "$2" /etc/cni/net.d/10-netgate.conflist || exit
shift 2; exec "$@"
"""


def test_ctr(lab, runtimes, plugins, images):
    """containerd's own client, which calls the plugin when the container is made and its first process is still the runtime's own,
    with every capability."""
    docker = runtimes["docker"]
    workspace = lab.workspace()
    log, conflist = os.path.join(workspace, "log.jsonl"), os.path.join(workspace, "gated.conflist")
    with open(conflist, "w") as out:
        json.dump({"cniVersion": "1.0.0", "name": "gated", "plugins": [
            {"type": "netgate", "allow": ["ok.test"], "options": [f"--log={log}"], "acceptRisk": ["net-admin"]}]}, out)
    ctr = ["ctr", f"--address={docker.containerd}", "run", "--rm", "--cni", "--rootfs", "--env=PATH=/usr/bin:/bin",
           f"--cgroup={docker.site.cgroup.boxes}/ctr-cni", images.busybox().rootfs, "ctr-cni"]
    enter = ["unshare", "--mount", "sh", "-c", CTR, "sh", os.path.join(lab.programs(), "sandbox-net"), conflist]
    asking = lambda name: f"wget -q -O - --header 'Host: {name}' http://{v4('web')}/hello"
    done = docker.site.run([*enter, *ctr, "sh", "-c", f"ip -o link; {asking('bad.test')} || {asking('ok.test')}"])
    assert "eth0" in done.stdout and done.stdout.endswith("hello from ok.test\n"), done
    wait_for(lambda: [record for record in read_log(log) if record["type"] == "end"], "the end record")
    decided = {record["host"]: (record["verdict"], record.get("reason")) for record in read_log(log) if record["type"] == "decision"}
    assert (decided["ok.test"][0], decided["bad.test"]) == ("allow", ("deny", "not_allowed"))
    assert {request.headers["host"] for request in lab.web.requests} == {"ok.test"}
    assert nothing_attached(lab, docker.site)
