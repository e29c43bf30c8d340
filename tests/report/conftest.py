from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from report_examples import Filled

from algolen.store import Store


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Filled]:
    with Store.open(tmp_path / "experiments.sqlite", create=True) as store:
        yield Filled(store)
