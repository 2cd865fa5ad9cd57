"""One small picture per experiment. Needs matplotlib (extra `bench`), which is imported only here."""

from __future__ import annotations

from collections.abc import Callable
from math import floor, log10
from pathlib import Path
from typing import Any

from nearcast.bench.results import CaseResult, ExperimentResult, IndexResult, RunResult
from nearcast.bench.spec import BenchError
from nearcast.bench.tables import count

DPI = 90
_MAGNITUDES = 20  # longest bar to shortest, above which an axis is logarithmic
_MARKERS = "osD^vP*X<>hd"
_BARS: dict[str, Callable[[IndexResult], float | None]] = {
    "µs per message": lambda r: r.us,
    "build, seconds": lambda r: r.build_s,
    "bytes per subscription": lambda r: r.bytes_per_subscription,
}
_CHANGES: dict[str, Callable[[IndexResult], float | None]] = {
    "inserts per second": lambda r: r.maintenance.insert_per_s if r.maintenance else None,
    "removes per second": lambda r: r.maintenance.remove_per_s if r.maintenance else None,
    "µs per message, after": lambda r: r.maintenance.us_after if r.maintenance else None,
}
_RANKING: dict[str, Callable[[IndexResult], float | None]] = {
    "arrival, µs per message": lambda r: r.figures.get("arrival µs"),
    "expiry, µs per message": lambda r: r.figures.get("expiry µs"),
}
_MOVING: dict[str, Callable[[IndexResult], float | None]] = {
    "arrival, µs": lambda r: r.figures.get("arrival µs"),
    "move, µs": lambda r: r.figures.get("move µs"),
    "MB": lambda r: r.figures.get("MB"),
}


def require_matplotlib() -> Any:
    """The classes a plot needs, or an error that says how to get them; asked before a long run starts."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise BenchError("plots need matplotlib: pip install 'nearcast[bench]'") from None
    return Figure


def write_plots(run: RunResult, folder: Path) -> dict[str, Path]:
    """A PNG for each experiment that measured anything, named suite-experiment.png, by the experiment's name."""
    folder.mkdir(parents=True, exist_ok=True)
    written = {}
    for experiment in run.experiments:
        cases = [case for case in experiment.cases if any(r.status == "measured" for r in case.results)]
        if cases:
            path = folder / f"{run.suite}-{experiment.name}.png"
            draw(experiment, cases).savefig(path, dpi=DPI)
            written[experiment.name] = path
    return written


def draw(experiment: ExperimentResult, cases: list[CaseResult]) -> Any:
    """Lines where a number is varied; bars for a single case and for data sets, which have no order."""
    if experiment.kind == "maintenance":
        return _bars(experiment, cases, _CHANGES)
    if experiment.kind == "rank":
        return _bars(experiment, cases, _RANKING)
    if experiment.kind == "move":
        return _bars(experiment, cases, _MOVING)
    if experiment.kind != "match":
        return _bars(experiment, cases, _trial_metrics(cases))
    if len(cases) == 1:
        return _bars(experiment, cases, _BARS)
    if experiment.vary == "data":
        return _bars(experiment, cases, {"µs per message": _BARS["µs per message"]})
    return _lines(experiment, cases)


def _trial_metrics(cases: list[CaseResult]) -> dict[str, Callable[[IndexResult], float | None]]:
    """A panel for each figure of a trial."""
    names = dict.fromkeys(name for case in cases for result in case.results for name in result.figures)

    def metric(name: str) -> Callable[[IndexResult], float | None]:
        return lambda result: result.figures.get(name)

    return {name: metric(name) for name in names}


def _lines(experiment: ExperimentResult, cases: list[CaseResult]) -> Any:
    figure = require_matplotlib()(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    for number, name in enumerate(_names(cases)):
        times = _values(cases, name, _BARS["µs per message"])
        axes.plot(range(len(cases)), times, marker=_MARKERS[number % len(_MARKERS)], markersize=5, label=name)
    axes.set_yscale("log")
    _plain_numbers(axes)
    axes.set_xticks(range(len(cases)), [case.label for case in cases])
    axes.set_xlabel(experiment.vary.replace("_", " "))
    axes.set_ylabel("µs per message")
    _finish(axes, experiment.title)
    figure.legend(fontsize=8, loc="outside right upper")
    return figure


def _bars(
    experiment: ExperimentResult, cases: list[CaseResult], metrics: dict[str, Callable[[IndexResult], float | None]]
) -> Any:
    """One panel per metric, one group of bars per case."""
    names = _names(cases)
    figure = require_matplotlib()(figsize=(6.4, 1.0 + 2.1 * len(metrics)), layout="constrained")
    width = 0.8 / max(1, len(names) if len(cases) > 1 else 1)
    for panel, (metric, value) in zip(figure.subplots(len(metrics), squeeze=False)[:, 0], metrics.items(), strict=True):
        for number, name in enumerate(names):
            heights = [height or float("nan") for height in _values(cases, name, value)]
            places = [case + number * width for case in range(len(cases))] if len(cases) > 1 else [number]
            panel.bar(places, heights, width, label=name)
        labels = [case.label for case in cases] if len(cases) > 1 else names
        centre = 0.4 - width / 2 if len(cases) > 1 else 0.0
        turned = {"rotation": 30, "ha": "right"} if len(labels) > 6 else {}
        panel.set_xticks([at + centre for at in range(len(labels))], labels, fontsize=8, **turned)
        _scale_bars(panel)
        _finish(panel, metric)
    figure.suptitle(f"{experiment.title} ({cases[0].label})" if len(cases) == 1 else experiment.title, fontsize=10)
    if len(cases) > 1:
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, fontsize=8, loc="outside right upper")
    return figure


def _scale_bars(panel: Any) -> None:
    """From zero where lengths can be compared; by magnitude, from a power of ten, where the short would vanish."""
    heights = [bar.get_height() for bar in panel.patches if bar.get_height() > 0]
    if heights and max(heights) > _MAGNITUDES * min(heights):
        panel.set_yscale("log")
        panel.set_ylim(bottom=10.0 ** floor(log10(min(heights)) - 0.3))
    _plain_numbers(panel)


def _plain_numbers(axes: Any) -> None:
    """0.6 and 200K instead of powers of ten."""
    from matplotlib.ticker import FuncFormatter

    logarithmic = axes.get_yscale() == "log"
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _at: count(value)))
    if logarithmic:
        low, high = axes.get_ylim()
        within = high < 20 * low  # else the major ticks say enough
        axes.yaxis.set_minor_formatter(FuncFormatter(lambda value, _at: count(value) if within else ""))
    axes.tick_params(axis="y", which="both", labelsize=8)


def _finish(axes: Any, title: str) -> None:
    axes.set_title(title, fontsize=10)
    axes.grid(axis="y", which="both", linewidth=0.3, alpha=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _names(cases: list[CaseResult]) -> list[str]:
    return list(dict.fromkeys(r.index for case in cases for r in case.results if r.status == "measured"))


def _values(cases: list[CaseResult], name: str, value: Callable[[IndexResult], float | None]) -> list[float]:
    """NaN, which is not drawn, where an index has no value."""
    found = [next((value(r) for r in case.results if r.index == name), None) for case in cases]
    return [float("nan") if v is None else float(v) for v in found]
