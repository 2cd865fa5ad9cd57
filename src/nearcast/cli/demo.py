"""`nearcast demo`: a generated world of wishes and messages, matched before your eyes."""

from __future__ import annotations

import re
import time
from collections import Counter, deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.columns import Columns
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from nearcast.cli.demo_taxi import TAXI, Taxi
from nearcast.cli.worldmap import WIDEST, WorldMap

if TYPE_CHECKING:
    from nearcast.hub import Delivery, Hub
    from nearcast.model import Message, Subscription

BATCH = 25
SHOWN = 7
EXPLAINED = 4
REHEARSED = 200  # messages: enough that some match, and every kernel is met
RANKED = (("live jazz tickets", "Tokyo"), ("pizza ramen", "New York City"), ("lost dog", "Paris"))  # words, city
BEST = 3  # messages of a ranking


def demo(
    subscriptions: Annotated[int, typer.Option(help="How many wishes to generate.", min=1)] = 100_000,
    messages: Annotated[int, typer.Option(help="How many messages to publish.", min=1)] = 5_000,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal worlds.")] = 1,
    index: Annotated[str | None, typer.Option(help="Index to match with (default: the hub's).")] = None,
    picture: Annotated[Path | None, typer.Option(help="Also save what is printed, as SVG.")] = None,
) -> None:
    """Generate wishes around the world's cities, publish a stream of messages, explain some matches."""
    console = Console(record=picture is not None, width=100 if picture else None)
    with console.status("Generating wishes around the world's cities …"):
        hub, wishes, posts = _world(subscriptions, messages, seed, index)
    taxi = Taxi(hub, posts, seed)
    stage = _Stage(wishes, Rankings(hub), taxi, console.width)
    _play(console, hub, posts, stage, taxi)
    console.print(stage.summary())
    for delivery in stage.kept:
        console.print(_explained(hub, delivery))
    console.print(_near_miss(hub, wishes, stage.kept))
    if picture is not None:
        drawn = console.export_svg(title="make demo")
        picture.write_text(re.sub(r"@font-face\s*{[^}]*}", "", drawn))  # a font from the network is not needed


def _world(
    n_subscriptions: int, n_messages: int, seed: int, index: str | None
) -> tuple[Hub, list[Subscription], list[Message]]:
    from nearcast import indexes
    from nearcast.hub import Hub
    from nearcast.ranking import Window
    from nearcast.records import read_message, read_subscription
    from nearcast.text import analyzer
    from nearcast.workloads import CityWorld

    world, analysis = CityWorld(seed), analyzer()
    hub = Hub(index=index or indexes.DEFAULT, window=Window(seconds=60.0))
    wishes = [read_subscription(r, hub.space, analysis) for r in world.subscriptions(n_subscriptions)]
    hub.subscribe_all(wishes)
    posts = [read_message(r, hub.space, analysis) for r in world.messages(n_messages)]
    _rehearse(hub, posts[:REHEARSED])
    places = dict(zip(world.cities.names, zip(world.cities.lon, world.cities.lat, strict=True), strict=True))
    for words, city in RANKED:
        hub.rank(f"{words}, {city}", words, near=places[city], k=BEST, alpha=0.6, id=f"{words} · {city}")
    return hub, wishes, posts


def _rehearse(hub: Hub, posts: list[Message]) -> None:
    """Compile what is not compiled yet, before the clock runs. Rankings have their own hub: time runs once."""
    from nearcast.hub import Hub
    from nearcast.ranking import Window

    hub.publish_all(posts)
    other = Hub(window=Window(seconds=10.0))
    other.rank("nobody", RANKED[0][0], near=(0.0, 0.0), k=1)
    driver = Taxi(other, posts, 1)
    other.publish_all(posts)
    driver.drive()


def _play(console: Console, hub: Hub, posts: list[Message], stage: _Stage, taxi: Taxi) -> None:
    """Publish in small batches; on a terminal at a pace that eyes can follow."""
    pace = 0.05 if console.is_terminal else 0.0
    with Live(console=console, refresh_per_second=20, transient=True) as live:
        for batch in _batches(posts):
            started = time.perf_counter()
            deliveries = hub.publish_all(batch)
            taxi.drive()
            stage.take(batch, deliveries, time.perf_counter() - started)
            if console.is_terminal:
                live.update(stage.view())
                time.sleep(pace)


def _batches(posts: list[Message]) -> Iterator[list[Message]]:
    rest = iter(posts)
    while batch := list(islice(rest, BATCH)):
        yield batch


