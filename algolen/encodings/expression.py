"""What users write for an encoding: names joined by `+`, such as `coupling`, `abacus+fire` or `randomized+rope`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from algolen import options
from algolen.encodings.base import Encoding, Ids, Shape
from algolen.encodings.composition import Encodings
from algolen.errors import Refusal, UserError
from algolen.initialisation import Initialiser
from algolen.task import Layout, Task


@dataclass(frozen=True)
class Member:
    """One encoding of an expression with its resolved options."""

    cls: type[Encoding]
    options: Any


@dataclass(frozen=True)
class Expression:
    """The encodings of a run, expanded and with resolved options. `written` is what the user typed."""

    written: str
    members: tuple[Member, ...]

    @property
    def expansion(self) -> str:
        """Every encoding that takes part, joined by +."""
        return "+".join(member.cls.name for member in self.members)

    @property
    def draws_at_test(self) -> bool:
        """Whether some encoding draws positions at test too, so that there is a policy to choose."""
        return any(member.cls.draws_at_test for member in self.members)

    def check(self, task: Task, lengths: Iterable[int], causal: bool, shape: Shape | None = None) -> None:
        """Raises Refusal if the encodings cannot serve the task at all of the nominal lengths, in a model of that
        shape."""
        if shape is not None:
            shape = replace(shape, attention_heads=self.attention_heads(shape.heads))
        for member in self.members:
            if shape is not None:
                member.cls.check_shape(member.options, shape)
            for structure in sorted(member.cls.needs - task.structures):
                raise Refusal(
                    f"{member.cls.name} needs the '{structure}' structure of tokens, which task {task.name} lacks"
                )
            member.cls.check_attention(member.options, causal)
        for length in sorted(set(lengths), reverse=True):
            ids = self.stream(task, length)
            for member in self.members:
                member.cls.check_task(member.options, task, length)
                if member.cls.reads_ids:
                    member.cls.accept(member.options, ids, task, length)

    def stream(self, task: Task, length: int) -> Ids:
        """What is known about the ids that are read at a nominal length."""
        ids = Ids(axes=1, largest=task.tape_length(length) - 1, increasing=True)
        for member in self.members:
            if member.cls.maps_ids:
                ids = member.cls.map_range(member.options, ids, task, length)
        return ids

    def not_greedy(self, task: Task) -> str | None:
        """Why teacher-forced exact match would differ from greedy decoding's; None where they are equal."""
        if task.layout is Layout.SLOTS:
            return "all answer slots are filled at once"
        if task.layout is Layout.LABELS:
            return None
        reasons = (member.cls.reveals_answer(member.options, task) for member in self.members)
        return next((reason for reason in reasons if reason is not None), None)

    def build(self, shape: Shape, init: Initialiser) -> Encodings:
        """The module that a model calls."""
        shape = replace(shape, attention_heads=self.attention_heads(shape.heads))
        return Encodings([m.cls(m.options, shape, init / m.cls.name) for m in self.members])

    def attention_heads(self, heads: int) -> int:
        """How many heads attend, of `heads` projected ones."""
        for member in self.members:
            heads = member.cls.attention_heads(member.options, heads)
        return heads


def parse(
    written: str, lookup: Callable[[str], type[Encoding]], sections: Mapping[str, Mapping[str, Any]]
) -> Expression:
    """The expression a user wrote, with the options of `sections` (by encoding) over the defaults.

    Where encodings map ids and none reads them, the reader that the first map's paper uses joins at the end. Raises
    UserError for an unknown name and Refusal for names that do not go together.
    """
    written = written.strip()
    base, at, extension = written.partition("@")
    if at:
        raise UserError(f"unknown test-time extension '{extension}' in '{written}'; known: none")
    written_names = [name.strip() for name in base.split("+")]
    if len(written_names) > 1 and "" in written_names:
        raise UserError(
            f"'{written}' has a + with nothing beside it; did you mean '{'+'.join(filter(None, written_names))}'?"
        )
    classes = [lookup(name) for name in written_names]
    names = [cls.name for cls in classes]
    for name in names:
        if names.count(name) > 1:
            raise Refusal(f"'{written}' names {name} twice")
    if "nope" in names and len(names) > 1:
        rest = "+".join(name for name in names if name != "nope")
        raise Refusal(f"nope means no position encoding at all; leave it out: '{rest}'")
    owners = [cls.name for cls in classes if cls.logits is not Encoding.logits]
    if len(owners) > 1:
        raise Refusal(f"{' and '.join(owners)} both replace the logits; only one can")
    maps = [cls for cls in classes if cls.maps_ids]
    for cls in maps[1:]:
        if cls.replaces_ids:
            raise Refusal(f"{cls.name} gives ids of its own, so that {maps[0].name} before it would do nothing")
    if maps and not any(cls.reads_ids for cls in classes):
        if maps[0].reader is None:
            raise Refusal(f"{maps[0].name} gives position ids that nothing in '{written}' reads")
        for cls in classes:
            if cls.by_place:
                raise Refusal(
                    f"{cls.name} goes by places on the tape and would not see the ids of {maps[0].name}; name what "
                    f"reads them, as in '{base}+{maps[0].reader}', or leave {maps[0].name} out"
                )
        classes.append(lookup(maps[0].reader))
    return Expression(written, _with_options(classes, sections))


def _with_options(classes: list[type[Encoding]], sections: Mapping[str, Mapping[str, Any]]) -> tuple[Member, ...]:
    members: list[Member] = []
    maps: list[tuple[type[Encoding], Any]] = []
    for cls in sorted(classes, key=lambda cls: not cls.maps_ids):
        own: Any = options.read(cls.Options, sections.get(cls.name, {}), cls.name)
        resolved = cls.resolve(own, tuple(maps))
        members.append(Member(cls, resolved))
        if cls.maps_ids:
            maps.append((cls, resolved))
    return tuple(members)
