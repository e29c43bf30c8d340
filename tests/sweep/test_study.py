"""Study files: what they come to, and what is refused, by the file and the entry."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from algolen.experiment import DEVELOPMENT_SEED
from algolen.sweep import study as studies
from algolen.sweep.plan import plan, runs
from tests import building
from tests.conftest import CommandLine
from tests.sweep.conftest import TINY

STUDY = ("study", "tiny.toml", "--device", "cpu")


def test_a_run_has_the_settings_of_its_preset_study_trial_and_its_own(tiny: CommandLine) -> None:
    study = studies.load(str(tiny.folder / "tiny.toml"))
    nope, coupling = plan(study, building.REGISTRY)
    assert (nope.experiment.config.train.learning_rate, coupling.experiment.config.train.learning_rate) == (1e-3, 3e-3)
    train = coupling.experiment.config.train
    assert (train.steps, train.batch, train.warmup) == (6, 16, 5), "the study's, and the preset's"
    assert coupling.experiment.config.pe_options["coupling"]["ids"] == 50
    assert [(run.planned.label, run.seed) for run in runs([nope, coupling])] == [
        ("nope", 0), ("nope", 1), ("coupling", 0),
    ]  # fmt: skip


def test_every_encoding_gets_every_trial_on_development_sets_with_seeds_of_trials(tiny: CommandLine) -> None:
    planned = plan(studies.load(str(tiny.folder / "tiny.toml")), building.REGISTRY, trials=True)
    assert [(one.label, one.trial.name, one.seeds) for one in planned] == [
        (label, name, (100,)) for label in ("nope", "coupling") for name in ("slow", "fast")
    ]
    assert {one.experiment.evaluation.test_seed for one in planned} == {DEVELOPMENT_SEED}
    assert [one.chosen for one in planned] == [True, False, False, True]


def test_a_trial_and_the_run_that_was_chosen_by_it_are_of_one_configuration(tiny: CommandLine) -> None:
    study = studies.load(str(tiny.folder / "tiny.toml"))
    tried = {one.hash for one in plan(study, building.REGISTRY, trials=True) if one.chosen}
    assert tried == {one.hash for one in plan(study, building.REGISTRY)}


def test_quick_keeps_what_is_marked_and_seeds_replace_those_of_the_file(tiny: CommandLine) -> None:
    (only,) = plan(studies.load(str(tiny.folder / "tiny.toml")), building.REGISTRY, quick=True, seeds=(7, 8))
    assert (only.label, only.seeds) == ("nope", (7, 8))


BAD = {
    'pe = "nope"': ('pe = "nopee"', "run 'nopee' with trial 'slow': unknown encoding 'nopee'; did you mean 'nope'?"),
    'trial = "slow"': ('trial = "slowly"', "run 'nope': unknown trial 'slowly'; did you mean 'slow'?"),
    'trial = "slow"\nquick': ("quick", "run 'nope' does not say its trial; known: slow, fast"),
    "coupling.ids=50": ("coupling.idds=50", "run 'coupling' with trial 'slow': unknown option 'coupling.idds'"),
    "train.learning_rate=3e-3": ("train.learning_rat=3e-3", "run 'nope' with trial 'fast': unknown option"),
    "train.learning_rate=3e-3 ": ("coupling.ids=60", "run 'nope' with trial 'fast': 'coupling' takes no part in"),
    'set = ["train.learning_rate=3e-3"]': ('set = ["train.learning_rate=0.001"]', "trials 'slow' and 'fast' come to"),
    'pe = "coupling"': ('pe = "nope"', "run 'nope coupling.ids=50' with trial 'slow': 'coupling' takes no part"),
    'seeds = "0-1"': ('seeds = "0,100"', "run 'nope': seed 100 is not one below 100, where those of trials begin"),
    'preset = "smoke"': ('preset = "smok"', "unknown preset 'smok'; did you mean 'smoke'?"),
    'title = "A study for tests"': ("", "title has no default"),
    'task = "addition"': ("", "name the task"),
    "quick = true": ('quick = "perhaps"', "run 1.quick should be true or false"),
    'set = ["coupling.ids=50"]': ("set = [50]", "run 2.set.0 should be text in quotes, not 50"),
    "[[trial]]": ("[[trail]]", "unknown"),
    "examples = 20": ("examples = 20\ntest_seed = 3", "'test_seed' is no key of a study"),
    "examples = 20 ": ('examples = 20\npe = "rope"', "'pe' is no key of a study"),
    "[train]": ("[rope]\nbase = 10\n[train]", "no run reads section [rope]"),
    "[train] ": ("[trian]\nsteps = 10\n[train]", "unknown section 'trian'; did you mean 'train'?"),
    'task = "addition" ': ('trial_seeds = "3"\ntask = "addition"', "seed 3 is not one of trials"),
}


@pytest.mark.parametrize("old", BAD)
def test_what_is_wrong_is_said_with_the_file_and_the_entry_before_anything_is_trained(
    tiny: CommandLine, old: str
) -> None:
    new, message = BAD[old]
    assert old.strip() in TINY
    tiny.write("tiny.toml", TINY.replace(old.strip(), new, -1 if old == "[[trial]]" else 1))
    refused = tiny(*STUDY, "--quick", "--seeds", "0")
    assert (refused.code, refused.stdout) == (2, "")
    assert refused.stderr.startswith("algolen: study 'tiny.toml': ")
    assert message in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert [path.name for path in tiny.folder.iterdir()] == ["tiny.toml"]


def test_a_study_that_is_not_there_is_refused_with_the_nearest(algolen: CommandLine) -> None:
    refused = algolen("study", "additon")
    assert (refused.code, refused.stderr) == (2, "algolen: unknown study 'additon'; did you mean 'addition'?\n")
    assert "cannot read study 'mine.toml'" in algolen("study", "mine.toml").stderr
    algolen.write("broken.toml", "title = \n")
    assert "study 'broken.toml' is not TOML" in algolen("study", "broken.toml").stderr


def test_trials_are_refused_for_a_study_without(tiny: CommandLine) -> None:
    plain = TINY[: TINY.index("[[trial]]")] + '[[run]]\npe = "nope"\n'
    tiny.write("tiny.toml", plain)
    refused = tiny(*STUDY, "--trials")
    assert (refused.code, "it has no trials" in refused.stderr) == (2, True)
    assert "it compares nothing" in tiny("study", tiny.write("none.toml", TINY[: TINY.index("[[trial]]")])).stderr
    assert "no [[run]] marked quick" in tiny(*STUDY, "--quick").stderr
    assert tiny(*STUDY, "--dry-run").code == 0


def test_a_dry_run_says_what_is_there_and_what_would_be_trained(tiny: CommandLine) -> None:
    planned = tiny(*STUDY, "--dry-run")
    assert (planned.code, planned.stderr) == (0, "")
    assert "3 runs; 3 of them are to be trained: 18 steps" in planned.stdout
    assert [path.name for path in tiny.folder.iterdir()] == ["tiny.toml"]
    assert tiny(*STUDY, "--quick", "--seeds", "1").code == 0
    assert "3 runs; 2 of them are to be trained: 12 steps" in tiny(*STUDY, "--dry-run").stdout
    nope, coupling = json.loads(tiny(*STUDY, "--dry-run", "--json").stdout)
    assert (list(nope["runs"].values()), list(coupling["runs"].values())) == ([None, "done"], [None])


def test_without_names_the_packaged_studies_are_listed(algolen: CommandLine) -> None:
    listed = algolen("study")
    assert (listed.code, listed.stderr) == (0, "")
    found = json.loads(algolen("study", "--json").stdout)
    assert [one["study"] for one in found] == studies.names() and "addition" in studies.names()
    for one in found:
        assert one["study"] in listed.stdout and one["title"] in listed.stdout
        assert (one["done"], one["trials_done"]) == (0, 0) and one["runs"] > 0
    assert algolen.files() == {}


def test_the_study_of_the_documentation_is_one(tmp_path: Path) -> None:
    text = (Path(__file__).resolve().parents[2] / "docs/studies.md").read_text()
    shown = text.partition("```toml\n")[2].partition("```")[0]
    (tmp_path / "copying.toml").write_text(shown)
    study = studies.load(str(tmp_path / "copying.toml"))
    assert [one.label for one in plan(study, building.REGISTRY)] == ["coupling", "rope"]


GIVEN = [
    ("--trials",), ("--quick",), ("--dry-run",), ("--seeds", "0"), ("--wandb", "offline"),
    ("--wandb-project", "lengths"), ("--plugin", "mine.py"), ("--processes", "2"), ("--device", "cpu"),
]  # fmt: skip


@pytest.mark.parametrize("given", GIVEN)
def test_what_is_asked_of_no_study_is_refused_with_those_there_are(
    algolen: CommandLine, given: tuple[str, ...]
) -> None:
    refused = algolen("study", *given)
    assert (refused.code, refused.stdout) == (2, "")
    assert given[0] in refused.stderr and "selective-copy" in refused.stderr
