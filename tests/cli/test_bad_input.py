"""Whatever is wrong with a request: one line on stderr that says what and the nearest right thing, exit code 2, and
nothing written."""

from __future__ import annotations

import contextlib
import re
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch

from algolen.checkpoint import Checkpoint, write
from algolen.store import Store
from tests.conftest import SMOKE, CommandLine

CONFIG = "{config}"
"""Stands for the hash of the trained run's configuration."""

RUN = f"{CONFIG}-0"

SWEEP = ("eval", RUN, "--test-lengths", "5")

TASK = """
from algolen.task import Task

class Mine(Task):
    name = "mine"
"""

ENCODING = """
from algolen.encodings.base import Encoding

class Mine(Encoding):
    name = "{name}"
    kind = "none"
    paper = "none"
"""


@dataclass(frozen=True)
class Case:
    """arguments: of the command. says: parts of the one line. files: what lies in
    the folder before. prepare: what is done to a folder with a trained run; without it, there is no run."""

    name: str
    arguments: tuple[str, ...]
    says: tuple[str, ...]
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    prepare: Callable[[CommandLine], None] | None = None


def train(name: str, *arguments: str, says: tuple[str, ...], **files: str | bytes) -> Case:
    """A case of `train` with the smoke preset; later flags win over earlier ones. `x_toml` is a file x.toml."""
    return Case(name, (*SMOKE, *arguments), says, {name.replace("_", "."): content for name, content in files.items()})


def setting(assignment: str, *says: str, pe: str = "coupling") -> Case:
    """A case of `train --set`."""
    return train(f"--set {assignment} with {pe}", "--pe", pe, "--set", assignment, says=says)


def config(name: str, content: str | bytes, *says: str) -> Case:
    """A case of `train --config`."""
    return train(f"config: {name}", "--config", "run.toml", says=says, run_toml=content)


def plugin(name: str, content: str | bytes, *says: str) -> Case:
    """A case of `train --plugin`."""
    return train(f"plugin: {name}", "--plugin", "mine.py", says=says, mine_py=content)


def trained(name: str, *arguments: str, says: tuple[str, ...], prepare: Callable[[CommandLine], None] = bool) -> Case:
    """A case in a folder with a trained run."""
    return Case(name, arguments, says, {}, prepare)


