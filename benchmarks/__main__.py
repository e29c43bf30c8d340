"""Measures everything and prints a table; exit code 1 if a bar is missed.

`python -m benchmarks training sweeping` measures these two alone.
"""

from __future__ import annotations

import sys

import torch
from rich.console import Console
from rich.table import Table

from benchmarks import commands, sweeping, training
from benchmarks.measuring import Bar

PARTS = {"training": training.bars, "sweeping": sweeping.bars, "commands": commands.bars}


def main() -> int:
    """Runs the parts that are named, all of them by default."""
    asked = sys.argv[1:] or list(PARTS)
    if unknown := [name for name in asked if name not in PARTS]:
        print(f"unknown part '{unknown[0]}'; there are: {', '.join(PARTS)}", file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    bars = []
    for name in asked:
        for bar in PARTS[name]():
            bars.append(bar)
            print(f"{bar.what}: {_value(bar)}", file=sys.stderr, flush=True)
    Console(width=150 if not sys.stdout.isatty() else None).print(_table(bars))
    return 0 if all(bar.passed for bar in bars) else 1


def _table(bars: list[Bar]) -> Table:
    table = Table(title="one thread; ratios of processor time, median over alternating blocks", title_justify="left")
    for column in ("what", "measured", "bar", "", "beside"):
        table.add_column(column, justify="right" if column in ("measured", "bar") else "left")
    for bar in bars:
        verdict = "–" if bar.most is None and bar.least is None else "pass" if bar.passed else "MISSED"
        table.add_row(bar.what, _value(bar), _bar(bar), verdict, bar.note)
    return table


def _value(bar: Bar) -> str:
    return f"{bar.value:.3g} {bar.unit}"


def _bar(bar: Bar) -> str:
    if bar.most is not None:
        return f"≤ {bar.most:g} {bar.unit}"
    return "none" if bar.least is None else f"≥ {bar.least:g} {bar.unit}"


if __name__ == "__main__":
    sys.exit(main())
