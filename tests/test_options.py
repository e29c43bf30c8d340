"""Options as fields of dataclasses: what is accepted, what is said where it is not, what counts for an identity."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from algolen import options
from algolen.errors import UserError


@dataclass(frozen=True)
class Sample:
    count: Annotated[int, Field(ge=1, le=9, description="how many")] = 3
    rate: Annotated[float, Field(gt=0)] = 0.5
    kind: Literal["round", "square"] = "round"
    loud: bool = False
    rows: Annotated[int | None, Field(ge=1)] = 7
    label: str = ""

    def __post_init__(self) -> None:
        if self.loud and self.kind == "square":
            raise ValueError("squares are quiet")


def message(values: dict[str, Any], section: str = "sample") -> str:
    with pytest.raises(UserError) as caught:
        options.read(Sample, values, section)
    return str(caught.value)


def test_texts_of_the_command_line_become_what_the_fields_are() -> None:
    made = options.read(
        Sample, {"count": "4", "rate": "1e-3", "kind": "square", "loud": "false", "rows": "2"}, "sample"
    )
    assert made == Sample(4, 0.001, "square", False, 2)


def test_an_integer_for_a_float_field_is_that_float() -> None:
    assert type(options.read(Sample, {"rate": 1}, "sample").rate) is float
    assert options.read(Sample, {"rate": 1}, "sample") == options.read(Sample, {"rate": "1.0"}, "sample")


def test_none_is_no_value_only_where_a_field_can_have_none() -> None:
    assert options.read(Sample, {"rows": "none"}, "sample").rows is None
    assert options.read(Sample, {"label": "none"}, "sample").label == "none"
    assert message({"count": "none"}) == "sample.count should be a whole number, not 'none'"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"count": "x"}, "sample.count should be a whole number, not 'x'"),
        ({"count": 1.5}, "sample.count should be a whole number, not 1.5"),
        ({"count": 0}, "sample.count should be at least 1, not 0"),
        ({"count": "10"}, "sample.count should be at most 9, not '10'"),
        ({"rate": "fast"}, "sample.rate should be a number, not 'fast'"),
        ({"rate": 0}, "sample.rate should be more than 0, not 0"),
        ({"rate": "inf"}, "sample.rate should be a finite number, not inf"),
        ({"kind": "oval"}, "sample.kind should be round or square, not 'oval'"),
        ({"loud": "aloud"}, "sample.loud should be true or false, not 'aloud'"),
        ({"label": 3}, "sample.label should be text in quotes, not 3"),
        ({"loud": None}, "sample.loud should be true or false, not none"),
        ({"loud": True, "kind": "square"}, "sample: squares are quiet"),
        ({"cuont": 3}, "unknown option 'sample.cuont'; did you mean 'sample.count'?"),
        ({"zzz": 3}, "unknown option 'sample.zzz'; known: count, rate, kind, loud, rows, label"),
    ],
)
def test_a_value_that_is_not_accepted_is_named_with_what_is(values: dict[str, Any], said: str) -> None:
    assert message(values) == said


def test_outside_of_sections_an_option_goes_by_its_name_alone() -> None:
    assert message({"count": 0}, "") == "count should be at least 1, not 0"
    assert message({"cuont": 0}, "") == "unknown option 'cuont'; did you mean 'count'?"


def test_a_long_value_is_not_repeated_in_full() -> None:
    assert len(message({"count": list(range(10_000))})) < 120


@dataclass(frozen=True)
class Grown(Sample):
    later: int = field(default=5, metadata={"introduced": 2})
    faster: bool = field(default=False, metadata={"identity": False})


def test_a_field_that_came_later_counts_only_where_it_differs_from_what_it_was_introduced_with() -> None:
    before = options.identity_of(Sample())
    assert options.identity_of(Grown(later=2)) == before
    assert options.identity_of(Grown(later=5)) == {**before, "later": 5}


def test_how_something_is_computed_never_counts() -> None:
    assert options.identity_of(Grown(faster=True)) == options.identity_of(Grown(faster=False))


def test_an_identity_from_before_a_field_means_the_value_it_was_introduced_with_not_todays_default() -> None:
    stored = options.identity_of(Sample(count=4))
    assert options.read(Grown, options.restored(Grown, stored), "sample") == Grown(count=4, later=2)
    assert options.restored(Grown, {"later": 9})["later"] == 9


def test_every_option_is_described_with_default_values_and_meaning() -> None:
    described = {option.name: option for option in options.describe(Sample)}
    assert list(described) == [field.name for field in dataclasses.fields(Sample)]
    assert described["count"] == options.Option("count", 3, "int", "how many")
    assert (described["kind"].type, described["rows"].type) == ("round | square", "int | none")
