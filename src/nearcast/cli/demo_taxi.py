"""The demo's taxi: drives through a busy city, and its list of messages changes as it drives."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.panel import Panel
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from nearcast.geo import Circle
    from nearcast.hub import Delivery, Hub
    from nearcast.model import Message

TAXI = "taxi"
SPAN = 3.0  # degrees of the town that it drives through
METRES = 150_000.0  # it is told of everything so far around it; the generated world is wide
WORDS = 20  # the most frequent ones there are what it waits for
LISTED = 4
COMMON = 4  # letters: shorter words say little


class Taxi:
    """A subscription that moves with every batch."""

    def __init__(self, hub: Hub, posts: list[Message], seed: int) -> None:
        from nearcast.workloads.roads import grid_roads
        from nearcast.workloads.traffic import Traffic

        self._hub = hub
        self._centre, words = _busiest(posts)
        self._traffic = Traffic(grid_roads(20, seed), 1, seed, speed=0.5, destinations=8)
        self._new: set[object] = set()
        self.entered = self.left = 0
        hub.follow(TAXI, " OR ".join(words), within=self._region())

    def drive(self) -> None:
        """A little further; what enters and leaves by that."""
        self._traffic.step()
        self._new = set()
        self.take(self._hub.move(TAXI, self._region()))

    def take(self, changes: list[Delivery]) -> None:
        came = {d.message.id for d in changes if d.operation == "enter"}
        self._new |= came
        self.entered += len(came)
        self.left += len(changes) - len(came)

    def _region(self) -> Circle:
        from nearcast.geo import circle

        x, y = (self._traffic.places[0] - 0.5) * SPAN
        return circle(self._centre[0] + float(x), self._centre[1] + float(y), metres=METRES)

    def view(self, width: int) -> Panel:
        rows = Table.grid(padding=(0, 1))
        around = self._hub.current(TAXI)
        for message in around[::-1][:LISTED]:
            mark = "[green]▲[/]" if message.id in self._new else " "
            rows.add_row(mark, Text(message.text or "", overflow="ellipsis", no_wrap=True))
        for _ in range(LISTED - len(around)):
            rows.add_row("", "")
        region = self._region()
        title = (
            f"a taxi at {region.x:.2f}, {region.y:.2f} · {len(around)} around it · "
            f"{self.entered:,} entered, {self.left:,} left"
        )
        return Panel(rows, title=title, border_style="grey42", width=width)


def _busiest(posts: list[Message]) -> tuple[tuple[float, float], list[str]]:
    """The place (to a degree) with the most messages, and the most frequent words there."""
    places = Counter((round(m.place.west), round(m.place.south)) for m in posts)
    (x, y), _ = max(places.items(), key=lambda item: (item[1], item[0]))
    near = [m for m in posts if abs(m.place.west - x) <= SPAN and abs(m.place.south - y) <= SPAN]
    words = Counter(
        token.word for m in near for token in m.tokens if len(token.word) >= COMMON and token.word.isalpha()
    )
    ranked = sorted(words, key=lambda word: (-words[word], word))
    centre = max(-170.0, min(170.0, float(x))), max(-80.0, min(80.0, float(y)))
    return centre, ranked[:WORDS] or ["taxi"]
