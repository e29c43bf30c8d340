"""`algolen report`: which encoding keeps working at which lengths, from what is stored."""

from __future__ import annotations

from typing import Annotated

import typer

from algolen.cli import common


def report(
    task: Annotated[str | None, typer.Option(help="Only runs of this task.")] = None,
    pe: Annotated[str | None, typer.Option(help="Only runs with this encoding, as typed or as it expands.")] = None,
    test_set: Annotated[str, typer.Option(help="Which test sets of the task.")] = "random",
    checkpoint: Annotated[str, typer.Option(help="Which checkpoint was tested: last or best.")] = "last",
    threshold: Annotated[float, typer.Option(help="Exact match from which a length counts as solved.")] = 0.95,
    same_recipe: Annotated[
        bool, typer.Option("--same-recipe", help="A table for each model and training, instead of a mark on each row.")
    ] = False,
    trials: common.Trials = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON: an object a row, with raw counts.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV: a line a run and length.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print tables in Markdown.")] = False,
    db: common.Database = common.DATABASE,
) -> None:
    """Compare encodings by length: exact match, horizons, seeds solved.

    Cells are medians over seeds with their range. Where models or training differ, rows are marked and say in what.
    """
    from algolen.errors import UserError
    from algolen.report import report as make_report
    from algolen.store import Store

    formats = [f"--{name}" for name, asked in (("json", json), ("csv", csv), ("markdown", markdown)) if asked]
    if len(formats) > 1:
        raise UserError(f"{' and '.join(formats)} cannot be had at once; give one of them")
    with Store.open(db) as store:
        made = make_report(store, task, pe, test_set, checkpoint, threshold, trials=trials, same_recipe=same_recipe)
    if formats:
        for note in made.omissions():
            common.console(stderr=True).print(note, markup=False, soft_wrap=True)
    if json:
        common.print_json(made.to_json())
    elif csv:
        typer.echo(made.to_csv(), nl=False)
    elif markdown:
        typer.echo(made.to_markdown(), nl=False)
    else:
        made.print(common.console())
