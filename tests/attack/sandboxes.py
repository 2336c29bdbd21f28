# SPDX-License-Identifier: Apache-2.0
"""The two places from which is attacked, with one interface: a command that netgate starts, and root with every
capability in the namespaces that the gate is attached to."""

import contextlib
import json
import os
import shutil
import subprocess

from lab.attached import Gate, Sandbox

HERE = os.path.dirname(os.path.abspath(__file__))
AGENT = ["/usr/bin/python3", "agent.py"]


class Done:
    """How a program in the sandbox ended; `rc` is negative for a signal."""

    def __init__(self, rc, out, err):
        self.rc, self.out, self.err = rc, out, err

    @property
    def shown(self):
        """What a script handed over with show()."""
        return [json.loads(line) for line in self.out.splitlines()]

    def __repr__(self):
        return f"rc {self.rc}\n--- out\n{self.out}\n--- err\n{self.err}"


class Bare:
    """As root's command, that is, without a capability, and behind seal and seccomp.

    Programs are started by an agent (agent.py) that runs where the attacker is.
    """

    def __init__(self, lab, args):
        self.lab, self.running, self.agent = lab, None, None
        try:
            self.enter(args)
            self._answer()
        except BaseException:
            self.kill()
            raise

    def enter(self, args):
        self._make_workspace()
        self.running = self.lab.start(args, AGENT, workspace=self.workspace, stdin=subprocess.PIPE)
        self.agent = self.running.process

    def _make_workspace(self, user=None):
        self.workspace = self.lab.workspace(user)
        shutil.copy(os.path.join(HERE, "agent.py"), self.workspace)

    def _answer(self):
        line = self.agent.stdout.readline()
        assert line, f"the agent ended: {self.agent.stderr.read().decode()}"
        return json.loads(line)

    def _call(self, *words):
        self.agent.stdin.write(json.dumps(words).encode() + b"\n")
        self.agent.stdin.flush()
        return self._answer()

    @property
    def records(self):
        return self.running.records

    def start(self, argv, env=None):
        answer = self._call("start", list(argv), env or {})
        assert "id" in answer, answer
        return answer["id"]

    def wait(self, number, seconds):
        """The program as Done when it ended within that time, or None."""
        answer = self._call("wait", number, seconds)
        return Done(**answer) if answer else None

    def end(self, number):
        """Ends the program and all that it started."""
        return Done(**self._call("end", number))

    def close(self):
        """Ends the job in order, and returns its Result."""
        return self.running.finish(b"")

    def kill(self):
        if self.running:
            self.running.kill()


class Root(Bare):
    """Root in namespaces that an ordinary user made and that root attached to a gate: it has every capability over the
    sandbox's network and none outside; no seal, no seccomp, and the host's processes in sight."""

    def enter(self, args):
        self._things = contextlib.ExitStack()
        self._make_workspace(self.lab.user)
        self.box = self._things.enter_context(Sandbox(self.lab, self.lab.user))
        self.gate = self._things.enter_context(Gate(self.lab, args))
        done = self.gate.attach(self.box, "--name", "attacker")
        assert done.returncode == 0, done
        self.running = self.gate.running
        self.agent = subprocess.Popen(self.box.command(AGENT, self.workspace), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, env=self.lab.environment(self.workspace) | {"TERM": "dumb"})

    def close(self):
        self.agent.communicate(timeout=60)
        self.box.close()
        return self.gate.finish()

    def kill(self):
        if self.agent:
            self.agent.kill()
            self.agent.communicate()
        self._things.close()


SANDBOXES = {"bare": Bare, "root": Root}
