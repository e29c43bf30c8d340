"""Run configurations: identities that never change, TOML in and out, which layer wins."""

from __future__ import annotations

import dataclasses
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from algolen import config, options
from algolen.config import ModelConfig, RunConfig, Sections, TrainConfig
from algolen.encodings.coupling import CouplingOptions
from algolen.errors import UserError
from algolen.experiment import Experiment, plan
from tests.building import REGISTRY

SECTIONS: Sections = {"": {"task": "addition", "pe": "coupling", "train_lengths": "1-3", "test_lengths": "2-5"}}


def experiment(*assignments: str, **top: str) -> Experiment:
    user = config.merge(SECTIONS, config.settings(assignments), {"": top})
    return plan(user, user, REGISTRY)


def run(*assignments: str, **top: str) -> RunConfig:
    return experiment(*assignments, **top).config


# Identities -----------------------------------------------------------------------------------------------------------

GOLDEN = {
    (): "d80bb464a66632a5",
    ("coupling.ids=104", "coupling.start=clipped"): "95cd119484ebebbd",
    (
        "model.layers=1",
        "model.norm_position=both",
        "model.activation=geglu",
        "model.logit_multiplier=2",
    ): "06fb7870475be170",
    ("train.steps=50", "train.learning_rate=3e-4", "train.examples=6400", "train.epochs=3"): "514559af8810a3f2",
    ("addition.operands=3", "addition.reverse_answer=false", "learned.std=0.1"): "7636c61706977fbf",
}


@pytest.mark.parametrize(("assignments", "golden"), GOLDEN.items(), ids=str)
def test_identities_never_change(assignments: tuple[str, ...], golden: str) -> None:
    """Results are stored under these hashes. Where this test fails, mend the code and not the test: a new field needs
    metadata={"introduced": …}; a change of what is computed needs a new version of the task, encoding or training."""
    assert run(*assignments).hash() == golden


def test_other_encodings_have_identities_that_never_change() -> None:
    assert {pe: run(pe=pe).hash() for pe in ("nope", "learned", "offset")} == {
        "nope": "d53dabd723bfbe5b",
        "learned": "2ea81be78507ec2c",
        "offset": "cb13f4026f1d0ee0",
    }


def test_a_run_is_its_configuration_and_its_seed() -> None:
    assert run().run_id(7) == f"{run().hash()}-7"


@dataclass(frozen=True)
class LaterModel(ModelConfig):
    heads_of_later: int = field(default=4, metadata={"introduced": 4})


def test_a_field_added_later_changes_an_identity_only_where_it_differs_from_its_introduction() -> None:
    now = run()
    same = replace(now, model=LaterModel(**options.plain(now.model)))
    other = replace(now, model=LaterModel(**options.plain(now.model), heads_of_later=5))
    assert same.hash() == now.hash()
    assert other.hash() != now.hash()


def test_compiling_is_not_part_of_an_identity() -> None:
    assert run("train.compile=true").hash() == run().hash()


def test_what_a_sweep_does_is_not_part_of_an_identity() -> None:
    assert run(test_lengths="7", test_sets="edge").hash() == run().hash()


@pytest.mark.parametrize("written", ["coupling", "coupling+learned", "learned+coupling", " coupling + learned "])
def test_a_name_and_what_it_expands_to_are_one_run(written: str) -> None:
    assert run(pe=written).hash() == run().hash()


DIFFERENT = [
    *("model.layers=3", "model.tied=true", "model.init_std=0.02", "train.steps=7", "train.clip=0", "train.data_seed=0"),
    *("addition.padded=false", "addition.operands=3", "coupling.ids=99", "coupling.start=clipped", "learned.std=0.1"),
]


def test_every_setting_of_a_run_makes_it_another() -> None:
    hashes = {run(assignment).hash() for assignment in DIFFERENT}
    hashes |= {run().hash(), run(train_lengths="1-4").hash(), run(pe="nope").hash()}
    assert len(hashes) == len(DIFFERENT) + 3


def test_versions_and_plugin_sources_make_it_another() -> None:
    versions = [replace(run(), versions={**run().versions, name: 99}) for name in run().versions]
    sources = [replace(run(), plugins={"coupling": sha256}) for sha256 in ("a" * 64, "b" * 64)]
    assert len({changed.hash() for changed in [run(), *versions, *sources]}) == 1 + len(run().versions) + 2


def test_the_version_of_training_makes_it_another(monkeypatch: pytest.MonkeyPatch) -> None:
    before = run().hash()
    monkeypatch.setattr(config, "TRAINING_VERSION", config.TRAINING_VERSION + 1)
    assert run().hash() != before


