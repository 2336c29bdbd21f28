# SPDX-License-Identifier: Apache-2.0
"""An interface that somebody outside adds to a sandbox when it has its gate already: nothing gets over it, either way, and it is on record."""

import json

import pytest

from lab import wait_for
from lab.attached import Sandbox, attached
from lab.late import EVERYWHERE, Late


def late(lab, sandbox):
    return Late(lab.host, f"/proc/{sandbox.pid}/ns/net")


def test_nothing_in_the_way(lab):
    """Without a gate: so that the rest means something."""
    with Sandbox(lab, caps=False) as box, late(lab, box).added():
        wait_for(lambda: late(lab, box).reached() == EVERYWHERE, "answers from everywhere")


@pytest.mark.parametrize("own_user", [True, False], ids=["userns", "hosts"])
def test_added_to_a_sandbox(lab, own_user):
    """Its gate ends as well: whoever has another network has no gate."""
    with Sandbox(lab, caps=False, own_user=own_user) as sandbox, attached(lab, ["ok.test"], sandbox=sandbox) as box:
        assert box.run(["curl", "-sS", "http://ok.test/hello"]).stdout == "hello from ok.test\n"
        with late(lab, sandbox).added():
            result = box.gate.finish()
            assert late(lab, sandbox).reached() == set()
            assert box.links() == ["lo", "later"]
        assert [record["name"] for record in result.records if record["type"] == "interface"] == ["later"]
        assert (result.rc, result.records[-1]["ended"]) == (0, "another_interface"), result
        assert "another interface was added to it" in result.err, result


def test_in_the_place_of_the_gates(lab):
    """Its name and its number are free when the gate has died. The rules that stay mean neither."""
    with Sandbox(lab, caps=False, own_user=False) as sandbox, attached(lab, ["ok.test"], sandbox=sandbox) as box:
        (link,) = (link for link in json.loads(box.run(["ip", "-j", "link"]).stdout) if link["ifname"] == "eth0")
        box.gate.running.kill()
        wait_for(lambda: box.links() == ["lo"], "the end of the gate's link")
        there = Late(lab.host, f"/proc/{sandbox.pid}/ns/net", "eth0", link["ifindex"])
        with there.added():
            assert there.reached() == set()


def test_added_but_down(lab):
    """Kernels put tunnel devices into every namespace. What is down carries nothing, and nobody in there can change that."""
    with Sandbox(lab, caps=False) as sandbox, attached(lab, ["ok.test"], sandbox=sandbox) as box:
        with late(lab, sandbox).added(up=False):
            assert box.run(["curl", "-sS", "http://ok.test/hello"]).stdout == "hello from ok.test\n"
        assert box.records("interface") == []
        assert box.finish().records[-1]["ended"] == "sandbox_gone"


@pytest.mark.parametrize("who", ["root", "user"])
def test_sandbox_with_interfaces_of_its_own(lab, who):
    """It can make them and may need them. They are on record, the gate goes on, and so does what comes from outside."""
    user = lab.user if who == "user" else None
    with attached(lab, ["ok.test"], user=user) as box:
        assert box.run(["ip", "link", "add", "own", "up", "type", "bridge"]).returncode == 0
        wait_for(lambda: [record["name"] for record in box.records("interface")] == ["own"], "a record of it")
        with late(lab, box.sandbox).added():
            wait_for(lambda: [record["name"] for record in box.records("interface")] == ["own", "later"], "a record of the other")
            wait_for(lambda: late(lab, box.sandbox).reached() == EVERYWHERE, "answers from everywhere")
            assert box.run(["curl", "-sS", "http://ok.test/hello"]).stdout == "hello from ok.test\n"
        assert box.finish().records[-1]["ended"] == "sandbox_gone"


def test_many_interfaces(lab):
    """The first ones are on record; a sandbox can't fill the disk with them."""
    with attached(lab, ["ok.test"]) as box:
        done = box.run(["sh", "-ec", "for i in $(seq 100); do ip link add d$i up type bridge; ip link del d$i; done"])
        assert done.returncode == 0, done
        assert box.run(["curl", "-sS", "http://ok.test/hello"]).stdout == "hello from ok.test\n"
        result = box.finish()
    assert 1 <= len([record for record in result.records if record["type"] == "interface"]) <= 16
