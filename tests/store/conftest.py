from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from store_examples import CONFIG

from algolen.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "experiments.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store.open(path, create=True) as opened:
        opened.add_config(CONFIG)
        yield opened
