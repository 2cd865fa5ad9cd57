"""A suite as somebody asked for it on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nearcast.bench.spec import BenchError
from nearcast.bench.suite import ALL, Experiment, Suite


def adjusted(
    suite: Suite,
    *,
    only: Sequence[str] = (),
    contestants: Sequence[str] = (),
    baseline: str | None = None,
    sizes: Sequence[int] = (),
    scale: float = 1.0,
    repeat: int | None = None,
) -> Suite:
    """Names are checked strictly: what is typed must exist.

    `contestants` replace those of every experiment; a `baseline` joins them. `sizes` replace the numbers of
    subscriptions where these are varied; elsewhere the first one holds. `scale` multiplies after that.
    """
    for name in (*contestants, *([baseline] if baseline else [])):
        if name not in suite.names():
            raise BenchError(f"index {name!r} given; there are {', '.join(suite.names())}")
    names = [experiment.name for experiment in suite.experiments]
    for name in only:
        if name not in names:
            raise BenchError(f"experiment {name!r} given; {suite.name} has {', '.join(names)}")
    if scale <= 0 or min(sizes, default=1) < 1 or (repeat is not None and repeat < 1):
        raise BenchError(f"scale {scale}, sizes {list(sizes)}, repeat {repeat}: all must be positive")
    chosen = [experiment for experiment in suite.experiments if not only or experiment.name in only]
    experiments = [_resized(_asked(one, tuple(contestants), baseline), sizes, scale) for one in chosen]
    pace = suite.pace if repeat is None else replace(suite.pace, repeat=repeat)
    return replace(suite, pace=pace, experiments=tuple(experiments))


def _asked(experiment: Experiment, contestants: tuple[str, ...], baseline: str | None) -> Experiment:
    chosen = contestants or experiment.indexes
    base = baseline or (experiment.baseline if not contestants or experiment.baseline in chosen else chosen[0])
    if baseline and ALL not in chosen and baseline not in chosen:
        chosen = (baseline, *chosen)
    larger = () if contestants else experiment.larger
    beside = experiment.beside if not contestants or experiment.beside in chosen else ""
    return replace(experiment, indexes=chosen, baseline=base, larger=larger, beside=beside)


def _resized(experiment: Experiment, sizes: Sequence[int], scale: float) -> Experiment:
    spec, values = experiment.spec, experiment.values
    if sizes:
        spec = replace(spec, subscriptions=sizes[0])
        values = tuple(sizes) if experiment.vary == "subscriptions" else values
    if experiment.vary in ("subscriptions", "messages", "history", "window"):
        scaled = [replace(spec, **{experiment.vary: value}).scaled(scale) for value in values]
        values = tuple(dict.fromkeys(getattr(one, experiment.vary) for one in scaled))
    larger = tuple((round(size * scale), names) for size, names in experiment.larger)
    return replace(experiment, spec=spec.scaled(scale), values=values, larger=larger)
