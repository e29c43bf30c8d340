"""Options as fields of frozen dataclasses: checked values in, one clear line out where they are wrong.

A field's type says what it accepts (`Literal["a", "b"]`, `Annotated[int, Field(ge=1, description="…")]`); pydantic
does the checking and converts the texts of the command line.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import reprlib
import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from algolen.errors import UserError, nearest

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

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
def _adapter(cls: Any) -> TypeAdapter[Any]:
    return TypeAdapter(cls)


@functools.cache
def _hints(cls: Any) -> dict[str, Any]:
    """What each field of a dataclass accepts, without the notes of `Annotated`."""
    return typing.get_type_hints(cls)


def read(cls: type[T], values: Mapping[str, Any], section: str) -> T:
    """An instance of the dataclass `cls` with `values` over its defaults.

    "none" is the absence of a value where a field accepts that. Raises UserError for an unknown name (with the nearest
    known one) and for a value that a field does not accept.
    """
    known = [field.name for field in dataclasses.fields(cls) if field.init]  # type: ignore[arg-type]
    for name in values:
        if name not in known:
            raise _unknown_option(section, name, known)
    kind: Any = cls  # mypy does not see that a type[T] is hashable
    given = {name: _none_or_given(_hints(kind)[name], value) for name, value in values.items()}
    try:
        made: T = _adapter(kind).validate_python(given)
    except ValidationError as error:
        raise UserError(_say(section, error.errors()[0])) from None
    for name, value in plain(made).items():
        if isinstance(value, float) and not math.isfinite(value):
            raise UserError(f"{_where(section, name)} should be a finite number, not {value}")
    return made


def _none_or_given(hint: Any, value: Any) -> Any:
    return None if value == "none" and type(None) in typing.get_args(hint) else value


def _unknown_option(section: str, name: str, known: list[str]) -> UserError:
    close = nearest(name, known)
    hint = f"did you mean '{_where(section, close)}'?" if close else f"known: {', '.join(known) or 'none'}"
    return UserError(f"unknown option '{_where(section, name)}'; {hint}")


def _where(*parts: object) -> str:
    return ".".join(str(part) for part in parts if part != "")


KINDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "string": "text in quotes"}
BOUNDS = {
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
}


def _say(section: str, error: ErrorDetails) -> str:
    """What pydantic found wrong, in the words of a user of the command line."""
    where = _where(section, *(part for part in error["loc"] if not str(part).startswith("function-")))
    kind, context = error["type"], error.get("ctx", {})
    if kind == "value_error":
        return f"{where}: {context['error']}"
    if kind == "missing":
        return f"{where} has no default and was not set"
    if kind in BOUNDS:
        expected = BOUNDS[kind].format(**{name: _shown(bound) for name, bound in context.items()})
    elif kind == "literal_error":
        expected = str(context["expected"]).replace("'", "")
    else:
        expected = KINDS.get(kind.partition("_")[0]) or error["msg"].removeprefix("Input should be ")
    return f"{where} should be {expected}, not {_shown(error['input'])}"


def _shown(given: object) -> str:
    if given is None or isinstance(given, bool):
        return str(given).lower()
    return f"{given:g}" if isinstance(given, float) else reprlib.repr(given)


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


def restored(cls: type, stored: Mapping[str, Value]) -> dict[str, Value]:
    """The options of an identity with those that came after it, at the values they were introduced with."""
    later = {
        field.name: field.metadata["introduced"] for field in dataclasses.fields(cls) if "introduced" in field.metadata
    }
    return {**later, **stored}


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


def choices(cls: type) -> dict[str, tuple[Value, ...]]:
    """For each option that is true or false or one of a few names, the values that are not its default."""
    found: dict[str, tuple[Value, ...]] = {}
    for field in dataclasses.fields(cls):
        hint = _hints(cls)[field.name]
        values = (False, True) if hint is bool else typing.get_args(hint)
        if field.init and (hint is bool or typing.get_origin(hint) is typing.Literal):
            found[field.name] = tuple(value for value in values if value != field.default)
    return found


def _type_name(hint: Any) -> str:
    if typing.get_origin(hint) is typing.Literal:
        return " | ".join(str(choice) for choice in typing.get_args(hint))
    if typing.get_args(hint):
        return " | ".join("none" if part is type(None) else part.__name__ for part in typing.get_args(hint))
    return str(hint.__name__)
