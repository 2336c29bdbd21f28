# SPDX-License-Identifier: Apache-2.0
"""The attacker's hands inside a bare command: runs what the test asks for on stdin, one JSON object a line each way."""

import json
import os
import signal
import subprocess
import sys

children = []


def start(argv, env):
    with open(f"out.{len(children)}", "wb") as out, open(f"err.{len(children)}", "wb") as err:
        try:
            children.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=os.environ | env,
                                             start_new_session=True))
        except OSError as error:
            return {"error": str(error)}
    return {"id": len(children) - 1}


def end(number):
    try:
        os.killpg(children[number].pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    return wait(number, None)


def wait(number, timeout):
    try:
        rc = children[number].wait(timeout)
    except subprocess.TimeoutExpired:
        return {}
    with open(f"out.{number}", errors="replace") as out, open(f"err.{number}", errors="replace") as err:
        return {"rc": rc, "out": out.read(), "err": err.read()}


print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    call, *args = json.loads(line)
    print(json.dumps({"start": start, "end": end, "wait": wait}[call](*args)), flush=True)
# Whatever still runs would keep the sandbox alive.
for number in range(len(children)):
    end(number)
