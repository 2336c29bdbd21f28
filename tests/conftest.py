# SPDX-License-Identifier: Apache-2.0
"""For tests of whole programs: one lab for the whole run; each test begins with empty memories of the lab's servers."""

import collections
import os
import platform
import signal
import subprocess

import pytest

from lab import Lab, Result
from lab.runtimes import KINDS, Images, Pool

# Numbers of system calls, for inject(): hardly any is the same on every architecture.
CALLS = {"x86_64": {"openat": 257, "execve": 59, "socket": 41, "kill": 62, "ptrace": 101, "setns": 308, "mount": 165, "clone": 56,
                    "sendto": 44, "write": 1, "setuid": 105},
         "aarch64": {"openat": 56, "execve": 221, "socket": 198, "kill": 129, "ptrace": 117, "setns": 268, "mount": 40, "clone": 220,
                     "sendto": 206, "write": 64, "setuid": 146}}[platform.machine()]
SHOWN = 8000  # characters of a failed test's last run
RUNS = collections.deque(maxlen=4)  # what the programs that were run to their end have said

# What a shell's `&` or nohup(1) left ignored would be ignored by every program that is tested.
for _signal in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(_signal) is signal.SIG_IGN:
        signal.signal(_signal, signal.default_int_handler if _signal == signal.SIGINT else signal.SIG_DFL)


def _recorded(*args, _run=subprocess.run, **kwargs):
    done = _run(*args, **kwargs)
    RUNS.append(done)
    return done


# For a failed test's report: many assertions are about one stream only.
subprocess.run = _recorded


@pytest.fixture(scope="session")
def whole_lab():
    with Lab() as lab:
        yield lab


@pytest.fixture
def lab(whole_lab):
    whole_lab.reset()
    return whole_lab


@pytest.fixture(params=["root", "user"])
def who(request, whole_lab):
    """Runs a test twice: as root (None) and as an ordinary user."""
    return whole_lab.user if request.param == "user" else None


@pytest.fixture(scope="session")
def images(whole_lab):
    return Images(os.path.join(whole_lab.build, "images"))


@pytest.fixture(scope="session")
def runtimes(whole_lab, images):
    """The container runtimes, by their names in KINDS. Each starts with the first test that asks for it."""
    with Pool(whole_lab, images) as pool:
        yield pool


@pytest.fixture(params=KINDS)
def runtime(request, lab, runtimes):
    """Runs a test with each of the runtimes."""
    return runtimes[request.param]


def compiled(lab, name):
    """The program that tests/system/NAME.c becomes."""
    program = os.path.join(lab.folder, name)
    subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-D_GNU_SOURCE", "-O1", "-pthread", "-o", program,
                    os.path.join(os.path.dirname(__file__), "system", f"{name}.c")], check=True)
    return program


@pytest.fixture(scope="session")
def restless(whole_lab):
    """restless.c's program."""
    return compiled(whole_lab, "restless")


@pytest.fixture(scope="session")
def inject(whole_lab):
    """inject(pid, call, *args): what the process gets for this system call, made by inject.c, or "SIGSYS" when that was its end."""
    program = compiled(whole_lab, "inject")

    def run(pid, call, *args):
        words = [str(arg) if isinstance(arg, int) else "@" + (arg.encode() if isinstance(arg, str) else arg).hex() for arg in args]
        done = subprocess.run([program, str(pid), str(CALLS[call]), *words],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done
        word, number = done.stdout.splitlines()[0].split()
        return int(number) if word == "result" else signal.Signals(int(number)).name

    return run


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Adds the last run of netgate to a failure, whole, since assertions show it cut, and the last runs of anything."""
    if call.when == "setup":
        Result.last = None
        RUNS.clear()
    outcome = yield
    report = outcome.get_result()
    if report.when == "call" and report.failed and Result.last:
        report.sections.append(("last run of netgate", Result.last.describe()[-SHOWN:]))
    if report.failed and RUNS:
        report.sections.append(("last runs", "\n".join(repr(done)[-SHOWN:] for done in RUNS)))


TABLES = pytest.StashKey()


@pytest.fixture(scope="session")
def tables(request):
    """A list of (title, heading, function that returns the rows): tables of texts, shown at the end of the run."""
    return request.config.stash.setdefault(TABLES, [])


def pytest_terminal_summary(terminalreporter, config):
    for title, heading, rows in config.stash.get(TABLES, []):
        lines = [heading, *rows()]
        widths = [max(len(line[column]) for line in lines) for column in range(len(heading))]
        terminalreporter.section(title)
        for line in lines:
            terminalreporter.write_line("  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip())
