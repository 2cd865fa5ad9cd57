"""The demo is the first thing a newcomer sees: it must run, look right and explain truly."""

from __future__ import annotations

import os
import re

import pytest
from rich.console import Console
from typer.testing import CliRunner

from nearcast.cli import app
from nearcast.cli.worldmap import WorldMap

TERMINAL = ("demo", "--terminal")


def test_the_demo_runs_and_explains_a_match_and_a_near_miss() -> None:
    result = CliRunner().invoke(app, [*TERMINAL, "--subscriptions", "2000", "--messages", "600", "--seed", "2"])
    assert result.exit_code == 0, result.output
    assert "2,000 wishes" in result.output
    assert "600 messages" in result.output
    assert "because  matched:" in result.output
    assert "not sent no match:" in result.output
    changes = re.search(r"best of the last minute · ([\d,]+) changes", result.output)
    assert changes is not None
    assert int(changes[1].replace(",", "")) > 10
    assert "lost dog · Paris" in result.output
    taxi = re.search(r"a taxi at \S+ \S+ · \d+ around it · ([\d,]+) entered, ([\d,]+) left", result.output)
    assert taxi is not None
    assert int(taxi[1]) > 5
    assert int(taxi[2]) > 0


def test_equal_seeds_show_equal_worlds() -> None:
    shown = [
        CliRunner().invoke(app, [*TERMINAL, "--subscriptions", "300", "--messages", "100", "--seed", "5"]).output
        for _ in range(2)
    ]
    without_time = [[line for line in text.splitlines() if "µs" not in line] for text in shown]
    assert without_time[0] == without_time[1]


def test_the_map_shows_wishes_dim_and_matches_bright() -> None:
    world = WorldMap([0.0, 180.0], [51.0, -90.0], width=60)
    world.flash([-70.0] * 6, [40.0] * 6)
    console = Console(record=True, width=80)
    console.print(world.text())
    text = console.export_text()
    assert text.count("·") == 2
    assert text.count("●") == 1
    for _ in range(30):
        world.fade()
    assert "●" not in world.text().plain


@pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="a server has nothing new to say in plain Python"
)
def test_the_demo_serves_a_world_that_matches_and_ends_by_itself() -> None:
    result = CliRunner().invoke(app, ["demo", "--subscriptions", "2000", "--seconds", "4", "--port", "0"])
    assert result.exit_code == 0, (result.output, result.exception)
    assert "2,000 wishes" in result.stderr
    assert re.search(r"API: +http://127\.0\.0\.1:\d+/docs", result.stdout)
    found = re.search(r"([\d,]+) messages .*, ([\d,]+) deliveries; ([\d,]+) of them for me", result.stdout)
    assert found is not None
    assert all(int(number.replace(",", "")) > 0 for number in found.groups())
    assert "1. 0." in result.stdout, "the ranking holds something"
