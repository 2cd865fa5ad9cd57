"""The demo is the first thing a newcomer sees: it must run, look right and explain truly."""

from __future__ import annotations

import re

from rich.console import Console
from typer.testing import CliRunner

from nearcast.cli import app
from nearcast.cli.worldmap import WorldMap


def test_the_demo_runs_and_explains_a_match_and_a_near_miss() -> None:
    result = CliRunner().invoke(app, ["demo", "--subscriptions", "2000", "--messages", "600", "--seed", "2"])
    assert result.exit_code == 0, result.output
    assert "2,000 wishes" in result.output
    assert "600 messages" in result.output
    assert "because  matched:" in result.output
    assert "not sent no match:" in result.output
    changes = re.search(r"best of the last minute · ([\d,]+) changes", result.output)
    assert changes is not None
    assert int(changes[1].replace(",", "")) > 10
    assert "lost dog · Paris" in result.output


def test_equal_seeds_show_equal_worlds() -> None:
    shown = [
        CliRunner().invoke(app, ["demo", "--subscriptions", "300", "--messages", "100", "--seed", "5"]).output
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
