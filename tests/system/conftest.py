# SPDX-License-Identifier: Apache-2.0
"""One lab for the whole run; each test begins with empty memories of the lab's servers."""

import pytest

from lab import Lab


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
