"""`nearcast match`: files of subscriptions and messages in, pairs out."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:  # heavy: loaded when the command runs
    from nearcast.files import Rejections, Role, Row, Wishes
    from nearcast.model import Id, Message, Subscription, Wish
    from nearcast.text import Analyzer

STANDARD = Path("-")
SOME_REJECTED = 3
"""Exit code when rows were left out; all others were served."""

AT_A_TIME = 10_000

T = TypeVar("T")
W = TypeVar("W", "Subscription", "Wish")


def match(
    subscriptions: Annotated[
        Path, typer.Option("--subscriptions", "-s", help="Parquet, CSV, NDJSON or GeoJSON, by its ending.")
    ],
    messages: Annotated[Path, typer.Option("--messages", "-m", help="The same; - is NDJSON from standard input.")],
    index: Annotated[str | None, typer.Option(help="Name of the index; the fastest by default.")] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Parquet, CSV or NDJSON; - is NDJSON on standard output.")
    ] = STANDARD,
    rejected: Annotated[
        Path | None,
        typer.Option(help="Side file for rows that cannot be used.", show_default="OUT.rejected.ndjson"),
    ] = None,
    analyzer: Annotated[
        str, typer.Option(help="How text becomes words: unicode, or a language such as english.")
    ] = "unicode",
    batch: Annotated[
        int, typer.Option(min=1, help="Messages at a time; 1 answers a live stream line by line.")
    ] = AT_A_TIME,
) -> None:
    """Find which message goes to which subscription.

    Pairs have columns message_id and subscription_id. A row that cannot be used is left out, and written with
    its line and the reason to the side file. Exit code: 0 all rows served, 3 some rejected, 2 nothing done.
    """
    from nearcast import indexes
    from nearcast.columns.encoder import TextEncoder
    from nearcast.files import Rejections, Wishes, check_apart, open_pairs
    from nearcast.lexicon import Lexicon
    from nearcast.text import analyzer as analyzer_named

    started = time.perf_counter()
    side = rejected or side_file(out)
    check_apart(subscriptions=subscriptions, messages=messages, out=out, rejected=side)
    chosen = indexes.create(index or indexes.DEFAULT)
    lexicon = Lexicon(analyzer_named(analyzer).name)
    wishes, encoder = Wishes(lexicon), TextEncoder(lexicon)
    say_if_cold()
    with Rejections(side) as rejections, open_pairs(out) as pairs, progress_bars(out) as bars:
        reading = Reading(analyzer_named(analyzer), rejections, bars)
        for wanted in reading.subscriptions(subscriptions, wishes):
            wishes.add(wanted)
        chosen.insert(wishes.columns())
        endings = wishes.endings()
        pairs.begin(wishes.ids)
        for posted in reading.messages(messages, batch):
            found = chosen.match(encoder.from_values(posted))
            pairs.write([m.id for m in posted], endings.apply(found, [m.ts for m in posted]))
    reading.summary(pairs.count, time.perf_counter() - started)
    exit_if_rejected(rejections, side)


class Reading:
    """Rows to checked values, batch by batch; the others go to the side file. Counts both."""

    def __init__(self, analysis: Analyzer, rejections: Rejections, bars: Progress) -> None:
        self._analysis = analysis
        self._rejections = rejections
        self._bars = bars
        self._counts: dict[str, tuple[int, int]] = {}  # by role: rows read, of these rejected

    def subscriptions(self, path: Path, wishes: Wishes) -> Iterator[list[Subscription]]:
        from nearcast.files import SUBSCRIPTIONS, FileError
        from nearcast.geo import earth
        from nearcast.records import read_subscription

        def read(row: Row) -> Subscription:
            wish = read_subscription(record_of(row), earth, self._analysis)
            wishes.claim(wish.id, row.line)
            return wish

        if path == STANDARD:
            raise FileError("-: standard input is for messages; a file of subscriptions needed")
        return self.values(path, SUBSCRIPTIONS, read, AT_A_TIME)

    def messages(self, path: Path, most: int) -> Iterator[list[Message]]:
        from nearcast.files import MESSAGES
        from nearcast.geo import earth
        from nearcast.records import read_message

        return self.values(path, MESSAGES, lambda row: read_message(record_of(row), earth, self._analysis), most)

    def timed_messages(self, path: Path, most: int, reason: str) -> Iterator[list[Message]]:
        """Messages of which each has its time; the reason is told to those that have none."""
        from nearcast.errors import RowError
        from nearcast.files import MESSAGES
        from nearcast.geo import earth
        from nearcast.records import read_message

        def read(row: Row) -> Message:
            message = read_message(record_of(row), earth, self._analysis)
            if message.ts is None:
                raise RowError(f"ts: nothing given; {reason}")
            return message

        return self.values(path, MESSAGES, read, most)

    def apart(self, path: Path, role: Role, read: Callable[..., W]) -> Iterator[list[W]]:
        """Wishes by `records.read_…`, of which no two have the same id."""
        from nearcast.errors import RowError
        from nearcast.geo import earth

        lines: dict[Id, int] = {}

        def read_one(row: Row) -> W:
            wish = read(record_of(row), earth, self._analysis)
            if lines.setdefault(wish.id, row.line) != row.line:
                raise RowError(f"id: {wish.id!r} is that of line {lines[wish.id]} already")
            return wish

        return self.values(path, role, read_one, AT_A_TIME)

    def summary(self, n_pairs: int, seconds: float, what: str = "pairs") -> None:
        for name, (read, rejected) in self._counts.items():
            typer.echo(f"{name}: {read:,} read, {rejected:,} rejected", err=True)
        typer.echo(f"{what}: {n_pairs:,} in {seconds:.1f} s", err=True)

    def values(self, path: Path, role: Role, read: Callable[[Row], T], most: int) -> Iterator[list[T]]:
        from nearcast.files import in_batches, open_rows

        n_read, before = 0, self._rejections.count
        with open_rows(path, role) as reader:
            bar = self._bars.add_task(role.name, total=reader.size)
            for rows in in_batches(reader, most):
                yield list(self._served(rows, read, reader.file))
                n_read += len(rows)
                self._bars.update(bar, completed=reader.position, total=reader.size)
        self._counts[role.name] = n_read, self._rejections.count - before

    def _served(self, rows: list[Row], read: Callable[[Row], T], file: str) -> Iterator[T]:
        from nearcast.errors import NearcastError

        for row in rows:
            try:
                yield read(row)
            except NearcastError as error:
                self._rejections.add(file, row, str(error))


def record_of(row: Row) -> Mapping[str, Any]:
    from nearcast.errors import RowError

    if row.record is None:
        raise RowError(row.reason)
    return row.record


def exit_if_rejected(rejections: Rejections, side: Path) -> None:
    """The last words of a command: where to look for the rows that were left out."""
    if rejections.count:
        typer.echo(f"{rejections.count:,} rejected, see {side}", err=True)
        raise typer.Exit(SOME_REJECTED)


def side_file(out: Path) -> Path:
    return Path("nearcast.rejected.ndjson") if out == STANDARD else out.with_name(f"{out.name}.rejected.ndjson")


@contextmanager
def opened(out: Path) -> Iterator[IO[str]]:
    if out == STANDARD:
        yield sys.stdout
        return
    from nearcast.files import FileError

    try:
        with out.open("w", encoding="utf-8") as handle:
            yield handle
    except OSError as error:
        raise FileError(f"{out}: cannot be written ({error.strerror})") from error


def say_if_cold() -> None:
    from nearcast.kernels import jit

    if jit.is_cold():
        typer.echo("compiling kernels, once for this version …", err=True)


def progress_bars(out: Path, is_hidden: bool = False) -> Progress:
    """On a terminal only, and not where pairs are printed to the same one."""
    is_shown = sys.stderr.isatty() and not (out == STANDARD and sys.stdout.isatty()) and not is_hidden
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not is_shown,
        redirect_stdout=False,
        redirect_stderr=False,
    )
