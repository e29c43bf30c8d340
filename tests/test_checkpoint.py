"""Checkpoints: what was written is read, whole or not at all, and nothing in a file is ever executed."""

from __future__ import annotations

import hashlib
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from algolen import checkpoint
from algolen.checkpoint import Checkpoint
from algolen.errors import UserError

CPU = torch.device("cpu")

WRITER = """
import sys
from pathlib import Path
import torch
from algolen.checkpoint import Checkpoint, write
torch.set_num_threads(1)
for version in range(int(sys.argv[2])):
    write(Path(sys.argv[1]), Checkpoint({"model.w": torch.full((20_000,), float(version))}, {"step": str(version)}))
"""


class Executed:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (exec, ("open('executed', 'w').close()",))


@given(
    st.dictionaries(st.text(st.characters(codec="ascii", categories=["L", "N"])), st.integers(0, 9), max_size=4),
    st.dictionaries(st.text(), st.text(), max_size=4),
)
def test_what_was_written_is_read(sizes: dict[str, int], facts: dict[str, str]) -> None:
    tensors = {f"model.{name}": torch.randn(size, 2) for name, size in sizes.items()}
    tensors["step"] = torch.tensor(7)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a" / "b" / "last.safetensors"
        checkpoint.write(path, Checkpoint(tensors, facts))
        found = checkpoint.read(path, CPU)
        assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert found.facts == facts
    assert found.tensors.keys() == tensors.keys()
    assert all(torch.equal(found.tensors[name], tensor) for name, tensor in tensors.items())
    assert found.part("model").keys() == sizes.keys()


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool])
def test_tensors_keep_their_type_and_values_whatever_their_layout(tmp_path: Path, kind: torch.dtype) -> None:
    tensor = torch.arange(24).reshape(4, 6).to(kind).T
    checkpoint.write(tmp_path / "x", Checkpoint({"x": tensor}, {}))
    found = checkpoint.read(tmp_path / "x", CPU).tensors["x"]
    assert found.dtype == kind
    assert torch.equal(found, tensor)


def test_the_hash_returned_is_that_of_the_file(tmp_path: Path) -> None:
    sha256 = checkpoint.write(tmp_path / "x", Checkpoint({"x": torch.ones(3)}, {"step": "1"}))
    assert sha256 == hashlib.sha256((tmp_path / "x").read_bytes()).hexdigest()


def test_a_reader_sees_one_whole_checkpoint_after_another_while_they_are_written(tmp_path: Path) -> None:
    path, versions = tmp_path / "last.safetensors", 150
    checkpoint.write(path, Checkpoint({"model.w": torch.full((20_000,), -1.0)}, {"step": "-1"}))
    seen = []
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(versions)]) as writer:
        while writer.poll() is None:
            found = checkpoint.read(path, CPU)
            step = int(found.facts["step"])
            assert bool((found.tensors["model.w"] == step).all())
            seen.append(step)
    assert writer.returncode == 0
    assert seen == sorted(seen)
    assert len(set(seen)) > 3, "the reader has to have met several versions"
    assert checkpoint.read(path, CPU).facts["step"] == str(versions - 1)
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_leaves_the_old_checkpoint_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "last.safetensors"
    checkpoint.write(path, Checkpoint({"x": torch.ones(3)}, {"step": "1"}))
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        checkpoint.write(path, Checkpoint({"x": torch.zeros(3)}, {"step": "2"}))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("how", ["pickle", "torch"])
def test_a_pickle_is_refused_and_not_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "last.safetensors"
    if how == "pickle":
        path.write_bytes(pickle.dumps(Executed()))
    else:
        torch.save({"x": Executed()}, path)
    with pytest.raises(UserError, match=r"last.safetensors' is not a readable checkpoint"):
        checkpoint.read(path, CPU)
    assert not Path("executed").exists()


@pytest.mark.parametrize("size", [0, 4, 8, 40, -1])
def test_a_file_that_was_cut_is_refused(tmp_path: Path, size: int) -> None:
    path = tmp_path / "last.safetensors"
    checkpoint.write(path, Checkpoint({"x": torch.ones(30)}, {"step": "1"}))
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(UserError, match="is not a readable checkpoint"):
        checkpoint.read(path, CPU)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a readable checkpoint"):
        checkpoint.read(tmp_path / "none", CPU)
