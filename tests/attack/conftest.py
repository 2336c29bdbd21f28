# SPDX-License-Identifier: Apache-2.0
"""Each attack is made twice, as a bare command and as root in its own namespace, beside a sandbox that works on; the table is shown at the end."""

import functools

import pytest

from . import table
from .attempt import Attempt
from .neighbour import Neighbour
from .sandboxes import SANDBOXES


def pytest_addoption(parser):
    parser.addoption("--write-table", action="store_true", help="write the table of this run into docs/threat-model.md")


def pytest_collection_modifyitems(session, config, items):
    """The test of the document comes last, and only a whole run can tell."""
    items.sort(key=lambda item: item.name == "test_document")
    config.whole_run = not config.option.keyword and not config.option.markexpr and len(config.args) == 1


def pytest_terminal_summary(terminalreporter):
    if len(table.ROWS):
        terminalreporter.section("attacks")
        terminalreporter.write(table.ROWS.markdown())


@pytest.fixture(scope="session")
def neighbour(whole_lab):
    beside = Neighbour(whole_lab)
    yield beside
    beside.close()


@pytest.fixture(params=list(SANDBOXES))
def mode(request):
    return request.param


@pytest.fixture
def attack(lab, mode, neighbour):
    """Attempt, for one mode: `with attack("technique") as attempt`. The sandbox beside must not notice it."""
    first = len(neighbour.samples)
    neighbour.news()
    yield functools.partial(Attempt, lab, mode)
    neighbour.settle(1)
    assert {sample["status"] for sample in neighbour.samples[first:]} == {200}
    strange = [record for record in neighbour.news()
               if record["type"] not in ("decision", "dial", "close", "process") or record.get("verdict") == "deny"]
    assert strange == []
