"""Presets: what a run's settings start from, found by looking into the folder `presets`.

A file there is a preset for every task. A folder there, `paper`, is a preset made of recipes, a file each: the settings
of a publication for the tasks and encodings that the file names, with what differs from the publication.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from algolen.config import Sections, merge, split
from algolen.encodings.expression import parse
from algolen.errors import UserError, unknown
from algolen.registry import Registry

FOLDER = Path(__file__).parent / "presets"

STATUSES = ("published", "unconfirmed")
"""Of a recipe: whether its values were read in the publication or its code, or some of them were not to be found."""

OWN = {("", "task"), ("", "pe"), ("", "seeds")}
"""Settings that a preset leaves to the user."""


@dataclass(frozen=True)
class Recipe:
    """How a publication trained one of `tasks` with one of `encodings` (expressions as users write them).

    differs: what is not as in the publication, and what is not known of it, in sentences. special: differences and
    sections for where a task or an encoding of that name takes part.
    """

    name: str
    tasks: tuple[str, ...]
    encodings: tuple[str, ...]
    source: str
    status: str
    differs: tuple[str, ...]
    sections: Sections
    special: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Preset:
    """Sections for one task and encoding. recipe: where they come from, if from a publication, with `differs` and the
    settings that the user `changed`."""

    sections: Sections
    recipe: Recipe | None = None
    differs: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


def names() -> tuple[str, ...]:
    """The presets there are."""
    return tuple(sorted(path.stem for path in FOLDER.iterdir() if path.is_dir() or path.suffix == ".toml"))


@functools.cache
def recipes(preset: str = "paper") -> tuple[Recipe, ...]:
    """The recipes of a preset, by name."""
    return tuple(_read_recipe(path, f"{preset}/{path.stem}") for path in sorted((FOLDER / preset).glob("*.toml")))


def choose(name: str, user: Sections, registry: Registry) -> Preset:
    """The preset of that name (`cpu`, `paper`, `paper/RECIPE`) for what the user asked for.

    Raises UserError if there is none, or where it is made of recipes and not exactly one of them fits.
    """
    preset, named, _ = name.partition("/")
    if preset not in names() or (named and not (FOLDER / preset).is_dir()):
        raise unknown("preset", name, names())
    top = user.get("", {})
    if not (FOLDER / preset).is_dir():
        stored = tomllib.loads((FOLDER / f"{preset}.toml").read_text())
        special = stored.pop("for", {})
        return Preset(_specialised(split(stored, f"preset {name}"), special, [str(top.get("task"))]))
    if not {"task", "pe"} <= top.keys():
        raise UserError(f"--preset {preset} goes by task and encoding: name them with --task and --pe")
    task, pe = registry.task(str(top["task"])).name, str(top["pe"])
    expression = parse(pe, registry.encoding, user)
    recipe = _only(name, task, pe, _fitting(recipes(preset), task, pe, user, registry))
    differs = list(recipe.differs)
    special = {key: dict(own) for key, own in recipe.special.items()}
    involved = [task, *(member.cls.name for member in expression.members)]
    for key, own in special.items():
        differs += own.pop("differs", []) if key in involved else []
    sections = _specialised(recipe.sections, special, involved)
    changed = [".".join(filter(None, place)) for place in _places(user) if place not in OWN]
    return Preset(sections, recipe, tuple(differs), tuple(changed))


def for_task(task: str) -> list[Recipe]:
    """The recipes for a task."""
    return [recipe for recipe in recipes() if task in recipe.tasks]


def for_encoding(encoding: str, registry: Registry) -> list[Recipe]:
    """The recipes in which an encoding takes part."""
    return [
        recipe
        for recipe in recipes()
        if any(encoding in parse(pe, registry.encoding, {}).expansion.split("+") for pe in recipe.encodings)
    ]


def _read_recipe(path: Path, name: str) -> Recipe:
    stored = tomllib.loads(path.read_text())
    tasks = stored.pop("task")
    return Recipe(
        name=name,
        tasks=(tasks,) if isinstance(tasks, str) else tuple(tasks),
        encodings=tuple(stored.pop("pe")),
        source=stored.pop("source"),
        status=stored.pop("status"),
        differs=tuple(stored.pop("differs")),
        special=stored.pop("for", {}),
        sections=split(stored, f"preset {name}"),
    )


def _specialised(sections: Sections, special: Mapping[str, Mapping[str, Any]], involved: Collection[str]) -> Sections:
    """Sections with those laid over them that are for one of the names."""
    return merge(sections, *(split(own, f"[for.{key}]") for key, own in special.items() if key in involved))


def _places(sections: Sections) -> list[tuple[str, str]]:
    return [(section, option) for section, values in sections.items() for option in values]


def _fitting(found: Sequence[Recipe], task: str, pe: str, user: Sections, registry: Registry) -> list[Recipe]:
    """The recipes for a task and for encodings that mean the same, whatever the order in which they are written."""
    wanted = _meaning(pe, user, registry)
    return [
        recipe
        for recipe in found
        if task in recipe.tasks and any(_meaning(own, {}, registry) == wanted for own in recipe.encodings)
    ]


def _meaning(pe: str, sections: Sections, registry: Registry) -> tuple[tuple[str, ...], frozenset[str]]:
    """Maps in their order, which matters, and the other encodings without one."""
    members = [member.cls for member in parse(pe, registry.encoding, sections).members]
    return (
        tuple(cls.name for cls in members if cls.maps_ids),
        frozenset(cls.name for cls in members if not cls.maps_ids),
    )


def _only(name: str, task: str, pe: str, fitting: Sequence[Recipe]) -> Recipe:
    """The recipe that is meant by `paper` or `paper/RECIPE`, of those that fit the task and encoding."""
    preset, named, _ = name.partition("/")
    by_name = {recipe.name: recipe for recipe in recipes(preset)}
    if named:
        if name not in by_name:
            raise unknown("recipe", name, by_name)
        if by_name[name] not in fitting:
            own = by_name[name]
            raise UserError(
                f"{name} is a recipe for {' and '.join(own.tasks)} with {_or(own.encodings)}, not for {task} with {pe}"
            )
        return by_name[name]
    if not fitting:
        raise UserError(f"there is no recipe for {task} with {pe}; {_others(preset, task)}; or use --preset cpu")
    if len(fitting) > 1:
        found = _or([f"--preset {recipe.name}" for recipe in fitting])
        raise UserError(f"there are {len(fitting)} recipes for {task} with {pe}; name one: {found}")
    return fitting[0]


def _others(preset: str, task: str) -> str:
    own = [pe for recipe in recipes(preset) if task in recipe.tasks for pe in recipe.encodings]
    tasks = [other for recipe in recipes(preset) for other in recipe.tasks if other != task]
    for_task = f"for {task} there are some with {', '.join(sorted(set(own)))}" if own else f"there are none for {task}"
    return f"{for_task}, and for {', '.join(sorted(set(tasks)))}"


def _or(texts: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))
