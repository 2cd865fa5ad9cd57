"""`nearcast bench`: compare the indexes, list what can be compared, draw results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table

if TYPE_CHECKING:
    from nearcast.bench import RunResult, Suite
    from nearcast.bench.heat import Tell

app = typer.Typer(help="Compare indexes on the papers' workloads and on real data.", no_args_is_help=True)


@app.command()
def run(
    suite: Annotated[str, typer.Argument(help="Which suite; `nearcast bench list` names them.")],
    indexes: Annotated[str, typer.Option(help="Contestants instead of the suite's: a,b,name:variant …")] = "",
    experiment: Annotated[list[str] | None, typer.Option(help="Only these experiments of the suite.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write everything here; rewritten after each experiment.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write tables here.")] = None,
    plots: Annotated[Path | None, typer.Option(help="Write one PNG per experiment into this folder.")] = None,
    scale: Annotated[float, typer.Option(help="Subscriptions times this; below 1 also fewer messages.")] = 1.0,
    size: Annotated[list[int] | None, typer.Option(help="Subscriptions; repeat for a sweep over sizes.")] = None,
    repeat: Annotated[int | None, typer.Option(help="Rounds of timing.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Decides all data.")] = 1,
    baseline: Annotated[str | None, typer.Option(help="Index that ratios refer to; joins the contestants.")] = None,
    show: Annotated[bool, typer.Option("--list", help="Show what would be measured, and stop.")] = False,
) -> None:
    """Measure a suite. Answers are compared before anything is timed; a difference ends the run."""
    from nearcast.bench import Runner, adjusted, find_suite, pairs_to_measure

    chosen = adjusted(
        find_suite(suite),
        only=experiment or (),
        contestants=[name.strip() for name in indexes.split(",") if name.strip()],
        baseline=baseline,
        sizes=size or (),
        scale=scale,
        repeat=repeat,
    )
    if show:
        _show(chosen)
        return
    if plots:
        from nearcast.bench.plots import require_matplotlib

        require_matplotlib()
    found = _header(chosen, seed, scale)
    with _progress(pairs_to_measure(chosen)) as tell:
        for result in Runner(chosen, seed, tell).run():
            found = found.with_experiment(result)
            if json:
                found.write(json)
    _hand_over(found, markdown, plots)
    failed = [line for result in found.experiments for line in result.failed()]
    if failed:
        Console(stderr=True).print("failed:", *failed, sep="\n  ", highlight=False)
        raise typer.Exit(1)


@app.command("list")
def list_suites() -> None:
    """The suites, their experiments, and what each varies."""
    from nearcast.bench import packaged_suites

    for suite in packaged_suites().values():
        _show(suite)


@app.command()
def plot(
    file: Annotated[Path, typer.Argument(help="JSON that `nearcast bench run --json` wrote.")],
    folder: Annotated[Path | None, typer.Option(help="Where to; beside the file by default.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write tables with the plots here.")] = None,
) -> None:
    """Draw the results of an earlier run."""
    from nearcast.bench import RunResult

    for path in _write(RunResult.read(file), markdown, folder or file.parent):
        typer.echo(path)


def _header(suite: Suite, seed: int, scale: float) -> RunResult:
    from nearcast import __version__
    from nearcast.bench import RunResult
    from nearcast.bench.measure import machine

    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    pace = asdict(suite.pace)
    return RunResult(suite.name, suite.title, date, __version__, seed, scale, pace, suite.judge, machine())


def _hand_over(found: RunResult, markdown: Path | None, plots: Path | None) -> None:
    """Tables on the screen, all details in the files."""
    from nearcast.bench import tables

    _write(found, markdown, plots)
    console, text = Console(), tables.markdown(found, details=False)
    if console.is_terminal:
        console.print(Markdown(text))
    else:
        typer.echo(text)


def _write(found: RunResult, markdown: Path | None, plots: Path | None) -> list[Path]:
    """The plots that were drawn; the page has them in it."""
    from nearcast.bench import tables

    drawn: dict[str, Path] = {}
    if plots:
        from nearcast.bench.plots import write_plots

        drawn = write_plots(found, plots)
    if markdown:
        markdown.parent.mkdir(parents=True, exist_ok=True)
        pictures = {name: Path(relpath(path, markdown.parent)).as_posix() for name, path in drawn.items()}
        markdown.write_text(tables.markdown(found, pictures=pictures) + "\n")
    return list(drawn.values())


def _show(suite: Suite) -> None:
    table = Table(title=f"{suite.name}: {suite.title}", title_justify="left", title_style="bold")
    table.add_column("experiment", no_wrap=True)
    for column in ("what", "varies", "size", "indexes"):
        table.add_column(column, overflow="fold")
    for one in suite.experiments:
        cases = one.cases()
        present, absent = one.contestants(cases[0])
        sizes = sorted({case.spec.subscriptions for case in cases})
        names = [*present, *(f"({name}: not in this version)" for name in absent)]
        names += [f"[dim]from {size:,}: {' '.join(fewer)}[/]" for size, fewer in one.larger]
        varied = f"{one.vary}: {', '.join(case.label for case in cases)}"
        size = f"{sizes[0]:,}" + (f" … {sizes[-1]:,}" if len(sizes) > 1 else "")
        what = f"{one.title}\n[dim]{one.mirrors}[/]" if one.mirrors else one.title
        table.add_row(one.name, what, varied, size, ", ".join(names))
    Console().print(table)


@contextmanager
def _progress(total: int) -> Iterator[Tell]:
    """A bar on a terminal's standard error; elsewhere nothing, so that logs stay readable."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda what, done: bar.update(task, description=what, advance=done)
