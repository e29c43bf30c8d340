"""Studies: one TOML file each, naming a task, its lengths, the recipes that were tried and the encodings to compare."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from algolen import config, lengths, options
from algolen.config import Sections
from algolen.errors import UserError, unknown
from algolen.store import TRIAL_SEEDS_FROM, is_trial

FOLDER = Path(__file__).resolve().parent.parent / "studies"
"""Where the studies are that come with algolen."""


@dataclass(frozen=True)
class Trial:
    """A recipe that every encoding of a study is tried with."""

    name: Annotated[str, Field(min_length=1, description="what runs call it by")]
    set: Annotated[list[str], Field(description="section.option=value")] = field(default_factory=list)


@dataclass(frozen=True)
class Entry:
    """An encoding of a study, the trial whose recipe was chosen for it, and what it alone needs."""

    pe: Annotated[str, Field(min_length=1, description="the encoding")]
    trial: Annotated[str | None, Field(description="name of the trial that was chosen")] = None
    seeds: Annotated[str | None, Field(description="none: those of the study")] = None
    set: Annotated[list[str], Field(description="section.option=value")] = field(default_factory=list)
    quick: Annotated[bool, Field(description="belongs to a quick reproduction")] = False


@dataclass(frozen=True)
class Header:
    """The keys of a study that a run does not have."""

    title: str
    preset: str | None = None
    trial_seeds: str = str(TRIAL_SEEDS_FROM)


@dataclass(frozen=True)
class Study:
    """A study as its file says it; `sections` are the settings that all runs share."""

    name: str
    path: Path
    header: Header
    sections: Sections
    trials: tuple[Trial, ...]
    entries: tuple[Entry, ...]

    @property
    def task(self) -> str:
        return str(self.sections[""]["task"])

    @property
    def labels(self) -> tuple[str, ...]:
        """A name for each entry: its encoding, and what it sets where the encoding alone would not tell it."""
        names = [entry.pe for entry in self.entries]
        return tuple(
            entry.pe if names.count(entry.pe) == 1 else " ".join([entry.pe, *entry.set]) for entry in self.entries
        )

    def seeds(self, entry: Entry) -> tuple[int, ...]:
        """The seeds that an entry is reported with."""
        return lengths.seeds(entry.seeds or str(self.sections[""].get("seeds", "0")))

    @property
    def trial_seeds(self) -> tuple[int, ...]:
        return lengths.seeds(self.header.trial_seeds)

    def trial(self, entry: Entry) -> Trial:
        """The trial that was chosen for an entry; an empty one in a study without trials."""
        return next((trial for trial in self.trials if trial.name == entry.trial), Trial("", []))


def names() -> list[str]:
    """The studies that come with algolen."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(name: str) -> Study:
    """The study of that name, or of that file where the name ends in `.toml`.

    Raises UserError, naming the file and the entry, for what is not there or cannot be.
    """
    if not name.endswith(".toml"):
        if name not in names():
            raise unknown("study", name, names())
        return read(FOLDER / f"{name}.toml")
    return read(Path(name))


def read(path: Path) -> Study:
    """The study of a file; see `load`."""
    try:
        values = tomllib.loads(path.read_text())
    except OSError as error:
        raise UserError(f"cannot read study '{path}': {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"study '{path}' is not TOML: {error}") from None
    try:
        study = _study(path, values)
        _check(study)
    except UserError as error:
        raise UserError(f"study '{path}': {error}") from None
    return study


def _study(path: Path, values: Mapping[str, Any]) -> Study:
    rest = dict(values)
    trials = _tables(rest.pop("trial", []), "trial")
    entries = _tables(rest.pop("run", []), "run")
    own: dict[str, Any] = {key: rest.pop(key) for key in ("title", "preset", "trial_seeds") if key in rest}
    study = Study(
        path.stem,
        path,
        options.read(Header, own, ""),
        config.split(rest, "a study"),
        tuple(options.read(Trial, table, f"trial {place}") for place, table in enumerate(trials, 1)),
        tuple(options.read(Entry, table, f"run {place}") for place, table in enumerate(entries, 1)),
    )
    top = study.sections[""]
    for key, why in (("pe", "each [[run]] has its own"), ("test_seed", "0 for what is reported, 100 for trials")):
        if key in top:
            raise UserError(f"'{key}' is no key of a study: {why}")
    if "task" not in top:
        raise UserError('name the task, as in task = "addition"')
    return study


def _tables(found: Any, name: str) -> list[dict[str, Any]]:
    if not (isinstance(found, list) and all(isinstance(table, dict) for table in found)):
        raise UserError(f"write [[{name}]], with two brackets: there can be several")
    return found


def _check(study: Study) -> None:
    if not study.entries:
        raise UserError("it compares nothing: add a [[run]] with its pe")
    known = [trial.name for trial in study.trials]
    for kind, given in (("trial", known), ("run", study.labels)):
        if twice := next((name for name in given if list(given).count(name) > 1), None):
            raise UserError(f"[[{kind}]] '{twice}' is there twice")
    for entry, label in zip(study.entries, study.labels, strict=True):
        if entry.trial is None and known:
            raise UserError(f"run '{label}' does not say its trial; known: {', '.join(known)}")
        if entry.trial is not None and entry.trial not in known:
            raise UserError(f"run '{label}': {unknown('trial', entry.trial, known)}")
        check_seeds(study.seeds(entry), trials=False, where=f"run '{label}': ")
    check_seeds(study.trial_seeds, trials=True)


def check_seeds(seeds: tuple[int, ...], trials: bool, where: str = "") -> None:
    """Raises UserError for seeds of trials among those to be reported, and the other way round."""
    for seed in seeds:
        if is_trial(seed) != trials:
            wanted = "below" if not trials else "of trials, which are"
            side = f"{TRIAL_SEEDS_FROM} up" if trials else f"{TRIAL_SEEDS_FROM}, where those of trials begin"
            raise UserError(f"{where}seed {seed} is not one {wanted} {'from ' if trials else ''}{side}")