def test_an_integer_in_place_of_a_float_is_the_same_run() -> None:
    by_text = run("model.ff_ratio=2", "train.learning_rate=1")
    by_toml = plan({**SECTIONS, "model": {"ff_ratio": 2}, "train": {"learning_rate": 1}}, {}, REGISTRY).config
    assert by_text.hash() == by_toml.hash() == run("model.ff_ratio=2.0", "train.learning_rate=1.0").hash()


# Out and in -----------------------------------------------------------------------------------------------------------

FLOATS = st.floats(1e-6, 60, allow_subnormal=False)
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "": st.fixed_dictionaries(
            {},
            optional={
                "pe": st.sampled_from(["nope", "learned", "coupling", "coupling+learned", "offset"]),
                "train_lengths": st.sampled_from(["1", "1-9", "2:20:3", "1,5,30"]),
            },
        ),
        "model": st.fixed_dictionaries(
            {"heads": st.sampled_from([1, 2, 4]), "width": st.sampled_from([4, 8, 64])},
            optional={
                "ff_ratio": FLOATS,
                "norm": st.sampled_from(["rms", "layer"]),
                "tied": st.booleans(),
                "init_std": st.none() | FLOATS,
                "logit_multiplier": FLOATS | st.integers(1, 9),
            },
        ),
        "train": st.fixed_dictionaries(
            {},
            optional={
                "steps": st.integers(1, 10**9),
                "learning_rate": FLOATS,
                "data_seed": st.none() | st.integers(0, 2**70),
                "examples": st.sampled_from([0, 10**5]),
                "compile": st.booleans(),
            },
        ),
        "addition": st.fixed_dictionaries(
            {}, optional={"operands": st.integers(2, 10), "padded": st.booleans(), "reverse_answer": st.booleans()}
        ),
    },
)


@given(CHANGES)
def test_a_configuration_survives_the_database(changes: dict[str, Any]) -> None:
    sections = config.merge(SECTIONS, changes)
    made = plan(sections, sections, REGISTRY).config
    back = RunConfig.from_dict(made.to_dict())
    assert back == made
    assert back.hash() == made.hash()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CHANGES)
def test_a_configuration_survives_its_file(tmp_path: Path, changes: dict[str, Any]) -> None:
    sections = config.merge(SECTIONS, changes)
    made = plan(sections, sections, REGISTRY).config
    path = tmp_path / "run.toml"
    path.write_text(made.to_toml())
    read = config.merge({"": {"test_lengths": "2-5"}}, config.load(path))
    assert plan(read, read, REGISTRY).config == made


@given(st.text() | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_any_value_an_option_can_have_is_written_as_toml(value: options.Value) -> None:
    made = replace(run(), task_options={"label": value})
    read = tomllib.loads(made.to_toml())["addition"]["label"]
    assert read == ("none" if value is None else value)
    assert type(read) is type("none" if value is None else value)


def test_a_configuration_from_before_a_field_means_the_value_it_was_introduced_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stored = run().to_dict()
    later = dataclasses.make_dataclass(
        "Later",
        [("later", int, field(default=9, metadata={"introduced": 4}))],
        bases=(ModelConfig,),
        frozen=True,
    )
    monkeypatch.setattr(config, "ModelConfig", later)
    back = RunConfig.from_dict(stored)
    assert back.hash() == run().hash()
    assert options.plain(back.model)["later"] == 4


# Layers ---------------------------------------------------------------------------------------------------------------


def test_later_layers_win_option_by_option() -> None:
    lowest: Sections = {"model": {"layers": 1, "width": 8}, "train": {"steps": 5}}
    assert config.merge(lowest, {"model": {"layers": 2}}, {"": {"pe": "nope"}}) == {
        "model": {"layers": 2, "width": 8},
        "train": {"steps": 5},
        "": {"pe": "nope"},
    }
    assert lowest == {"model": {"layers": 1, "width": 8}, "train": {"steps": 5}}


def test_assignments_fill_sections_and_the_last_wins() -> None:
    assert config.settings(["model.layers=1", " train.steps = 4 ", "model.layers=2", "a.b=c=d"]) == {
        "model": {"layers": "2"},
        "train": {"steps": "4"},
        "a": {"b": "c=d"},
    }


def test_defaults_are_what_the_dataclasses_say() -> None:
    made = run()
    assert (made.model, made.train) == (ModelConfig(), TrainConfig())
    assert made.pe_options["coupling"] == options.plain(CouplingOptions())


def test_a_key_outside_of_sections_that_nobody_knows_is_refused() -> None:
    with pytest.raises(UserError, match=r"unknown key in run.toml 'sed'; did you mean 'seeds'\?"):
        config.split({"sed": "4"}, "run.toml")


@pytest.mark.parametrize(("name", "section"), [("steps", "train"), ("layers", "model")])
def test_an_option_outside_of_its_section_is_sent_there(name: str, section: str) -> None:
    with pytest.raises(UserError, match=rf"run.toml: '{name}' belongs in section \[{section}\]"):
        config.split({name: 4}, "run.toml")
