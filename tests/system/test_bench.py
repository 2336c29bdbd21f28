# SPDX-License-Identifier: Apache-2.0
"""The measurements of bench/ still work: every order to the client does, and the page and the plot come out. No time is judged."""

import glob
import json
import os
import subprocess
import xml.etree.ElementTree

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


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
    for row in result["drops"]:  # a queue between the two may be too short for a flood
        assert row["netgate"]["sent"] >= row["netgate"]["counted"] > 0, row
    base = path.removesuffix(".json")
    with open(f"{base}.md") as page:
        text = page.read()
    assert all(f"### {measure['title']}" in text for measure in result["measures"].values()), text
    assert xml.etree.ElementTree.parse(f"{base}.svg").getroot().tag.endswith("svg")