def sqlite(path: Path, sql: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as raw:
        raw.executescript(sql)


def other_program(line: CommandLine) -> None:
    sqlite(line.folder / "other.sqlite", "CREATE TABLE places (id INTEGER PRIMARY KEY, url TEXT);")


def newer_schema(line: CommandLine) -> None:
    sql = "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('algolen', '9999_later', '2099');"
    sqlite(line.folder / "experiments.sqlite", sql)


def no_runs(line: CommandLine) -> None:
    with Store.open("empty.sqlite", create=True):
        pass


def no_checkpoint(line: CommandLine) -> None:
    shutil.rmtree(line.folder / "runs")


def corrupt_checkpoint(line: CommandLine) -> None:
    path = line.folder / "runs" / line.run / "last.safetensors"
    path.write_bytes(path.read_bytes()[:1000])


def foreign_checkpoint(line: CommandLine) -> None:
    path = line.folder / "runs" / line.run / "last.safetensors"
    write(path, Checkpoint({"model.x": torch.zeros(1)}, {"run": "0123456789abcdef-0", "step": "60"}))


def interrupted(line: CommandLine) -> None:
    db = line.folder / "experiments.sqlite"
    for table in ("counts", "points"):
        where = "evaluation_id IN (SELECT id FROM evaluations WHERE purpose = 'report')"
        sqlite(db, f"DELETE FROM {table} WHERE {where}")
    sqlite(db, "DELETE FROM evaluations WHERE purpose = 'report'")
    sqlite(db, "UPDATE runs SET status = 'interrupted', step = 20")


def second_seed(line: CommandLine) -> None:
    assert line(*SMOKE, "--seeds", "1").code == 0


def without_its_plugin(line: CommandLine) -> None:
    line.write("mine.py", ENCODING.format(name="mine"))
    assert line(*SMOKE, "--pe", "mine", "--plugin", "mine.py", "--set", "train.steps=1").code == 0


def with_its_plugin_changed(line: CommandLine) -> None:
    without_its_plugin(line)
    line.write("mine.py", ENCODING.format(name="mine") + "# another version\n")


COMMANDS = [
    Case("unknown command", ("trian",), ("no such command 'trian'", "'train'")),
    Case("unknown flag", (*SMOKE, "--test-lenghts", "5"), ("--test-lenghts", "--test-lengths")),
    Case("flag without its value", ("train", "--task"), ("--task", "requires an argument")),
    Case("missing argument", ("show",), ("missing argument 'run'",)),
    Case("missing flag", ("eval", "abc"), ("--test-lengths",)),
    Case("number that is none", (*SMOKE, "--threads", "many"), ("--threads", "integer")),
    Case("number out of range", (*SMOKE, "--examples", "-1"), ("--examples", "greater than or equal to 1")),
    Case("two formats", ("report", "--json", "--csv"), ("--json and --csv", "give one")),
    Case("unknown task to describe", ("tasks", "adition"), ("unknown task 'adition'", "did you mean 'addition'?")),
    Case(
        "longer than the task goes",
        ("sample", "copy", "--length", "11", "--set", "copy.unique=true"),
        ("--length", "length 11", "longest copy is 10", "copy.unique=true", "--set copy.alphabet=11"),
    ),
    Case("unknown encoding to describe", ("encodings", "ofset"), ("encoding 'ofset'", "did you mean 'offset'?")),
]

NAMES = [
    Case("no task", ("train", "--pe", "nope"), ("--task", "addition")),
    Case("no encoding", ("train", "--task", "addition"), ("--pe", "`algolen encodings`")),
    train("mistyped task", "--task", "adition", says=("unknown task 'adition'", "did you mean 'addition'?")),
    train("no task like it", "--task", "zzz", says=("unknown task 'zzz'", "known:", "addition")),
    train("mistyped encoding", "--pe", "copling", says=("unknown encoding 'copling'", "did you mean 'coupling'?")),
    train("no encoding like it", "--pe", "zzz", says=("unknown encoding 'zzz'", "known:", "learned")),
    train("mistyped part", "--pe", "coupling+lerned", says=("'lerned'", "did you mean 'learned'?")),
    train("nothing after +", "--pe", "coupling+", says=("+ with nothing beside it", "did you mean 'coupling'?")),
    train("nope is alone", "--pe", "nope+coupling", says=("nope", "leave it out: 'coupling'")),
    train("one encoding twice", "--pe", "coupling+coupling", says=("names coupling twice",)),
    train("unknown extension", "--pe", "coupling@yarn", says=("test-time extension 'yarn'",)),
    train("mistyped preset", "--preset", "smok", says=("unknown preset 'smok'", "did you mean 'smoke'?")),
    train("unknown test set", "--test-sets", "random,egde", says=("no test set 'egde'", "random, edge, carry")),
    train(
        "longer than the task goes in training",
        *("--task", "reverse", "--set", "reverse.unique=true", "--train-lengths", "1-11"),
        says=("--train-lengths", "length 11", "longest reverse is 10", "--set reverse.alphabet=11"),
    ),
    train("unknown axis", "--axis", "operandz=2", says=("no axis 'operandz'", "operands")),
    train("axis without values", "--axis", "operands", says=("--axis 'operands'", "operands=2,3")),
    train("axis value of no sense", "--axis", "operands=two", says=("--axis 'operands=two'", "operands=2,3")),
    train("axis value out of range", "--axis", "operands=2,99", says=("addition.operands", "at most 10, not 99")),
    train("axis value in between", "--axis", "operands=2.5", says=("addition.operands", "whole number, not 2.5")),
    train("axis value of no end", "--axis", "operands=inf", says=("addition.operands", "finite")),
    train("no such device", "--device", "gpu", says=("no device 'gpu' here", "there is: cpu")),
    train("no such index", "--device", "cuda:77", says=("no device 'cuda:77' here", "there is: cpu")),
]

LENGTHS = [
    train("lengths backwards", "--train-lengths", "20-1", says=("--train-lengths '20-1'", "did you mean '1-20'?")),
    train("lengths from 0", "--train-lengths", "0-5", says=("--train-lengths '0-5'", "count from 1")),
    train("step of 0", "--test-lengths", "5:40:0", says=("--test-lengths '5:40:0'", "did you mean '5:40'?")),
    train("letters", "--test-lengths", "a-b", says=("--test-lengths 'a-b'", "1-20, 5:40:5 or 5,10,20")),
    train("nothing between commas", "--test-lengths", "5,,6", says=("'5,,6'", "1-20, 5:40:5 or 5,10,20")),
    train("fractions", "--test-lengths", "2.5", says=("'2.5'", "1-20, 5:40:5 or 5,10,20")),
    train("beyond all", "--test-lengths", "9" * 30, says=("goes beyond 1,000,000",)),
    config("empty lengths", 'test_lengths = ""', "5:40:5"),
    train("seeds backwards", "--seeds", "3-1", says=("--seeds '3-1'", "0-4")),
    train("a seed of letters", "--seeds", "a", says=("--seeds 'a'", "0-4")),
    train("a seed below 0", "--seeds=-1", says=("--seeds '-1'", "0-4")),
    train("too many seeds", "--seeds", "0-100000", says=("more than 10,000 seeds",)),
    Case("sample of length 0", ("sample", "addition", "--length", "0"), ("--length 0", "from 1 to 1,000,000")),
    Case("sample of an odd length", ("sample", "flip-flop", "--length", "7"), ("--length", "length 7", "6 or 8")),
    train("odd lengths", "--task", "flip-flop", "--pe", "nope", "--train-lengths", "4-8", says=("5", "4:64:2")),
    Case("sample too long", ("sample", "addition", "--length", "9" * 30), ("from 1 to 1,000,000",)),
    train("table too short", "--test-lengths", "2,300", says=("coupling.ids=202", "--set coupling.ids=302")),
    train("learned table too short", "--pe", "learned", "--test-lengths", "300", says=("--set learned.table=904",)),
    train("offset table too short", "--pe", "offset", "--test-lengths", "300", says=("--set offset.ids=904",)),
]

OPTIONS = [
    setting("steps=3", "'steps=3'", "section.option=value", "train.steps=4000"),
    setting("train.steps", "'train.steps'", "section.option=value"),
    setting(".=3", "'.=3'", "section.option=value"),
    setting("train.step=3", "unknown option 'train.step'", "did you mean 'train.steps'?"),
    setting("model.zzz=3", "unknown option 'model.zzz'", "known: layers, width"),
    setting("addition.padding=true", "unknown option 'addition.padding'", "did you mean 'addition.padded'?"),
    setting("coupling.id=3", "unknown option 'coupling.id'", "did you mean 'coupling.ids'?"),
    setting("trian.steps=3", "unknown section 'trian'", "did you mean 'train'?"),
    setting("offset.ids=99", "'offset' takes no part", "coupling+learned"),
    setting("model.layers=two", "model.layers should be a whole number, not 'two'"),
    setting("model.layers=0", "model.layers should be at least 1, not '0'"),
    setting("model.layers=none", "model.layers should be a whole number, not 'none'"),
    setting("train.steps=9999999999999999999999", "train.steps should be at most 1000000000000"),
    setting("model.norm=rmz", "model.norm should be rms or layer, not 'rmz'"),
    setting("model.tied=maybe", "model.tied should be true or false, not 'maybe'"),
    setting("model.dropout=1", "model.dropout should be less than 1, not '1'"),
    setting("model.heads=3", "3 heads do not divide a width of 32"),
    setting("model.attention=bidirectional", "addition", "bidirectional"),
    setting("train.learning_rate=fast", "train.learning_rate should be a number, not 'fast'"),
    setting("train.learning_rate=inf", "train.learning_rate should be a finite number, not inf"),
    setting("train.weight_decay=nan", "train.weight_decay"),
    setting("train.init_seed=-3", "train.init_seed should be at least 0, not '-3'"),
    setting("train.accumulate=7", "accumulate=7 does not divide a batch of 16"),
    setting("train.epochs=2", "epochs", "set train.examples"),
    setting("train.examples=7", "examples=7", "a batch of 16"),
    setting("train.examples=40", "too few", "at least 64", "train.lengths_in_batch=mixed"),
    setting("addition.operands=11", "addition.operands should be at most 10, not '11'"),
    setting("addition.operand_lengths=eqal", "equal or independent, not 'eqal'"),
    setting("coupling.ids=many", "coupling.ids should be a whole number, not 'many'"),
    setting("coupling.start=clip", "coupling.start should be uniform or clipped, not 'clip'"),
    setting("learned.table=0", "learned.table should be at least 1, not '0'"),
    setting("learned.std=0", "learned.std should be more than 0", pe="learned"),
    setting("learned.axes=2", "learned.axes=2", "--set learned.axes=1"),
    setting("offset.start=unifrom", "offset.start should be uniform or clipped, not 'unifrom'", pe="offset"),
    Case("not a section here", ("sample", "addition", "--set", "offset.ids=9"), ("'offset' takes no part",)),
]

FILES = [
    train("no config", "--config", "run.toml", says=("'run.toml'", "No such file")),
    train("config is a folder", "--config", ".", says=("cannot read --config '.'", "directory")),
    config("no TOML", "steps: 3\n", "'run.toml' is not TOML", "line 1"),
    config("binary", b"\x89PNG\r\n\x1a\n\x00", "'run.toml' is not TOML"),
    config("mistyped key", 'tsk = "addition"', "unknown key in run.toml 'tsk'", "did you mean 'task'?"),
    config("mistyped section", "[modle]\nlayers = 1", "unknown section 'modle'", "did you mean 'model'?"),
    config("mistyped option", "[model]\nlayer = 1", "'model.layer'", "did you mean 'model.layers'?"),
    config("list for a number", "[model]\nlayers = [1, 2]", "model.layers should be a whole number, not [1, 2]"),
    config("number for a text", "train_lengths = 5", "train_lengths should be text in quotes, not 5"),
    config("fraction of a step", "[train]\nsteps = 1.5", "train.steps should be a whole number, not 1.5"),
    config("no examples", "examples = -5", "examples should be at least 1, not -5"),
]

PLUGINS = [
    train("plugin: missing", "--plugin", "mine.py", says=("'mine.py'", "No such file")),
    train("plugin: a folder", "--plugin", ".", says=("'.'", "directory")),
    train("plugin: not .py", "--plugin", "mine.txt", says=("'mine.txt' is not a Python file",), mine_txt="x = 1"),
    plugin("raises", "raise RuntimeError('no luck\\nat all')", "'mine.py' raised RuntimeError: no luck"),
    plugin("exits", "import sys; sys.exit(3)", "'mine.py' raised SystemExit: 3"),
    plugin("lacks a module", "import numpyy", "'mine.py' raised ModuleNotFoundError", "numpyy"),
    plugin("syntax", "def f(:\n", "'mine.py' raised SyntaxError", "line 1"),
    plugin("binary", b"\x00\x01\x02", "'mine.py' raised"),
    plugin("empty", "x = 1\n", "defines no subclass", "algolen.encodings.base.Encoding"),
    plugin("unfinished task", TASK, "Mine is no task yet", "oracle", "vocabulary"),
    plugin("name of an encoding", ENCODING.format(name="coupling"), "the name 'coupling' is taken"),
    plugin("name of a task", ENCODING.format(name="addition"), "the name 'addition' is taken"),
    plugin("name of a section", ENCODING.format(name="train"), "the name 'train' is taken"),
    plugin("name with +", ENCODING.format(name="a+b"), "Mine.name is 'a+b'", "letters, digits"),
    plugin("no name", ENCODING.replace("    name", "    title"), "Mine.name is missing"),
    plugin("no paper", ENCODING.format(name="mine").replace("paper", "article"), "Mine does not say its paper"),
]

DATABASES = [
    *(
        Case(f"{command}: no database", (command, *more), ("no database at experiments.sqlite", "`algolen train`"))
        for command, *more in (["report"], ["runs"], ["show", "abc"], ["eval", "abc", "--test-lengths", "5"])
    ),
    *(
        Case(f"{command}: no database file", (command, "--db", "notes.txt"), ("notes.txt is not an SQLite",), notes)
        for notes in [{"notes.txt": "some notes\n" * 99}]
        for command in ("report", "runs")
    ),
    Case("a folder as database", ("runs", "--db", "."), ("is a folder, not a database",)),
    *(
        train(f"train: {name}", "--db", path, says=says, notes_txt="some notes\n" * 99)
        for name, path, says in (
            ("no database file", "notes.txt", ("notes.txt is not an SQLite database",)),
            ("no folder for the database", "nowhere/x.sqlite", ("no folder nowhere", "x.sqlite")),
            ("a folder as database", ".", ("is a folder, not a database",)),
        )
    ),
    trained("train: another program's", *SMOKE, "--db", "other.sqlite", says=("algolen's",), prepare=other_program),
    trained("train: newer schema", *SMOKE, says=("9999_later", "upgrade algolen"), prepare=newer_schema),
    trained("another program's", "runs", "--db", "other.sqlite", says=("not one of algolen's",), prepare=other_program),
    trained("newer schema", "report", says=("9999_later", "upgrade algolen"), prepare=newer_schema),
    trained("no runs yet", "report", "--db", "empty.sqlite", says=("no runs yet", "`algolen train`"), prepare=no_runs),
    trained("report of a task not there", "report", "--task", "adition", says=("did you mean 'addition'?",)),
    trained("report of an encoding not there", "report", "--pe", "copling", says=("did you mean 'coupling'?",)),
    trained("report of a test set not there", "report", "--test-set", "edge", says=("'edge'", "random")),
    trained("runs of a status not there", "runs", "--status", "don", says=("'don'", "did you mean 'done'?")),
    trained("threshold above 1", "report", "--threshold", "2", says=("--threshold 2", "up to 1")),
]

RUNS = [
    trained(
        "a report of a run that was not tested",
        "report",
        says=("none of 1 run (1 interrupted) is done and was tested",),
        prepare=interrupted,
    ),
    trained("unknown run", "show", "ffff", says=("unknown run 'ffff'", RUN)),
    trained("mistyped run", "show", f"0{RUN}", says=(f"unknown run '0{RUN}'", f"did you mean '{RUN}'?")),
    trained("eval of an unknown run", "eval", "ffff", "--test-lengths", "5", says=("unknown run 'ffff'", RUN)),
    trained("ambiguous run", "show", CONFIG, says=("fits 2 runs", RUN, "more of the id"), prepare=second_seed),
    trained(
        "unknown kind of checkpoint",
        *SWEEP, "--checkpoint", "bset",
        says=("unknown checkpoint 'bset'", "did you mean 'best'?"),
    ),
    trained("eval too long", "eval", RUN, "--test-lengths", "201", says=("coupling.ids=202", "reaches id 203")),
    trained("eval of nothing", "eval", RUN, "--test-lengths", "", says=("--test-lengths ''", "5:40:5")),
    trained("eval on no set", *SWEEP, "--test-sets", "egde", says=("no test set 'egde'",)),
    trained("eval off the axis", *SWEEP, "--axis", "operands=1", says=("at least 2, not 1",)),
    trained("eval elsewhere", *SWEEP, "--device", "cuda:77", says=("no device 'cuda:77'",)),
    trained("eval of a seed too large", *SWEEP, "--test-seed", "9" * 30, says=("test_seed",)),
    trained(
        "checkpoint gone",
        *SWEEP,
        says=(
            "last checkpoint",
            f"algolen show {RUN} --toml --db experiments.sqlite > run.toml; algolen train --config run.toml --retrain",
        ),
        prepare=no_checkpoint,
    ),
    trained(
        "checkpoint cut short",
        *SWEEP,
        says=("last.safetensors' is not a readable checkpoint",),
        prepare=corrupt_checkpoint,
    ),
    trained(
        "checkpoint of another run",
        *SWEEP,
        says=("belongs to run 0123456789abcdef-0", RUN),
        prepare=foreign_checkpoint,
    ),
]  # fmt: skip

TRACKING = [
    train(
        "a mode of W&B", "--wandb", "sometimes", says=("unknown mode of --wandb 'sometimes'", "off, offline, online")
    ),
    train("a mistyped mode of W&B", "--wandb", "on-line", says=("did you mean 'online'?",)),
    train("a project for no log", "--wandb-project", "x", says=("--wandb-project", "add --wandb offline")),
    train(
        "a project W&B refuses", "--wandb", "offline", "--wandb-project", "a/b#", says=("'a/b#'", "no place for / #")
    ),
    train("a project without a name", "--wandb", "online", "--wandb-project", "", says=("''", "1 to 128")),
]

STEPS = [
    train(
        "a cooldown longer than training",
        "--set", "train.schedule=constant", "--set", "train.cooldown=56",
        says=("train.warmup=5", "train.cooldown=56", "60 steps"),
    ),
    train(
        "a limit on more loops than there are",
        "--set", "model.loops=2", "--set", "train.progressive=1", "--set", "train.progressive_most=3",
        says=("train.progressive_most=3", "--set train.progressive_most=2"),
    ),
    train("runs is a file", says=("'runs'", "is a file; move it away"), runs="x"),
]  # fmt: skip

CASES = [*STEPS, *COMMANDS, *NAMES, *LENGTHS, *OPTIONS, *FILES, *PLUGINS, *DATABASES, *RUNS, *TRACKING]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_one_line_says_what_is_wrong_and_nothing_is_written(case: Case, request: pytest.FixtureRequest) -> None:
    line: CommandLine = request.getfixturevalue("algolen" if case.prepare is None else "trained")
    for name, content in case.files.items():
        line.write(name, content)
    config = ""
    if case.prepare is not None:
        config = line.run.rpartition("-")[0]
        case.prepare(line)
        line.read()
    before = line.files()
    result = line(*(argument.replace(CONFIG, config) for argument in case.arguments))
    assert (result.code, result.stdout) == (2, "")
    assert result.stderr.startswith("algolen: ")
    assert result.stderr.count("\n") == 1, result.stderr
    assert [part for part in case.says if part.replace(CONFIG, config) not in result.stderr] == [], result.stderr
    assert line.files() == before


@pytest.mark.parametrize("pe", ["coupling", "learned", "offset", "coupling+learned", "offset+learned"])
@pytest.mark.parametrize("longest", [300, 2000])
def test_the_number_named_for_too_long_a_test_is_the_smallest_that_works(
    algolen: CommandLine, pe: str, longest: int
) -> None:
    request = (*SMOKE, "--dry-run", "--pe", pe, "--test-lengths", f"5,{longest}", "--set", "addition.operands=3")
    refused = algolen(*request)
    found = re.search(r"--set ([a-z.]+)=(\d+)$", refused.stderr.strip())
    assert found is not None, refused.stderr
    option, enough = found[1], int(found[2])
    assert algolen(*request, "--set", f"{option}={enough - 1}").code == 2
    assert algolen(*request, "--set", f"{option}={enough}").code == 0
