"""Options as fields of frozen dataclasses: checked values in, one clear line out where they are wrong.

A field's type says what it accepts (`Literal["a", "b"]`, `Annotated[int, Field(ge=1, description="…")]`); pydantic
does the checking and converts the texts of the command line.
"""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from algolen.errors import UserError, nearest

T = TypeVar("T")
Value = str | int | float | bool | None


@dataclasses.dataclass(frozen=True, slots=True)
class Option:
    """One option as shown to users."""

    name: str
    default: Value
    type: str
    description: str


@functools.cache
def _adapter(cls: type[T]) -> TypeAdapter[T]:
    return TypeAdapter(cls)


def read(cls: type[T], values: Mapping[str, Any], section: str) -> T:
    """An instance of the dataclass `cls` with `values` over its defaults.

    Raises UserError for an unknown name (with the nearest known one) and for a value that a field does not accept.
    """
    known = [field.name for field in dataclasses.fields(cls) if field.init]  # type: ignore[arg-type]
    for name in values:
        if name not in known:
            raise _unknown_option(section, name, known)
    try:
        return _adapter(cls).validate_python(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join([section, *(str(part) for part in first["loc"] if not str(part).startswith("function-"))])
        raise UserError(_say(where, first["type"], first["msg"], first["input"])) from None


def _unknown_option(section: str, name: str, known: list[str]) -> UserError:
    close = nearest(name, known)
    hint = f"did you mean '{section}.{close}'?" if close else f"known: {', '.join(known) or 'none'}"
    return UserError(f"unknown option '{section}.{name}'; {hint}")


def _say(where: str, kind: str, message: str, given: object) -> str:
    message = message[:1].lower() + message[1:]
    message = message.removeprefix("input ").replace("'", "")
    if kind == "value_error":
        return f"{where}: {message.removeprefix('value error, ')}"
    return f"{where} {message}, not {given!r}"


def plain(instance: Any) -> dict[str, Value]:
    """The options of a dataclass instance as plain values, in the order of its fields."""
    return {field.name: getattr(instance, field.name) for field in dataclasses.fields(instance)}


def identity_of(instance: Any) -> dict[str, Value]:
    """The options that make up an identity.

    A field marked `dataclasses.field(metadata={"introduced": value})` came after the first release: it counts only
    where it differs from the value it was introduced with, so that older identities stay what they were. One marked
    `metadata={"identity": False}` says how something is computed, not what, and never counts.
    """
    counted = {}
    for field in dataclasses.fields(instance):
        value = getattr(instance, field.name)
        if not field.metadata.get("identity", True):
            continue
        if "introduced" in field.metadata and value == field.metadata["introduced"]:
            continue
        counted[field.name] = value
    return counted


def describe(cls: type) -> list[Option]:
    """The options of a dataclass for help texts: name, default, type and what it is."""
    hints = typing.get_type_hints(cls, include_extras=True)
    described = []
    for field in dataclasses.fields(cls):
        if not field.init:
            continue
        hint, text = hints[field.name], ""
        if typing.get_origin(hint) is typing.Annotated:
            hint, *notes = typing.get_args(hint)
            text = next((note.description or "" for note in notes if isinstance(note, FieldInfo)), "")
        default = None if field.default is dataclasses.MISSING else field.default
        described.append(Option(field.name, default, _type_name(hint), text))
    return described


def _type_name(hint: Any) -> str:
    if typing.get_origin(hint) is typing.Literal:
        return " | ".join(str(choice) for choice in typing.get_args(hint))
    if typing.get_args(hint):
        return " | ".join("none" if part is type(None) else part.__name__ for part in typing.get_args(hint))
    return str(hint.__name__)
