"""Discovery, and plug-ins: the same rights as the built-in ones, run only when named, hashed as they were run."""

from __future__ import annotations

import ast
import hashlib
import json
from pathlib import Path

import pytest

from algolen import registry
from algolen.encodings.base import Encoding
from algolen.errors import UserError
from algolen.task import Task
from tests.conftest import SMOKE, CommandLine

ROOT = Path(registry.__file__).parent

ECHO = '''
"""A task: say again what was said, `[EOS] 3 1 4 = 3 1 4`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field

from algolen.batch import Batch, Structure
from algolen.task import Layout, Task

@dataclass(frozen=True)
class Echo(Task):
    """Repeats its input."""

    name = "echo"
    version = 1
    source = "a test"
    layout = Layout.SUFFIX
    symbols: Annotated[int, Field(ge=2, le=9, description="how many different ones")] = 5

    @property
    def vocabulary(self):
        return ("[PAD]", "[EOS]", "=", *"123456789")

    def tape_length(self, length):
        return 2 * length + 2

    def sample(self, lengths_B, random):
        length = int(lengths_B.max())
        said_BL = random.integers(3, 3 + self.symbols, length)
        batch = len(lengths_B)
        eos_B1 = torch.ones(batch, 1, dtype=torch.long, device=random.device)
        tape_BT = torch.cat([eos_B1, said_BL, 2 * eos_B1, said_BL, eos_B1], dim=1)
        scored_BT = (torch.arange(2 * length + 2, device=random.device) > length).expand(batch, -1)
        return Batch(
            tokens_BT=tape_BT[:, :-1],
            targets_BT=tape_BT[:, 1:],
            trained_BT=scored_BT,
            scored_BT=scored_BT,
            unit_BT=scored_BT.long() - 1,
            stratum_BT=torch.zeros_like(tape_BT[:, 1:]),
            valid_BT=torch.ones_like(scored_BT),
            size_BA=lengths_B.to(random.device)[:, None],
            structure=Structure(),
            padded=False,
        )

    def structure(self, tokens_BT, size_BA):
        return Structure()

    def oracle(self, symbols):
        at = symbols.index("=")
        return dict(enumerate([*symbols[1:at], "[EOS]"], start=at))

    def chance(self, length):
        return self.symbols**-length

    def input_blind(self, length):
        return self.symbols**-length
'''

SCALED = '''
"""An encoding: half of all logits, and a learned bias against distance."""

from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field
from torch import nn

from algolen.encodings.base import Encoding

@dataclass(frozen=True)
class ScaledOptions:
    slope: Annotated[float, Field(gt=0, description="where the bias starts")] = 0.5

class Scaled(Encoding):
    """Scales the logits and keeps close."""

    name = "scaled"
    kind = "bias"
    paper = "a test"
    reads_ids = True
    Options = ScaledOptions

    def __init__(self, options, shape, init):
        super().__init__(options, shape, init)
        self.slope = nn.Parameter(torch.full((shape.heads, 1, 1), options.slope))

    def bias(self, site):
        ids_BT = site.ids_BTA[..., 0]
        return -self.slope * (ids_BT[:, None, :, None] - ids_BT[:, None, None, :]).abs()
'''

WATCHED = "from pathlib import Path\nPath('ran').touch()\n"


def subclasses_in_source(folder: Path, base: str) -> set[str]:
    """The names of all classes in a folder's files that derive from `base` and that none of the others derives from,
    read without importing anything."""
    parents = {
        node.name: {ast.unparse(parent) for parent in node.bases}
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    }
    found = {base}
    while more := {name for name in parents if parents[name] & found} - found:
        found |= more
    return found - {base} - {parent for name in found & parents.keys() for parent in parents[name]}


def test_every_class_in_the_folders_is_found() -> None:
    found = registry.load()
    assert {cls.__name__ for cls in found.tasks.values()} >= subclasses_in_source(ROOT / "tasks", "Task")
    assert {cls.__name__ for cls in found.encodings.values()} >= subclasses_in_source(ROOT / "encodings", "Encoding")
    assert all(issubclass(cls, Task) for cls in found.tasks.values())
    assert all(issubclass(cls, Encoding) for cls in found.encodings.values())
    assert all(cls.name == name for name, cls in [*found.tasks.items(), *found.encodings.items()])


