# SPDX-License-Identifier: Apache-2.0
"""The two places from which is attacked, with one interface: a command that netgate starts, and root with every
capability in the namespaces that the gate is attached to."""

import json
import os
import shutil
import subprocess

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


class Sandbox:
    """Programs are started by an agent (agent.py) that runs where the attacker is."""

    def __init__(self, lab, args):
        self.lab, self.workspace = lab, lab.workspace()
        shutil.copy(os.path.join(HERE, "agent.py"), self.workspace)
        self.running = lab.start(args, AGENT, workspace=self.workspace, stdin=subprocess.PIPE)
        self.agent = self.running.process
        try:
            self.enter()
        except BaseException:
            self.kill()
            raise

    def enter(self):
        self._answer()

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
        self.running.kill()


class Bare(Sandbox):
    """As root's command, that is, without a capability, and behind seal and seccomp."""


class Root(Sandbox):
    """Every capability in the user namespace that owns the sandbox's network namespace; no seal, no seccomp."""

    def enter(self):
        self._answer()
        pid = next(pid for pid, name in self.running.processes().items() if name == "python3")
        command = ["nsenter", f"--user=/proc/{pid}/ns/user", f"--net=/proc/{pid}/ns/net", *AGENT]
        self.agent = subprocess.Popen(self.lab.host.command(command, cwd=self.workspace), stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      env=self.lab.environment(self.workspace) | {"TERM": "dumb"})
        self._answer()

    def close(self):
        self.agent.communicate(timeout=60)
        return super().close()

    def kill(self):
        if self.agent is not self.running.process:
            self.agent.kill()
            self.agent.communicate()
        super().kill()


SANDBOXES = {"bare": Bare, "root": Root}
