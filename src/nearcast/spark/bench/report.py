"""The page docs/results/spark.md, made of what the sessions measured."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nearcast.spark.bench.contestants import FILES_READ, ROWS
from nearcast.spark.bench.run import EMBEDDED, Report


def saved(report: Report, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(report), indent=1) + "\n")


def session_of(report: Report) -> str:
    """The part of the page that this session is."""
    return _session(json.loads(json.dumps(asdict(report))))


def page(paths: Sequence[Path]) -> str:
    """Markdown; one file is one session."""
    told = [json.loads(path.read_text()) for path in paths]
    parts = [_HEAD, *(_session(report) for report in told), _scaling(told)]
    return "\n\n".join(part for part in parts if part) + "\n"


_HEAD = """# On Spark

Made by `nearcast spark bench` and `bench-page`. Generated tweets (6 to 20 words), subscriptions with 1 to 5 words
in boxes of 1e-4 to 1e-2 of the space, as in the other suites. Everybody reads the same Parquet file and finds all
pairs of ids. They are counted and the counts compared before anything is timed; timed is finding them, into Spark's
sink that drops every row. *embedded* is the engine in one process, with as many threads as Spark has cores.
*replicated* is `match` with an index in every worker: with *files read by workers* Spark only says which rows of the
file a task takes; with *rows through Spark* it reads them and hands them to Python. In both, a row for each message
with the list of ids goes back to Spark. CPU is that of all processes (driver, Java, Python workers); a figure is the
median of the rounds, after rounds that are not timed. *stopped*: not done within the limit, so its ratio is a
lower bound."""


def _session(told: dict[str, Any]) -> str:
    lines = [f"## {told['master']}", ""]
    lines += [f"Start of the session with a first job: {told['start_s']:.1f} s.", ""]
    if not told["spatial_functions"]:
        lines += ["Spark has no spatial functions of its own here.", ""]
    else:
        lines += [
            f"Spark's own spatial functions ({', '.join(told['spatial_functions'])}) have no test of a place in a box.",
            "",
        ]
    lines += _table(
        [
            "subscriptions",
            "messages",
            "contestant",
            "pairs",
            "µs CPU a message",
            "µs wall a message",
            "messages/s",
            "ratio",
        ],
        (row for case in told["cases"] for row in _rows(case)),
    )
    lines += [
        "",
        "`ratio`: speed by the clock over that of *embedded*; for joins, how many times faster `match` with files is.",
        "",
    ]
    lines += _table(
        ["subscriptions", "stream", "messages a batch", "batches", "p50 ms", "p90 ms", "p99 ms", "messages/s"],
        (
            [f"{case['subscriptions']:,}", one["name"], f"{one['messages']:,}", str(one["batches"])]
            + [f"{one['latency'][p]:.0f}" for p in ("p50", "p90", "p99")]
            + [f"{one['per_s']:,.0f}"]
            for case in told["cases"]
            for one in case["streams"]
        ),
    )
    lines += [""]
    lines += _table(
        [
            "subscriptions",
            "snapshot MB",
            "workers",
            "mapped MB, each page once (PSS)",
            "counted by worker (RSS)",
            "first match s",
        ],
        (
            [f"{case['subscriptions']:,}", f"{case['snapshot_bytes'] / 1e6:.0f}", str(case["memory"][0])]
            + [f"{n / 1e6:.0f}" for n in case["memory"][1:]]
            + [f"{case['first_match_s']:.1f}"]
            for case in told["cases"]
        ),
    )
    return "\n".join(lines)


def _rows(case: dict[str, Any]) -> Iterable[list[str]]:
    by_name = {one["name"]: one for one in case["figures"]}
    for name, one in by_name.items():
        head = [f"{case['subscriptions']:,}", f"{case['messages']:,}", name]
        ours = by_name[FILES_READ]["wall"]
        if one["stopped"] is not None:
            least = one["stopped"] * 1e6 / case["messages"] / ours
            yield [*head, "", "", "", f"stopped after {one['stopped']:.0f} s", f"match is > {least:.0f}x"]
            continue
        is_join = name.startswith("sql")
        shown = f"match is {one['wall'] / ours:.0f}x" if is_join else f"{by_name[EMBEDDED]['wall'] / one['wall']:.2f}"
        yield [
            *head,
            "-" if one["pairs"] is None else f"{one['pairs']:,}",
            f"{one['cpu']:.2f}",
            f"{one['wall']:.2f}",
            f"{1e6 / one['wall']:,.0f}",
            shown,
        ]


def _scaling(told: Sequence[dict[str, Any]]) -> str:
    if len(told) < 2:
        return ""
    first, last = told[0], told[-1]
    rows = [
        [f"{one['subscriptions']:,}", *(f"{_wall(one, name) / _wall(other, name):.2f}" for name in _SCALED)]
        for one, other in zip(first["cases"], last["cases"], strict=False)
    ]
    head = ["subscriptions", *(f"{name}: times as fast" for name in _SCALED)]
    return "\n".join([f"## {last['master']} over {first['master']}", "", *_table(head, rows)])


_SCALED = (EMBEDDED, FILES_READ, ROWS)


def _wall(case: dict[str, Any], name: str) -> float:
    return float(next(figure["wall"] for figure in case["figures"] if figure["name"] == name))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]