def test_the_core_names_no_task_and_no_encoding() -> None:
    names = {*registry.load().tasks, *registry.load().encodings} - {"nope"}
    core = ("registry", "config", "experiment", "execution", "model", "task", "batch", "options")
    strings = {
        node.value
        for name in core
        for node in ast.walk(ast.parse((ROOT / f"{name}.py").read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert names & strings == set()


def test_a_plugin_is_known_by_the_hash_of_the_source_that_ran(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(SCALED)
    assert registry.load([path]).plugins == {"scaled": hashlib.sha256(SCALED.encode()).hexdigest()}
    assert sorted(file.name for file in tmp_path.iterdir()) == ["mine.py"]


def test_a_plugin_that_changed_within_a_second_is_run_as_it_is_now(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    for paper in ("first", "other"):
        path.write_text(SCALED.replace("a test", paper))
        assert registry.load([path]).encodings["scaled"].paper == paper


def test_two_plugins_cannot_bring_one_name(tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(SCALED + f"# {name}\n")
    with pytest.raises(UserError, match=r"b.py: the name 'scaled' is taken; give Scaled another"):
        registry.load([tmp_path / "a.py", tmp_path / "b.py"])


def test_one_file_may_bring_tasks_and_encodings(tmp_path: Path) -> None:
    path = tmp_path / "both.py"
    path.write_text(ECHO.replace("from __future__ import annotations\n", "") + SCALED)
    found = registry.load([path])
    assert {"echo", "scaled"} == found.plugins.keys()
    assert "echo" in found.tasks
    assert "scaled" in found.encodings


def test_a_plugin_runs_only_where_it_is_named(algolen: CommandLine) -> None:
    algolen.write("mine.py", SCALED + WATCHED)
    for command in (["tasks"], ["encodings"], ["sample", "addition"], ["doctor"], [*SMOKE, "--dry-run"]):
        assert algolen(*command).code == 0
    assert not (algolen.folder / "ran").exists()
    assert algolen("encodings", "--plugin", "mine.py").code == 0
    assert (algolen.folder / "ran").exists()


def test_plugins_are_listed_and_described_like_the_others(algolen: CommandLine) -> None:
    plugins = ("--plugin", algolen.write("echo.py", ECHO), "--plugin", algolen.write("scaled.py", SCALED))
    tasks = json.loads(algolen("tasks", *plugins, "--json").stdout)
    encodings = json.loads(algolen("encodings", *plugins, "--json").stdout)
    assert {"addition", "echo"} <= {task["name"] for task in tasks}
    assert {"coupling", "scaled"} <= {pe["name"] for pe in encodings}
    described = algolen("encodings", "scaled", *plugins).stdout
    assert "Scales the logits and keeps close." in described
    assert "scaled.slope" in described
    assert "echo.symbols" in algolen("tasks", "echo", *plugins).stdout


def test_plugins_are_sampled_like_the_others(algolen: CommandLine) -> None:
    plugins = ("--plugin", algolen.write("echo.py", ECHO), "--plugin", algolen.write("scaled.py", SCALED))
    settings = ("--set", "echo.symbols=2", "--set", "scaled.slope=1")
    done = algolen("sample", "echo", "--length", "4", "--pe", "scaled", "--json", *settings, *plugins)
    first = json.loads(done.stdout)[0]
    assert first["input"][1:5] == first["input"][6:] == first["target"][5:9]
    assert set(first["input"][1:5]) <= {"1", "2"}
    assert first["streams"]["sequence"] == list(range(10))


@pytest.fixture
def plugged(algolen: CommandLine) -> CommandLine:
    """A folder in which a plug-in task was trained with a plug-in encoding."""
    algolen.write("echo.py", ECHO)
    algolen.write("scaled.py", SCALED)
    done = algolen(*SMOKE, "--task", "echo", "--pe", "offset+scaled", "--set", "train.steps=5", *PLUGGED)
    assert done.code == 0, done.stderr
    return algolen


PLUGGED = ("--plugin", "echo.py", "--plugin", "scaled.py")


def test_a_plugin_trains_and_is_swept_again_like_the_others(plugged: CommandLine) -> None:
    shown = json.loads(plugged("show", plugged.run, "--json").stdout)
    assert shown["run"]["status"] == "done"
    assert shown["config"]["plugins"] == {
        "echo": hashlib.sha256(ECHO.encode()).hexdigest(),
        "scaled": hashlib.sha256(SCALED.encode()).hexdigest(),
    }
    again = plugged("eval", plugged.run, "--test-lengths", "9", "--examples", "100", *PLUGGED)
    assert (again.code, "1 test set swept" in again.stderr) == (0, True)


def test_another_source_is_another_run(plugged: CommandLine) -> None:
    before = plugged.run
    plugged.write("scaled.py", SCALED + "# a remark\n")
    settings = ("--task", "echo", "--pe", "offset+scaled", "--set", "train.steps=5")
    assert plugged(*SMOKE, *settings, *PLUGGED, "--dry-run").stdout.count(before.rpartition("-")[0]) == 0
    plugged.write("scaled.py", SCALED)
    assert plugged(*SMOKE, *settings, *PLUGGED, "--dry-run").stdout.count(before.rpartition("-")[0]) == 1


@pytest.mark.parametrize(
    ("changed", "plugins", "said"),
    [
        ("", (), "'echo' comes from a plug-in that is not loaded: name its file"),
        ("", PLUGGED[:2], "'scaled' comes from a plug-in that is not loaded: name its file"),
        ("# a remark\n", PLUGGED, "'scaled' comes from a plug-in that has changed since"),
    ],
)
def test_eval_refuses_a_plugin_that_is_missing_or_changed(
    plugged: CommandLine, changed: str, plugins: tuple[str, ...], said: str
) -> None:
    plugged.write("scaled.py", SCALED + changed)
    before = plugged.files()
    refused = plugged("eval", plugged.run, "--test-lengths", "9", *plugins)
    assert (refused.code, refused.stdout) == (2, "")
    assert said in refused.stderr
    assert plugged.files() == before


def test_reports_of_plugins_need_no_plugin(plugged: CommandLine) -> None:
    assert "offset+scaled" in plugged("report").stdout
    assert "offset+scaled" in plugged("show", plugged.run).stdout
