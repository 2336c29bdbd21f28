# SPDX-License-Identifier: Apache-2.0
"""For tests of whole programs: one lab for the whole run; each test begins with empty memories of the lab's servers."""

import pytest

from lab import Lab, Result

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


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Adds the last run of netgate to a failure, whole, since assertions show it cut."""
    if call.when == "setup":
        Result.last = None
    outcome = yield
    report = outcome.get_result()
    if report.when == "call" and report.failed and Result.last:
        report.sections.append(("last run of netgate", Result.last.describe()[-SHOWN:]))
