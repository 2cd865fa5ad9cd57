"""A workload's description: what a suite file says of data, subscriptions and messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from nearcast.errors import NearcastError
from nearcast.workloads import REAL_SETS, STYLES
from nearcast.workloads.roads import ROADS
from nearcast.workloads.sampling import Sizes

_PAIRS: dict[str, type] = {"keywords": int, "message_words": int, "area": float, "message_area": float}
_LEAST = {"subscriptions": 20, "messages": 10, "history": 10, "window": 20}  # what scaling down leaves


class BenchError(NearcastError):
    """A suite, a name or a file the bench cannot use, or contestants that do not agree."""


@dataclass(frozen=True, slots=True)
class Spec:
    """One workload. Pairs are ranges with both ends included; areas are shares of the data space."""

    data: str = "short"  # a style of `workloads.STYLES` or a real set of `workloads.REAL_SETS`
    subscriptions: int = 100_000
    messages: int = 10_000  # measured ones; so many that caches and branch predictors cannot learn them
    history: int = 5_000  # sample for cost models; shares no message with the measured ones
    rows: int | None = None  # of a real set: its first rows only
    keywords: tuple[int, int] = (1, 5)
    keyword_zipf: float | None = None  # weight rank ** -zipf of a message's words when keywords are picked
    area: tuple[float, float] = (1e-4, 1e-2)
    sizes: Sizes = "log"
    message_words: tuple[int, int] | None = None  # None: as the data has them; real sets are filtered by it
    message_area: tuple[float, float] | None = None  # None: as the data has it; (0, 0): points
    vocabulary: int | None = None  # these three: of generated data only, None: as the style has it
    zipf: float | None = None
    local: float | None = None
    built: float = 1.0  # maintenance: share of the subscriptions that are there at the start, others join later
    churn: float = 0.1  # maintenance: share that is removed, and replaced by as many new ones
    roads: str = "grid"  # these five of moving subscriptions: a network of `workloads.roads`
    mobility: float = 0.2  # share that moves in a timestamp
    speed: float = 1.0  # times medium, see `workloads.traffic`
    arrivals: int = 0  # messages of a timestamp; 0: a tenth of the window
    timestamps: int = 3
    window: int = 100_000  # messages of a full window; these five of rankings
    warm: int = 0  # messages that pass before those that are measured
    k: int = 20
    burst: float = 1.0  # busy times have so many times the messages of quiet ones
    threads: int = 1

    def __post_init__(self) -> None:
        known = [*STYLES, *REAL_SETS]
        _require(self.data in known, f"data {self.data!r} given; there are {', '.join(known)}")
        for name in _LEAST:
            _require(getattr(self, name) >= 1, f"{name} must be at least 1, not {getattr(self, name)}")
        _require(self.sizes in ("log", "uniform"), f"sizes must be log or uniform, not {self.sizes!r}")
        _require(min(self.k, self.threads) >= 1, f"k and threads must be at least 1, not {self.k} and {self.threads}")
        _require(self.roads in ROADS, f"roads {self.roads!r} given; there are {', '.join(ROADS)}")
        _require(0 <= self.mobility <= 1, f"mobility must be a share, not {self.mobility}")
        _require(self.speed >= 0, f"speed must not be negative, not {self.speed}")
        _require(self.arrivals >= 0, f"arrivals must not be negative, not {self.arrivals}")
        _require(self.timestamps >= 1, f"timestamps must be at least 1, not {self.timestamps}")
        _require(self.warm >= 0, f"warm must not be negative, not {self.warm}")
        _require(self.burst >= 1, f"burst must be at least 1, not {self.burst}")
        _require(0 < self.built <= 1, f"built must be a share above 0, not {self.built}")
        _require(0 <= self.churn < 1, f"churn must be a share below 1, not {self.churn}")
        generated = [name for name in ("vocabulary", "zipf", "local") if getattr(self, name) is not None]
        _require(not (self.is_real and generated), f"{self.data} is real data: {generated} cannot be chosen")

    @property
    def is_real(self) -> bool:
        return self.data in REAL_SETS

    def scaled(self, factor: float) -> Spec:
        """Subscriptions times the factor; messages and history only shrink, for more would change nothing."""
        factors = {name: min(factor, 1.0) for name in _LEAST} | {"subscriptions": factor, "warm": min(factor, 1.0)}
        factors["arrivals"] = min(factor, 1.0)
        smaller = {name: max(_LEAST.get(name, 0), round(getattr(self, name) * by)) for name, by in factors.items()}
        return self if factor == 1 else replace(self, **smaller)

    def changed(self, where: str, **values: Any) -> Spec:
        """The same with some values of a suite file in place of others."""
        names = [f.name for f in fields(self)]
        for name in values:
            _require(name in names, f"{where}: {name!r} given; a workload has {', '.join(names)}")
        try:
            return replace(self, **{name: _read(name, value) for name, value in values.items()})
        except (TypeError, ValueError) as error:
            raise BenchError(f"{where}: {error}") from None

    @classmethod
    def read(cls, values: Mapping[str, Any], where: str) -> Spec:
        return cls().changed(where, **values)


def _read(name: str, value: Any) -> Any:
    """A single number stands for a range from it to itself."""
    if name not in _PAIRS:
        numeric = name not in ("data", "sizes", "roads")
        _require(
            isinstance(value, int | float) == numeric,
            f"{name} must be a {'number' if numeric else 'name'}, not {value!r}",
        )
        return value
    ends = value if isinstance(value, list | tuple) else [value, value]
    _require(
        len(ends) == 2 and all(isinstance(end, int | float) for end in ends),
        f"{name} must be a number or two numbers, not {value!r}",
    )
    low, high = map(_PAIRS[name], ends)
    _require(0 <= low <= high, f"{name} must be 0 <= low <= high, not {value!r}")
    return low, high


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise BenchError(message)


def label(value: Any) -> str:
    """A value of a workload as a short heading: 100K, 6-20, 1e-4, point, tweets."""
    if value == (0.0, 0.0):
        return "point"
    if isinstance(value, list | tuple):
        low, high = value
        between = "…" if isinstance(high, float) else "-"
        return label(low) if low == high else f"{label(low)}{between}{label(high)}"
    if isinstance(value, int) and value >= 1000 and value % 100 == 0:
        return f"{value / 1e6:g}M" if value >= 1_000_000 else f"{value / 1e3:g}K"
    if isinstance(value, float) and value != 0 and abs(value) < 0.1:
        mantissa, exponent = f"{value:.3e}".split("e")
        return f"{float(mantissa):g}e{int(exponent)}"
    return f"{value:g}" if isinstance(value, float) else str(value)
