"""`nearcast index`: build snapshots of indexes, and look into them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:  # heavy: loaded when the command runs
    from rich.table import Table

    from nearcast.indexes.strata import Anatomy
    from nearcast.lexicon import Lexicon

app = typer.Typer(help="Build a snapshot of an index, and look into one.", no_args_is_help=True)

LEXICON = "lexicon.parquet"
"""Beside the arrays of a snapshot that was built from a file: which word is which term."""

# Nanoseconds, for the expected cost: measured on one core at 1M to 10M subscriptions (docs/strata.md).
KEY_NS, LANE_NS, LEAF_NS = 8.0, 1.0, 12.0
LEAF = 14  # entries of a leaf on the average


@app.command()
def build(
    subscriptions: Annotated[
        Path, typer.Option("--subscriptions", "-s", help="Parquet, CSV, NDJSON or GeoJSON, by its ending.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the snapshot.")],
    index: Annotated[str, typer.Option(help="Name of the index.")] = "strata",
    analyzer: Annotated[str, typer.Option(help="How text becomes words.")] = "unicode",
) -> None:
    """Read subscriptions and write an index of them that a process maps instead of building it."""
    import pyarrow.parquet as pq

    from nearcast import indexes
    from nearcast.files import Wishes
    from nearcast.lexicon import Lexicon
    from nearcast.text import analyzer as analyzer_named

    lexicon = Lexicon(analyzer_named(analyzer).name)
    wishes = Wishes(lexicon)
    n_read, reasons = _read(subscriptions, wishes, analyzer)
    built = indexes.build(index, wishes.columns())
    built.save(out)
    pq.write_table(lexicon.to_arrow(), out / LEXICON)
    for reason in reasons[:5]:
        typer.echo(f"rejected: {reason}", err=True)
    typer.echo(f"{n_read - len(reasons):,} subscriptions in {out}, {len(reasons):,} rejected", err=True)
    if reasons:
        raise typer.Exit(3)


def _read(path: Path, wishes: Any, analyzer: str) -> tuple[int, list[str]]:
    """Everything readable into `wishes`: rows read, and why some were rejected."""
    from nearcast.errors import NearcastError
    from nearcast.files import SUBSCRIPTIONS, in_batches, open_rows
    from nearcast.geo import earth
    from nearcast.records import read_subscription
    from nearcast.text import analyzer as analyzer_named

    n_read, reasons, analysis = 0, list[str](), analyzer_named(analyzer)
    with open_rows(path, SUBSCRIPTIONS) as reader:
        for rows in in_batches(reader, 10_000):
            good = []
            for row in rows:
                n_read += 1
                try:
                    if row.record is None:
                        reasons.append(f"line {row.line}: {row.reason}")
                        continue
                    wish = read_subscription(row.record, earth, analysis)
                    wishes.claim(wish.id, row.line)
                    good.append(wish)
                except NearcastError as error:
                    reasons.append(f"line {row.line}: {error}")
            wishes.add(good)
    return n_read, reasons


@app.command()
def inspect(
    file: Annotated[Path, typer.Argument(help="Folder of a snapshot.")],
    top: Annotated[int, typer.Option(min=1, help="How many of the heaviest terms.")] = 10,
) -> None:
    """Sizes, strata, heaviest terms, lengths of lists and expected cost of a saved index."""
    from rich.console import Console

    from nearcast import indexes
    from nearcast.indexes.strata import Strata

    loaded = indexes.load(file)
    console = Console(soft_wrap=True)
    console.print(_sizes(loaded.report()))
    if isinstance(loaded, Strata):
        anatomy = loaded.anatomy()
        console.print(_strata(anatomy), _heaviest(anatomy, top, _lexicon(file)), _histogram(anatomy), sep="\n")
        typer.echo(_expected(anatomy))


def _lexicon(file: Path) -> Lexicon | None:
    import pyarrow.parquet as pq

    from nearcast.lexicon import Lexicon

    path = file / LEXICON
    return Lexicon.from_arrow(pq.read_table(path)) if path.is_file() else None


def _table(title: str, *columns: str) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    return table


def _sizes(report: Any) -> Table:
    title = f"{report.name}: {report.live:,} subscriptions, {report.entries:,} entries"
    table = _table(title, "part", "bytes", "per subscription")
    for part, size in (*report.bytes.items(), ("all", report.bytes_total)):
        table.add_row(part, f"{size:,}", f"{size / max(1, report.live):.1f}")
    for name, value in report.details.items():
        table.add_row(name, f"{value:,}" if isinstance(value, int) else str(value), "")
    return table


def _strata(anatomy: Anatomy) -> Table:
    """How many lists and entries each kind of list has."""
    table = _table("strata", "stratum", "lists", "entries")
    for which, name in enumerate(("one term", "several terms")):
        lengths, levels = anatomy.lengths[:, which], anatomy.levels[:, which]
        for level in range(int(levels.max(initial=0)) + 1):
            chosen = (levels == level) & (lengths > 0)
            kind = f"tree of {level} level{'s' * (level > 1)}" if level else "run"
            table.add_row(f"{name}, {kind}", f"{int(chosen.sum()):,}", f"{int(lengths[chosen].sum()):,}")
    return table


def _heaviest(anatomy: Anatomy, top: int, lexicon: Lexicon | None) -> Table:
    import numpy as np

    table = _table("heaviest terms", "term", "one term", "several terms", "weight")
    total = anatomy.lengths.sum(axis=1)
    for term in np.argsort(-total, kind="stable")[:top].tolist():
        if total[term]:
            name = str(term) if lexicon is None else f"{term} {lexicon.word(term)}"
            counts = (anatomy.lengths[term, 0], anatomy.lengths[term, 1], anatomy.weights[term])
            table.add_row(name, *(f"{int(count):,}" for count in counts))
    return table


def _histogram(anatomy: Anatomy) -> Table:
    """Lists by length, in powers of two."""
    import numpy as np

    table = _table("lengths of lists", "entries", "lists", "")
    lengths = anatomy.lengths[anatomy.lengths > 0]
    counts = np.bincount(np.log2(lengths).astype(np.int64)) if len(lengths) else np.zeros(0, dtype=np.int64)
    for power, count in enumerate(counts.tolist()):
        bar = "#" * round(40 * count / max(1, int(counts.max())))
        table.add_row(f"{1 << power} to {(2 << power) - 1}", f"{count:,}", bar)
    return table


def _expected(anatomy: Anatomy) -> str:
    """The cost model's view of one message term, drawn by weight: a key, and the lists behind it."""
    import numpy as np

    lengths, weights = anatomy.lengths.astype(np.float64), anatomy.weights.astype(np.float64)
    if not weights.sum():
        return "expected cost: unknown (nothing inside)"
    share = weights / weights.sum()
    in_runs = np.where(anatomy.levels == 0, lengths, 0.0).sum(axis=1)
    leaves = np.where(anatomy.levels > 0, np.sqrt(lengths * LEAF) / LEAF, 0.0).sum(axis=1)
    cost = KEY_NS + LANE_NS * in_runs + LEAF_NS * leaves
    return (
        f"expected for a term of a message: {(share * in_runs).sum():.1f} lanes of runs, "
        f"{(share * leaves).sum():.1f} leaves of trees, {(share * cost).sum():.0f} ns"
    )
