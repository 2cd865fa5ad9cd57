"""Why a message matched a subscription, or what was missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nearcast.expression import Clause, Phrase, phrase_found, positions_of
from nearcast.geo import Circle, Space
from nearcast.model import Id, Message, Subscription


@dataclass(frozen=True, slots=True)
class Verdict:
    """One clause against one message: what it found and what stands against it."""

    clause: Clause
    found: tuple[str, ...]  # required words that the message has
    missing: tuple[str, ...]  # required words and phrases that it lacks
    unwanted: tuple[str, ...]  # forbidden words and phrases that it has

    @property
    def holds(self) -> bool:
        return not self.missing and not self.unwanted

    def __str__(self) -> str:
        if self.holds:
            return " AND ".join(self.found)
        lacks = [f"missing {_listed(self.missing)}"] if self.missing else []
        return "; ".join(lacks + ([f"forbidden {_listed(self.unwanted)}"] if self.unwanted else []))


@dataclass(frozen=True, slots=True)
class Explanation:
    """The whole answer for one subscription and one message. `distance` is in the space's unit."""

    subscription: Id
    matched: bool
    inside: bool  # the place touches the region
    distance: float | None  # from the centre, for a circle
    verdicts: tuple[Verdict, ...]  # one a clause, in the expression's order
    region: str  # in words

    @property
    def clause(self) -> Verdict | None:
        """The first clause that holds."""
        return next((verdict for verdict in self.verdicts if verdict.holds), None)

    def __str__(self) -> str:
        words = str(self.clause) if self.clause else " / ".join(map(str, self.verdicts))
        if self.clause and not self.matched:
            words = f"has {words}"
        place = f"{'inside' if self.inside else 'outside'} {self.region}"
        far = "" if self.distance is None else f", {self.distance:,.0f} m from its centre"
        return f"{'matched' if self.matched else 'no match'}: {words}; {place}{far}"


def explain(subscription: Subscription, message: Message, space: Space) -> Explanation:
    """Every clause judged, and where the place lies; agrees with what the indexes find."""
    verdicts = tuple(_verdict(clause, message) for clause in subscription.expression.clauses)
    inside = space.intersects(subscription.region, message.place)
    return Explanation(
        subscription.id,
        inside and any(verdict.holds for verdict in verdicts),
        inside,
        _distance(subscription, message, space),
        verdicts,
        _in_words(subscription, space),
    )


def _verdict(clause: Clause, message: Message) -> Verdict:
    positions = positions_of(message.tokens)
    missing = sorted(clause.required - positions.keys())
    missing += _quoted(p for p in clause.phrases if not phrase_found(p, positions))
    unwanted = sorted(clause.forbidden & positions.keys())
    unwanted += _quoted(p for p in clause.forbidden_phrases if phrase_found(p, positions))
    verdict = Verdict(clause, tuple(sorted(clause.required & positions.keys())), tuple(missing), tuple(unwanted))
    assert verdict.holds == clause.accepts(message.tokens)
    return verdict


def _distance(subscription: Subscription, message: Message, space: Space) -> float | None:
    region = subscription.region
    if not isinstance(region, Circle):
        return None
    return min(space.distance_to_box(region.x, region.y, part) for part in space.place_boxes(message.place))


def _in_words(subscription: Subscription, space: Space) -> str:
    region = subscription.region
    if isinstance(region, Circle):
        unit = " m" if space.name == "earth" else ""
        return f"a circle of {region.radius:,.0f}{unit}"
    return f"a {type(region).__name__.lower()}"


def _quoted(phrases: Iterable[Phrase]) -> list[str]:
    return sorted(f'"{" ".join(word or "*" for word in phrase)}"' for phrase in phrases)


def _listed(words: tuple[str, ...]) -> str:
    return ", ".join(words)
