"""Presets: found in their folder, and recipes that can be run, count what was published and say what differs."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import torch

import algolen
from algolen import config, presets
from algolen.config import SECTION_CLASSES, Sections, TopLevel
from algolen.errors import UserError
from algolen.experiment import plan
from algolen.presets import Recipe
from algolen.sweep import study as studies
from algolen.sweep.plan import plan as trials
from algolen.training.step import Stepper
from tests import building
from tests.building import REGISTRY, expression
from tests.cli.test_commands import by_json
from tests.conftest import CommandLine

FOR_EVERYTHING = ("cpu", "smoke")
RECIPES = presets.recipes()
PAIRS = [(recipe, task, pe) for recipe in RECIPES for task in recipe.tasks for pe in recipe.encodings]
NAMED = pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)


def asked(task: str, pe: str, **more: str) -> Sections:
    return {"": {"task": task, "pe": pe, **more}}


def refusal(name: str, task: str, pe: str) -> str:
    with pytest.raises(UserError) as refused:
        presets.choose(name, asked(task, pe), REGISTRY)
    return str(refused.value)


# Presets for everything -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FOR_EVERYTHING)
@pytest.mark.parametrize("pe", sorted(REGISTRY.encodings))
def test_presets_for_everything_fit_every_encoding(name: str, pe: str) -> None:
    user = asked("addition", pe)
    chosen = presets.choose(name, user, REGISTRY)
    made = plan(config.merge(chosen.sections, user), user, REGISTRY)
    assert made.evaluation.test_lengths[-1] >= 2 * made.config.train_lengths[-1]
    assert chosen.recipe is None


def test_a_preset_knows_better_for_a_task() -> None:
    found = {task: presets.choose("cpu", asked(task, "nope"), REGISTRY).sections for task in ("addition", "parity")}
    addition, parity = found["addition"], found["parity"]
    assert addition["coupling"] == {"ids": 64, "start": "clipped"}
    assert "coupling" not in parity
    assert parity["model"]["layers"] == 2


@pytest.mark.parametrize("pe", ["coupling", "nope", "learned", "abacus"])
def test_addition_is_trained_as_in_its_study_unless_told_otherwise(pe: str) -> None:
    study = studies.load("addition")
    (planned,) = [one for one in trials(study, REGISTRY, trials=True) if (one.label, one.trial.name) == (pe, "wide")]
    own = config.settings(planned.entry.set)
    user = config.merge(asked("addition", pe), {name: own[name] for name in own if name == "addition"})
    chosen = presets.choose("cpu", user, REGISTRY)
    assert plan(config.merge(chosen.sections, user), user, REGISTRY).config.hash() == planned.hash


def test_presets_are_what_lies_in_their_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algolen: CommandLine
) -> None:
    assert presets.names() == ("cpu", "paper", "smoke")
    shown = " ".join(algolen("train", "--help").stdout.split())
    assert [name for name in presets.names() if f"{name} (" not in shown] == []
    (tmp_path / "mine.toml").write_text("[model]\nlayers = 3\n")
    monkeypatch.setattr(presets, "FOLDER", tmp_path)
    assert presets.names() == ("mine",)
    assert presets.choose("mine", {}, REGISTRY).sections["model"] == {"layers": 3}


def test_everything_in_the_folder_is_packaged() -> None:
    package = Path(algolen.__file__).parent
    patterns = tomllib.loads((package.parent / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    packaged = {path for pattern in patterns["algolen"] for path in package.glob(pattern)}
    assert {path for path in presets.FOLDER.rglob("*") if path.is_file()} <= packaged


# Recipes --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("recipe", "task", "pe"), PAIRS, ids=lambda part: getattr(part, "name", part))
def test_a_recipe_can_be_planned_for_all_it_names_and_says_what_differs(
    algolen: CommandLine, recipe: Recipe, task: str, pe: str
) -> None:
    command = ("train", "--preset", recipe.name, "--task", task, "--pe", pe, "--device", "cpu", "--dry-run")
    told = by_json(algolen, *command)["recipe"]
    assert (told["name"], told["source"], told["status"]) == (recipe.name, recipe.source, recipe.status)
    assert recipe.status in presets.STATUSES
    assert set(recipe.differs) <= set(told["differs"])
    assert all(text.strip() == text and text.endswith(".") for text in told["differs"])
    assert told["differs"]
    assert told["changed"] == []
    assert algolen.files() == {}


@NAMED
def test_no_setting_of_a_recipe_is_without_effect(recipe: Recipe) -> None:
    parts = {member.cls.name for pe in recipe.encodings for member in expression(pe).members}
    known = {"", *SECTION_CLASSES, *recipe.tasks, *parts}
    assert set(recipe.sections) <= known
    assert set(recipe.special) <= {*recipe.tasks, *parts}
    for own in recipe.special.values():
        assert set(own) - {"differs"} <= known | set(TopLevel.__dataclass_fields__)


@NAMED
def test_a_recipe_makes_a_step(recipe: Recipe) -> None:
    """With a small model and few examples; all else is as in the recipe."""
    user = asked(recipe.tasks[0], recipe.encodings[0])
    chosen = presets.choose(recipe.name, user, REGISTRY).sections
    small: Sections = {
        "model": {"layers": 1, "width": 4 * chosen["model"]["heads"]},
        "train": {"batch": 2, "accumulate": 2, "examples": 4 if chosen["train"].get("examples") else 0},
    }
    made = plan(config.merge(chosen, user, small), user, REGISTRY)
    data = made.data(0, building.CPU)
    step = Stepper(made.model(0, building.CPU), made.config.train, data.steps)
    assert torch.isfinite(step(0, data.micro_batches(0)))


PUBLISHED_PARAMETERS = {
    ("paper/cho2024-addition", "coupling"): (4.34e6, 0.002),
    ("paper/cho2024-addition-baselines", "nope"): (25.3e6, 0.01),
    ("paper/liu2023-flip-flop", "learned"): (19e6, 0.02),
    ("paper/zhou2024-addition", "fire"): (25e6, 0.02),
    ("paper/jelassi2024-copy", "hard-alibi"): (160e6, 0.06),
}


@pytest.mark.parametrize(("name", "pe"), PUBLISHED_PARAMETERS, ids=str)
def test_a_recipe_has_as_many_parameters_as_published(name: str, pe: str) -> None:
    (task,) = next(recipe.tasks for recipe in RECIPES if recipe.name == name)
    user = asked(task, pe)
    made = plan(config.merge(presets.choose(name, user, REGISTRY).sections, user), user, REGISTRY)
    published, within = PUBLISHED_PARAMETERS[name, pe]
    assert made.parameters == pytest.approx(published, rel=within)


def test_an_encoding_can_be_written_in_any_way_that_means_the_same() -> None:
    for written in ("coupling", "coupling+learned", "learned+coupling"):
        chosen = presets.choose("paper", asked("addition", written), REGISTRY)
        assert chosen.recipe is not None
        assert chosen.recipe.name == "paper/cho2024-addition"
    chosen = presets.choose("paper", asked("addition", "fire+abacus"), REGISTRY)
    assert chosen.recipe is not None
    assert chosen.recipe.name == "paper/mcleish2024-addition"


def test_a_recipe_can_know_better_for_an_encoding_and_a_task() -> None:
    name = "paper/huang2025-unique-copy"
    models = {pe: presets.choose(name, asked("copy", pe), REGISTRY).sections["model"] for pe in ("nope", "offset")}
    assert {pe: model["layers"] for pe, model in models.items()} == {"nope": 4, "offset": 2}
    copy, reverse = (presets.choose("paper", asked(task, "coupling"), REGISTRY) for task in ("copy", "reverse"))
    assert (copy.sections[""]["test_lengths"], reverse.sections[""]["test_lengths"]) == ("5:300:5", "5:200:5")
    assert [text.partition(":")[0] for text in set(reverse.differs) - set(copy.differs)] == ["Table"]


def test_what_the_user_sets_wins_and_is_said(algolen: CommandLine) -> None:
    command = ("train", "--preset", "paper", "--task", "addition", "--pe", "coupling", "--dry-run", "--device", "cpu")
    shown = algolen(*command, "--set", "train.steps=7", "--examples", "5", "--seeds", "3").stdout
    assert "7 steps of 1000" in shown
    assert "set by you  train.steps, examples\n" in shown
    assert "set by you" not in algolen(*command).stdout


# Where there is not exactly one ---------------------------------------------------------------------------------------


def test_without_a_recipe_nothing_else_is_taken_silently(algolen: CommandLine) -> None:
    refused = algolen("train", "--preset", "paper", "--task", "reverse", "--pe", "rope+logn")
    assert refused.code == 2
    assert refused.stdout == ""
    (line,) = refused.stderr.splitlines()
    assert "no recipe for reverse with rope+logn; for reverse there are some with alibi, coupling, nope, rope" in line
    assert "for addition, copy, flip-flop, parity, selective-copy; or use --preset cpu" in line
    assert algolen.files() == {}


def test_a_task_without_any_recipe_is_told_which_have_some(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [recipe for recipe in RECIPES if "parity" not in recipe.tasks]
    monkeypatch.setattr(presets, "recipes", lambda preset: others)
    assert "there are none for parity, and for addition, copy" in refusal("paper", "parity", "nope")


def test_of_several_recipes_one_has_to_be_named() -> None:
    told = refusal("paper", "flip-flop", "rope")
    both = "--preset paper/golovneva2024-flip-flop or --preset paper/liu2023-flip-flop"
    assert told == f"there are 2 recipes for flip-flop with rope; name one: {both}"


@pytest.mark.parametrize(
    ("name", "task", "pe", "says"),
    [
        ("paper/liu2023-flipflop", "flip-flop", "rope", "did you mean 'paper/liu2023-flip-flop'?"),
        ("paper/cho2024-copy", "addition", "coupling", "a recipe for copy and reverse with coupling, not for addition"),
        ("paper", "adition", "nope", "unknown task 'adition'"),
        ("paper", "addition", "nop", "unknown encoding 'nop'"),
        ("cpu/cho2024-copy", "copy", "coupling", "unknown preset 'cpu/cho2024-copy'"),
        ("best", "copy", "coupling", "unknown preset 'best'; known: cpu, paper, smoke"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(name: str, task: str, pe: str, says: str) -> None:
    assert says in refusal(name, task, pe)


@pytest.mark.parametrize("given", [{}, {"task": "addition"}, {"pe": "nope"}])
def test_recipes_go_by_task_and_encoding(given: dict[str, str]) -> None:
    with pytest.raises(UserError, match="name them with --task and --pe"):
        presets.choose("paper", {"": given}, REGISTRY)


# Listings -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", sorted(REGISTRY.tasks))
def test_a_task_is_listed_with_its_recipes(algolen: CommandLine, task: str) -> None:
    own = [recipe for recipe in RECIPES if task in recipe.tasks]
    listed = by_json(algolen, "tasks", task)["recipes"]
    assert [(one["name"], one["status"]) for one in listed] == [(recipe.name, recipe.status) for recipe in own]
    shown = " ".join(algolen("tasks", task).stdout.split())
    assert own
    for recipe in own:
        assert f"{recipe.name}: with {', '.join(recipe.encodings)}" in shown


def test_an_encoding_is_listed_with_the_recipes_it_takes_part_in(algolen: CommandLine) -> None:
    names = {pe: [one["name"] for one in by_json(algolen, "encodings", pe)["recipes"]] for pe in ("learned", "shaw")}
    assert {"paper/cho2024-addition", "paper/liu2023-flip-flop"} <= set(names["learned"])
    assert names["shaw"] == []
    assert "paper/cho2024-copy: copy, reverse" in algolen("encodings", "coupling").stdout
    assert "recipes" not in algolen("encodings", "shaw").stdout
