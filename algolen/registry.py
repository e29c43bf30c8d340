"""What tasks and encodings there are: found in their folders and in named plug-ins, never listed by hand."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import algolen.encodings
import algolen.tasks
from algolen.encodings.base import Encoding
from algolen.errors import UserError, unknown
from algolen.task import Task

RESERVED = ("training", "model", "train", "sweep", "evaluation", "for")
"""Sections of a configuration, which no task or encoding may be called."""

REQUIRED: dict[type, tuple[str, ...]] = {Task: ("version", "source"), Encoding: ("kind", "paper")}
"""What a class has to say of itself besides its name."""


@dataclass(frozen=True)
class Registry:
    """Tasks and encodings by name; `plugins` gives the sha256 of the file that brought a name, for those from files."""

    tasks: dict[str, type[Task]] = field(default_factory=dict)
    encodings: dict[str, type[Encoding]] = field(default_factory=dict)
    plugins: dict[str, str] = field(default_factory=dict)

    def task(self, name: str) -> type[Task]:
        """The task of that name; UserError with the nearest one if there is none."""
        if name not in self.tasks:
            raise unknown("task", name, self.tasks)
        return self.tasks[name]

    def encoding(self, name: str) -> type[Encoding]:
        """The encoding of that name; UserError with the nearest one if there is none."""
        if name not in self.encodings:
            raise unknown("encoding", name, self.encodings)
        return self.encodings[name]

    def add(self, found: type[Task] | type[Encoding], origin: str, sha256: str | None = None) -> None:
        """Takes in a class under its name; a name can be taken only once, by a task or by an encoding."""
        name = getattr(found, "name", None)
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_-]+", name):
            given = "missing" if name is None else repr(name)
            raise UserError(f"{origin}: {found.__name__}.name is {given}; use letters, digits, '_' and '-' only")
        if name in self.tasks or name in self.encodings or name in RESERVED:
            raise UserError(f"{origin}: the name '{name}' is taken; give {found.__name__} another")
        for base, attributes in REQUIRED.items():
            missing = [attribute for attribute in attributes if not hasattr(found, attribute)]
            if issubclass(found, base) and missing:
                raise UserError(f"{origin}: {found.__name__} does not say its {' and '.join(missing)}")
        if issubclass(found, Task):
            self.tasks[name] = found
        else:
            self.encodings[name] = found
        if sha256 is not None:
            self.plugins[name] = sha256


def load(plugins: Sequence[Path] = ()) -> Registry:
    """The built-in tasks and encodings, and those of the plug-in files.

    Raises UserError for a plug-in that is not there, raises, brings nothing, or takes a name that is in use.
    """
    registry = Registry()
    for package, base in ((algolen.tasks, Task), (algolen.encodings, Encoding)):
        for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda info: info.name):
            module = importlib.import_module(f"{package.__name__}.{info.name}")
            for found in _defined_in(module, base):
                registry.add(found, module.__name__)
    for path in plugins:
        _load_plugin(registry, path)
    return registry


def _load_plugin(registry: Registry, path: Path) -> None:
    try:
        source = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read plug-in '{path}': {error.strerror}") from None
    sha256 = hashlib.sha256(source).hexdigest()
    module = _execute(path, source, f"algolen_plugin_{sha256[:16]}")
    found: list[type[Task] | type[Encoding]] = [*_defined_in(module, Task), *_defined_in(module, Encoding)]
    if not found:
        for unfinished in _defined_in(module, Task, abstract=True):
            lacking = ", ".join(sorted(unfinished.__abstractmethods__))
            raise UserError(f"plug-in '{path}': {unfinished.__name__} is no task yet; it lacks {lacking}")
        raise UserError(f"plug-in '{path}' defines no subclass of algolen.task.Task or algolen.encodings.base.Encoding")
    for cls in found:
        registry.add(cls, str(path), sha256)


def _execute(path: Path, source: bytes, name: str) -> ModuleType:
    """The module of a plug-in: the very bytes that were hashed are executed, and no bytecode is left beside them."""
    if name in sys.modules:
        return sys.modules[name]
    if path.suffix != ".py":
        raise UserError(f"plug-in '{path}' is not a Python file (.py)")
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    try:
        exec(compile(source, path, "exec", dont_inherit=True), vars(module))
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, KeyboardInterrupt):
            raise
        raise UserError(f"plug-in '{path}' raised {type(error).__name__}: {_first_line(error)}") from None
    return module


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or ["no message"])[0]


def _defined_in(module: ModuleType, base: type, abstract: bool = False) -> Iterator[Any]:
    for found in vars(module).values():
        if (
            isinstance(found, type)
            and issubclass(found, base)
            and found.__module__ == module.__name__
            and inspect.isabstract(found) == abstract
            and found is not base
        ):
            yield found
