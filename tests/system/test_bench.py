# SPDX-License-Identifier: Apache-2.0
"""The measurements of bench/ still work: every order to the client does, and the page and the plot come out. No time is judged."""

import glob
import json
import os
import subprocess
import sys
import time
import xml.etree.ElementTree

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(TOP, "bench"))

import common  # noqa: E402
import compare  # noqa: E402
import growth  # noqa: E402
import pytest  # noqa: E402
import report  # noqa: E402
from lab.run import read_log  # noqa: E402
from peers.netgate import Netgate  # noqa: E402


def test_netgate_beside_the_direct_path(tmp_path):
    done = subprocess.run(["/usr/bin/python3", os.path.join(TOP, "bench", "run.py"), "--seconds", "4", "--only", "compare", "drops",
                           "--peers", "netgate", "--results", str(tmp_path)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, (done.stdout, done.stderr)
    [path] = glob.glob(f"{tmp_path}/*.json")
    with open(path) as file:
        result = json.load(file)
    assert set(result["peers"]) == {"netgate", "direct"}
    for key, measure in result["measures"].items():
        pairs = measure["peers"]["netgate"]
        assert len(pairs) == result["rounds"], key
        for own, direct in pairs:
            assert own["failed"] == direct["failed"] == 0 and own["value"] > 0 and direct["value"] > 0, (key, own, direct)
            assert own["cpu"] > 0, (key, own)
            for machine in (own["machine"], direct["machine"]):
                assert machine["stolen"] >= 0 < machine["all"] >= machine["busy"] - 0.001, (key, machine)
    for row in result["drops"]:  # a queue between the two may be too short for a flood
        assert row["netgate"]["sent"] >= row["netgate"]["counted"] > 0, row
    base = path.removesuffix(".json")
    with open(f"{base}.md") as page:
        text = page.read()
    assert all(f"### {measure['title']}" in text for measure in result["measures"].values()), text
    assert xml.etree.ElementTree.parse(f"{base}.svg").getroot().tag.endswith("svg")


def test_who_connects_need_not_search_for_a_port():
    """Neither the sandbox nor netgate on the lab's host: that search would be measured, and grows with the connections of a minute."""
    with common.Bench() as bench, growth.started(bench) as (workspace, running):
        running += [growth.Sandbox(bench, workspace) for _ in range(2)]
        for p50, p99 in (growth.latency(running[0], []), growth.latency(running[0], running[1:])):
            assert 0 < p50 <= p99
        clients = [pid for one in running for pid in common.family(one.process.pid) if common.name(pid) == "client"]
        for netns in (bench.lab.host.net.path, *(f"/proc/{pid}/ns/net" for pid in clients)):
            reuse = subprocess.run(["nsenter", f"--net={netns}", "cat", "/proc/sys/net/ipv4/tcp_tw_reuse"], check=True,
                                   capture_output=True, text=True, timeout=60).stdout
            assert reuse == "1\n", netns
        assert len(clients) == 2


def test_what_the_machine_spent():
    """At least what a process here did; the rest is others' work. `/proc/stat` has three figures, each in steps of 10 ms."""
    before, end = common.machine_cpu(), time.process_time() + 0.5
    while time.process_time() < end:
        pass
    spent = {key: now - before[key] for key, now in common.machine_cpu().items()}
    assert 0.47 <= spent["busy"] + spent["stolen"] <= spent["all"] + 0.001, spent


def test_share_of_direct_if_every_cpu_were_busy():
    """Rounds are summed before they are divided, and what was stolen could not have been busy."""
    runs = [{"done": 0.01, "machine": {"all": 2, "busy": 0.5, "stolen": 1}}, {"done": 0.03, "machine": {"all": 2, "busy": 1.5, "stolen": 0}}]
    assert report.of_machine(runs, 0.5, 0) == ["50", "67%", "0.75"]
    assert report.of_machine([], 0, 0) == ["–"] * 3


def test_each_job_has_a_netgate_of_its_own():
    measure = next(measure for measure in compare.MEASURES if measure.key == "connections_jobs")
    with common.Bench() as bench:
        jobs = compare.Contestant(bench, Netgate, measure.jobs)
        try:
            jobs.start()
            pids = [pid for peer in jobs.peers for pid in peer.pids()]
            found = jobs.run(measure, 1)
        finally:
            jobs.close()
        granted = [sum(record["type"] == "decision" and record["verdict"] == "allow" for record in read_log(peer.running.log))
                   for peer in jobs.peers]
    assert len(jobs.peers) == measure.jobs and len(pids) == len(set(pids))
    assert found["value"] > 0 and found["failed"] == 0
    assert min(granted) > 0 and sum(granted) >= found["done"] * 1e6, (granted, found)


class Answering:
    """A client whose answers are known."""

    def __init__(self, *answers):
        self._answers = list(answers)

    def begin(self, order):
        pass

    def end(self, order):
        answer = self._answers.pop(0)
        if not answer["ok"]:
            raise common.OrderFailed(order, answer)
        return answer


def test_clients_together():
    """Their counts are summed, their times those of the slowest; after a failure nobody's answer is left for the next order."""
    good = [{"ok": True, "ns": ns, "done": ns, "failed": 1, "p50_us": ns} for ns in (3, 4)]
    clients = [Answering({"ok": False}, good[0]), Answering(good[0], good[1])]
    with pytest.raises(common.OrderFailed):
        common.tell_all(clients, "x")
    assert common.tell_all(clients, "x") == {"ok": True, "ns": 4, "done": 7, "failed": 2, "p50_us": 4}
