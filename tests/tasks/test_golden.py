"""What tasks sample never changes silently: digests of test sets, for every version of every task."""

from __future__ import annotations

from typing import Any

import pytest

from algolen.evaluation.test_sets import Fingerprint, TestSet
from tests import building

CASES: dict[tuple[str, int], list[dict[str, Any]]] = {
    ("addition", 1): [
        {},
        {"operands": 4, "reverse_answer": False},
        {"operand_lengths": "independent", "padded": False, "reverse_operands": True},
    ],
    ("copy", 1): [{}, {"alphabet": 300, "unique": True}],
    ("flip-flop", 1): [{}, {"ignore": 0.5, "write": 0.125, "symbols": 9}],
    ("parity", 1): [{}, {"bits": "ones", "scratchpad": True}],
    ("reverse", 1): [{}, {"alphabet": 300, "unique": True}],
    ("selective-copy", 1): [
        {},
        {"blanks": 2.5, "alphabet": 40, "answer": "markers"},
        {"blanks": 30, "blanks_counted": "total"},
    ],
}
"""Options that between them change everything that is drawn."""

GOLDEN: dict[tuple[str, int], str] = {
    ("addition", 1): ("c423aaad 1098039d 54fa9a45 d961e7cb d460fd2c 6440cc49 dd62edff 4dcba61c 5dc94264"),
    ("copy", 1): ("1876d8e2 7719ed66 f294c408 86d14eab"),
    ("flip-flop", 1): ("b254385b 251a492f 3fc461b4 ab2071cf"),
    ("parity", 1): ("10f7645f f93a907b eb7527ec a0d39e77"),
    ("reverse", 1): ("a8325f38 f49eadd2 ae1db8cb 43d9569a"),
    ("selective-copy", 1): ("964547d5 80f906de 8e666d26 cad93d41 fac5a921 f2372008"),
}


def digests(name: str, options: dict[str, Any]) -> list[str]:
    """One for each kind of test set, of a few short and long examples."""
    task, found = building.task(name, **options), []
    for kind in task.test_sets:
        fingerprint = Fingerprint(task.tape_length(120))
        for length in (6, 120):
            fingerprint.update(TestSet(task, kind, length, 12, 0).batch(0, 12, building.CPU))
        found.append(fingerprint.hexdigest()[:8])
    return found


def test_every_version_of_every_task_is_here() -> None:
    assert set(CASES) == {(name, cls.version) for name, cls in building.REGISTRY.tasks.items()}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_change_of_what_is_sampled_raises_the_version(case: tuple[str, int]) -> None:
    assert " ".join(digest for options in CASES[case] for digest in digests(case[0], options)) == GOLDEN[case]
