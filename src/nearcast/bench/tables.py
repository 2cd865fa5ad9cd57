"""Results as Markdown: a table per experiment to look at, another with everything, and what to know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from nearcast.bench.results import CaseResult, ExperimentResult, IndexResult, RunResult

_UNITS = "Microseconds of the processor per message (batches, median of the repeats)"

_ABOUT = (
    "Wall: µs with the time that others had the core. p50 and p99: one message a call, by the wall. Resident: "
    "growth of the process while building. Candidates, nodes and bytes: as the index counts them."
)


def markdown(run: RunResult, *, details: bool = True, pictures: Mapping[str, str] | None = None) -> str:
    """The whole run as a page. `pictures` are addresses of plots by the experiment's name."""
    about = run.machine
    lines = [
        f"# {run.title}",
        "",
        f"Suite `{run.suite}` of nearcast {run.package}, {run.date}. {about['cpu']}, {about['cores']} cores, "
        f"{about['memory_gib']} GiB; Python {about['python']}, NumPy {about['numpy']}, Numba {about['numba']}"
        f"{'' if about['compiled'] else ', kernels NOT compiled'}. Seed {run.seed}, scale {run.scale:g}, "
        f"{run.pace['repeat']} repeats. All contestants of a case gave the same answers before they were timed.",
        "",
    ]
    for experiment in run.experiments:
        lines += _experiment(experiment, details, about["cores"], (pictures or {}).get(experiment.name))
    return "\n".join(lines)


def _experiment(experiment: ExperimentResult, details: bool, cores: int, picture: str | None) -> list[str]:
    mirrors = f" Mirrors {experiment.mirrors}." if experiment.mirrors else ""
    lines = [f"## {experiment.title}", "", f"`{experiment.name}`: varied is `{experiment.vary}`.{mirrors}", ""]
    if experiment.kind == "maintenance":
        lines += _maintenance(experiment)
    elif experiment.kind in _STREAMS:
        lines += _stream(experiment)
    elif experiment.kind == "match":
        lines += [_legend(experiment), "", *_overview(experiment)]
    else:
        lines += _figures(experiment)
    if picture:
        lines += ["", f"![{experiment.title}]({picture})"]
    if details and experiment.kind not in _STREAMS:
        lines += ["", *_folded(experiment)]
    return [*lines, "", *_notes(experiment, cores), ""]


def _legend(experiment: ExperimentResult) -> str:
    if not experiment.beside:
        return f"{_UNITS}; in brackets how many times faster than {experiment.baseline}."
    ratio = f"{_UNITS}; in brackets how many times the time of {experiment.beside}, measured beside it"
    floored = any(result.times_floor for _, result in _measured(experiment))
    return f"{ratio}{', and the time of the floor' if floored else ''}."


def _overview(experiment: ExperimentResult) -> list[str]:
    def cell(result: IndexResult | None) -> str:
        if result is None or result.us is None:
            return "-"
        return number(result.us) + ("†" if _is_partial(result) else "") + _ratios(result, bool(experiment.beside))

    cases = [case for case in experiment.cases if not case.skipped]
    names = dict.fromkeys(result.index for _, result in _measured(experiment))
    rows = [[name, *(cell(_find(case, name)) for case in cases)] for name in names]
    return _table(["index", *(case.label for case in cases)], rows)


def _ratios(result: IndexResult, inverse: bool) -> str:
    base = result.speedup and (1 / result.speedup if inverse else result.speedup)
    told = [f"{number(base)}×"] if base else []
    told += [f"{number(result.times_floor)}× floor"] if result.times_floor else []
    return f" ({', '.join(told)})" if told else ""


def _figures(experiment: ExperimentResult) -> list[str]:
    """What a trial found."""
    measured = list(_measured(experiment))
    names = list(dict.fromkeys(name for _, result in measured for name in result.figures))
    rows = [[case.label, r.index, *(number(r.figures.get(name)) for name in names)] for case, r in measured]
    return _table([experiment.vary, "index", *names], rows)


_STREAMS = {
    "rank": (
        ("ranker", "messages/s"),
        "Microseconds of the processor per message, for arrival and expiry together and apart; messages a second by "
        "the wall; counters per message.",
    ),
    "move": (
        ("mover", "events/s"),
        "Microseconds of the processor per event (arrivals and moves, with the ends that come between them), then per "
        "arrival, per end of a message and per move.",
    ),
}
"""By kind: headings of who and of the rate, and what is shown."""


