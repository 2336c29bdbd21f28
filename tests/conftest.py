# SPDX-License-Identifier: Apache-2.0
"""For tests of whole programs: one lab for the whole run; each test begins with empty memories of the lab's servers."""

import os

import pytest

from lab import Lab, Result
from lab.runtimes import KINDS, Images, Pool

SHOWN = 8000  # characters of a failed test's last run


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


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Adds the last run of netgate to a failure, whole, since assertions show it cut."""
    if call.when == "setup":
        Result.last = None
    outcome = yield
    report = outcome.get_result()
    if report.when == "call" and report.failed and Result.last:
        report.sections.append(("last run of netgate", Result.last.describe()[-SHOWN:]))
