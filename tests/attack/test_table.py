# SPDX-License-Identifier: Apache-2.0
"""The table in docs/threat-model.md is the one of a run: `make attack PYTEST=--write-table` makes it so."""

import pytest

from . import table


def test_document(request):
    if request.config.getoption("--write-table"):
        table.write()
    if not request.config.whole_run:
        pytest.skip("some of the attacks were left out")
    assert table.documented() == table.ROWS.markdown(), "make attack PYTEST=--write-table"
