"""Measures everything and prints a table for each part; exit code 1 if a bar is missed.

`python -m benchmarks training sweeping` measures these two alone.
"""

from __future__ import annotations

import sys

import torch
from rich.console import Console
from rich.table import Table

from benchmarks import commands, encodings, samplers, sweeping, training
from benchmarks.measuring import Bar

PARTS = {
    "training": training,
    "encodings": encodings,
    "samplers": samplers,
    "sweeping": sweeping,
    "commands": commands,
}


def main() -> int:
    """Runs the parts that are named, all of them by default."""
    asked = sys.argv[1:] or list(PARTS)
    if unknown := [name for name in asked if name not in PARTS]:
        print(f"unknown part '{unknown[0]}'; there are: {', '.join(PARTS)}", file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    measured: dict[str, list[Bar]] = {}
    for name in asked:
        measured[name] = []
        for bar in PARTS[name].bars():
            measured[name].append(bar)
            print(f"{bar.what}: {_value(bar)}", file=sys.stderr, flush=True)
    console = Console(width=150 if not sys.stdout.isatty() else None)
    console.print(
        "One thread. Ratios and rates are of processor time, medians over blocks; seconds are those of a clock."
    )
    for name, bars in measured.items():
        about = (PARTS[name].__doc__ or "").splitlines()[0]
        console.print(_table(f"{name}: {about}", bars))
    missed = [bar.what for bars in measured.values() for bar in bars if not bar.passed]
    console.print(f"Missed: {'; '.join(missed)}" if missed else "No bar is missed.")
    return 1 if missed else 0


def _table(title: str, bars: list[Bar]) -> Table:
    table = Table(title=title, title_justify="left")
    for column in ("what", "measured", "bar", "", "beside"):
        table.add_column(column, justify="right" if column in ("measured", "bar") else "left")
    for bar in bars:
        verdict = "–" if bar.most is None and bar.least is None else "pass" if bar.passed else "MISSED"
        table.add_row(bar.what, _value(bar), _bar(bar), verdict, bar.note)
    return table


def _value(bar: Bar) -> str:
    return f"{_number(float(f'{bar.value:.3g}'))} {bar.unit}"


def _bar(bar: Bar) -> str:
    if bar.most is not None:
        return f"≤ {_number(bar.most)} {bar.unit}"
    return "none" if bar.least is None else f"≥ {_number(bar.least)} {bar.unit}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"


if __name__ == "__main__":
    sys.exit(main())