def _stream(experiment: ExperimentResult) -> list[str]:
    """Times and counters of rankers or movers."""
    (who, rate), shown = _STREAMS[experiment.kind]
    measured = list(_measured(experiment))
    names = list(dict.fromkeys(name for _, result in measured for name in result.figures))
    header = [experiment.vary, who, "µs", f"× {experiment.baseline}", rate, *names]
    rows = [
        [
            case.label,
            r.index,
            number(r.us),
            number(1 / r.speedup if r.speedup else None),
            count(r.per_s),
            *(number(r.figures.get(name)) for name in names),
        ]
        for case, r in measured
    ]
    return [shown, "", *_table(header, rows)]


def _maintenance(experiment: ExperimentResult) -> list[str]:
    header = [experiment.vary, "index", "inserts/s", "longest ms", "removes/s", "longest ms"]
    header += ["µs before", "µs after", "after / before"]
    rows = []
    for case, result in _measured(experiment):
        told = result.maintenance
        if told is None:
            continue
        inserts = count(told.insert_per_s), number(told.insert_longest_ms)
        removes = count(told.remove_per_s), number(told.remove_longest_ms)
        ratio = told.us_after / result.us if told.us_after and result.us else None
        times = number(result.us), number(told.us_after), number(ratio)
        rows.append([case.label, result.index, *inserts, *removes, *times])
    return [
        "Changes in batches of 1000, with the longest call; microseconds per message before and after them.",
        "",
        *_table(header, rows),
    ]


_COLUMNS: dict[str, Callable[[IndexResult], str]] = {
    "µs": lambda r: number(r.us),
    "best": lambda r: number(r.us_best),
    "wall": lambda r: number(r.us_wall),
    "p50": lambda r: number(r.p50),
    "p99": lambda r: number(r.p99),
    "× floor": lambda r: number(r.times_floor),
    "messages/s": lambda r: count(r.per_s),
    "measured": lambda r: str(r.messages),
    "build s": lambda r: number(r.build_s),
    "bytes/sub": lambda r: number(r.bytes_per_subscription),
    "resident MB": lambda r: number(r.resident / 1e6 if r.resident and r.resident >= 1e6 else None),
    "candidates": lambda r: number(r.candidates),
    "nodes": lambda r: number(r.nodes),
    "matches": lambda r: number(r.matches),
}


def _folded(experiment: ExperimentResult) -> list[str]:
    return ["<details><summary>All figures</summary>", "", *_details(experiment), "", "</details>"]


def _details(experiment: ExperimentResult) -> list[str]:
    rows = [
        [case.label, result.index, *(cell(result) for cell in _COLUMNS.values())]
        for case, result in _measured(experiment)
    ]
    return [_ABOUT, "", *_table([experiment.vary, "index", *_COLUMNS], rows)]


def _notes(experiment: ExperimentResult, cores: int) -> list[str]:
    """What a reader must not miss: skipped, absent, failed, measured on less, not interleaved, noisy."""
    told: dict[str, list[str]] = {}
    for case in experiment.cases:
        if case.skipped:
            told.setdefault(f"skipped: {case.skipped}", []).append(case.label)
        elif not case.interleaved:
            told.setdefault("contestants measured one after the other, not interleaved", []).append(case.label)
        if case.load is not None and case.load > cores:
            told.setdefault("the machine had more to do than it has cores: times are noisy", []).append(case.label)
        for result in case.results:
            mark = "† " if _is_partial(result) else ""
            state = "" if result.status == "measured" else f"{result.status}: "
            for note in result.notes if result.status != "absent" else ():
                told.setdefault(f"{mark}{result.index}: {state}{note}", []).append(case.label)
    absent = dict.fromkeys(r.index for case in experiment.cases for r in case.results if r.status == "absent")
    lines = [f"- {note} ({', '.join(labels)})" for note, labels in told.items()]
    return lines + ([f"- not in this version: {', '.join(absent)}"] if absent else [])


def _is_partial(result: IndexResult) -> bool:
    return any(note.startswith("measured on") for note in result.notes)


def _measured(experiment: ExperimentResult) -> Iterable[tuple[CaseResult, IndexResult]]:
    return ((case, r) for case in experiment.cases for r in case.results if r.status == "measured")


def _find(case: CaseResult, name: str) -> IndexResult | None:
    return next((result for result in case.results if result.index == name), None)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def number(value: Any) -> str:
    """Three figures that mean something."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def count(value: float | None) -> str:
    """A rate: 512, 12.3K, 1.25M."""
    if value is None:
        return "-"
    for unit, name in ((1e6, "M"), (1e3, "K")):
        if value >= unit:
            return f"{value / unit:.3g}{name}"
    return f"{value:.3g}"