class Rankings:
    """The best messages of the last minute for a few wishes, and how often that changed."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._new: set[tuple[object, object]] = set()  # wish and message that came with the last batch
        self.changes = 0

    def take(self, changes: list[Delivery]) -> None:
        self.changes += len(changes)
        self._new = {(d.subscription, d.message.id) for d in changes if d.operation == "enter"}

    def view(self, width: int) -> Panel:
        rows = Table.grid(padding=(0, 1))
        for wish in self._hub.wishes():
            rows.add_row("", Text(str(wish.id), style="bold cyan"))
            best = self._hub.ranking(wish.id)
            for message, score in best:
                mark = "[green]▲[/]" if (wish.id, message.id) in self._new else " "
                text = Text(message.text or "", overflow="ellipsis", no_wrap=True)
                rows.add_row(f"{mark} [yellow]{score:.2f}[/]", text)
            for _ in range(BEST - len(best)):
                rows.add_row("", "")
        title = f"best of the last minute · {self.changes:,} changes"
        return Panel(rows, title=title, border_style="grey42", width=width)


class _Stage:
    """What the viewer sees: the map, the latest matches, the busiest words, the rates, rankings."""

    def __init__(self, wishes: list[Subscription], rankings: Rankings, taxi: Taxi, width: int) -> None:
        self._rankings, self._taxi = rankings, taxi
        centres = [_centre(wish) for wish in wishes]
        self._map = WorldMap((x for x, _ in centres), (y for _, y in centres), width - 4)
        self._n_wishes = len(wishes)
        self._width = min(width, WIDEST)
        self._seconds = 0.0
        self._published = self._delivered = self._matched = 0
        self._latest: deque[tuple[Message, int]] = deque(maxlen=SHOWN)
        self._words: Counter[str] = Counter()
        self.kept: list[Delivery] = []

    def take(self, batch: list[Message], delivered: list[Delivery], seconds: float) -> None:
        deliveries = [d for d in delivered if d.operation == "match"]
        self._rankings.take([d for d in delivered if d.score is not None])
        self._taxi.take([d for d in delivered if d.subscription == TAXI])
        self._seconds += seconds
        self._published += len(batch)
        self._delivered += len(deliveries)
        reached = Counter(delivery.message.id for delivery in deliveries)
        matched = [message for message in batch if message.id in reached]
        self._matched += len(matched)
        self._map.fade()
        self._map.flash((m.place.west for m in matched), (m.place.south for m in matched))
        self._latest.extend((message, reached[message.id]) for message in matched)
        for delivery in deliveries[:: max(1, len(deliveries) // 50)]:  # a sample is enough for a ranking
            if verdict := delivery.why.clause:
                self._words.update(verdict.found)
        self._keep_one(deliveries)

    def _keep_one(self, deliveries: list[Delivery]) -> None:
        """For the explanations at the end: a few whose expression says more than one word."""
        telling = [d for d in deliveries if len(d.why.verdicts[0].clause.required) > 1] if self._wants_more() else []
        self.kept += telling[:1]

    def _wants_more(self) -> bool:
        return len(self.kept) < EXPLAINED and self._published > len(self.kept) * 200

    def _figures(self) -> Text:
        each = 1e6 * self._seconds / max(1, self._published)
        return Text.from_markup(
            f"[bold]{self._n_wishes:,}[/] wishes   [bold]{self._published:,}[/] messages   "
            f"[bold]{self._delivered:,}[/] deliveries   [bold]{each:,.0f}[/] µs a message"
        )

    def view(self) -> Group:
        latest = Table.grid(padding=(0, 1), expand=False)
        for message, n in self._latest:
            latest.add_row(f"[bold yellow]{n:>5,}[/]", Text(message.text or "", overflow="ellipsis", no_wrap=True))
        busiest = Table.grid(padding=(0, 1))
        for word, n in self._words.most_common(SHOWN):
            busiest.add_row(word, f"[cyan]{'▇' * (1 + 12 * n // self._words.most_common(1)[0][1])}[/]")
        return Group(
            Panel(Group(self._map.text(), self._figures()), title="nearcast", border_style="grey42", expand=False),
            Columns(
                [
                    Panel(latest, title="reached · message", border_style="grey42", width=int(self._width * 0.66)),
                    Panel(busiest, title="wished for", border_style="grey42", width=int(self._width * 0.33)),
                ]
            ),
            self._rankings.view(self._width),
            self._taxi.view(self._width),
        )

    def summary(self) -> Group:
        share = 100 * self._matched / max(1, self._published)
        body = Group(self._map.text(), self._figures(), Text(f"{share:.0f} % of the messages were wanted by someone"))
        shown = Panel(body, title="nearcast demo", border_style="grey42", expand=False)
        return Group(shown, self._rankings.view(self._width), self._taxi.view(self._width))


def _centre(wish: Subscription) -> tuple[float, float]:
    from nearcast.geo import Box, Circle

    region = wish.region
    if isinstance(region, Circle):
        return region.x, region.y
    assert isinstance(region, Box)
    return region.west, region.south


def _explained(hub: Hub, delivery: Delivery) -> Panel:
    wish = hub.subscription(delivery.subscription)
    return Panel(
        Text.assemble(
            ("message  ", "grey62"), delivery.message.text or "", "\n",
            ("wish     ", "grey62"), (wish.expression.source, "bold"), "\n",
            ("because  ", "grey62"), (str(delivery.why), "green"),
        ),
        title=f"to subscription {delivery.subscription}",
        title_align="left",
        border_style="green",
        expand=False,
    )  # fmt: skip


def _near_miss(hub: Hub, wishes: list[Subscription], kept: list[Delivery]) -> Panel:
    """The same message against a wish with the same words elsewhere: what was missing."""
    from nearcast.explain import explain

    message = kept[0].message if kept else hub.message("nothing happened", at=(0.0, 0.0))
    others = (w for w in wishes if w.expression.accepts(message.tokens))
    missed = next((w for w in others if not hub.space.intersects(w.region, message.place)), wishes[0])
    return Panel(
        Text.assemble(
            ("message  ", "grey62"), message.text or "", "\n",
            ("wish     ", "grey62"), (missed.expression.source, "bold"), "\n",
            ("not sent ", "grey62"), (str(explain(missed, message, hub.space)), "red"),
        ),
        title=f"not to subscription {missed.id}",
        title_align="left",
        border_style="red",
        expand=False,
    )  # fmt: skip
