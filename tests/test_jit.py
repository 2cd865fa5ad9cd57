"""The one place that meets Numba."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from nearcast import indexes
from nearcast.kernels import jit

SOURCE = Path(jit.__file__).parents[1]


def test_no_other_file_imports_numba() -> None:
    meets = re.compile(r"^\s*(import|from) numba", re.MULTILINE)
    assert [p.name for p in SOURCE.rglob("*.py") if meets.search(p.read_text())] == ["jit.py"]


def test_kernel_files_import_each_other_by_name() -> None:
    """The digest follows `from nearcast.kernels.x import y`, so that is how it must be written."""
    other_way = re.compile(r"^\s*(import nearcast|from nearcast\.kernels import)", re.MULTILINE)
    assert [p.name for p in (SOURCE / "kernels").glob("*.py") if other_way.search(p.read_text())] == []


def test_a_home_that_cannot_be_written_to_still_has_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NEARCAST_CACHE", str(tmp_path / "file"))
    jit.cache_folder.cache_clear()
    assert jit.cache_folder(Path(jit.__file__)).is_relative_to(tempfile.gettempdir())
    jit.cache_folder.cache_clear()


def test_the_cache_folder_is_named_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARCAST_CACHE", str(tmp_path))
    (tmp_path / "upper.py").write_text("from nearcast.kernels.lower import x")
    (tmp_path / "lower.py").write_text("x = 1")

    def folder() -> Path:
        jit.cache_folder.cache_clear()
        return jit.cache_folder(tmp_path / "upper.py")

    first = folder()
    assert first.parent == tmp_path / "nearcast" / "kernels"
    assert folder() == first
    (tmp_path / "lower.py").write_text("x = 2")
    second = folder()
    monkeypatch.setattr(jit.numba_config, "BOUNDSCHECK", 1)
    assert len({first, second, folder()}) == 3
    jit.cache_folder.cache_clear()


def test_warm_up_compiles_once() -> None:
    indexes.warm_up("scan")
    assert all(n <= 1 for n in jit.signatures().values())
    assert not jit.is_cold()


@pytest.mark.skipif(jit.PURE, reason="nothing is compiled in the pure mode")
def test_a_second_process_finds_the_compiled_kernels(tmp_path: Path) -> None:
    script = (
        "from nearcast import indexes; from nearcast.kernels import jit; cold = jit.is_cold(); "
        "indexes.warm_up('scan'); from nearcast.kernels.scan import probe; "
        "print(cold, sum(probe.stats.cache_hits.values()))"
    )
    environment = os.environ | {"NEARCAST_CACHE": str(tmp_path)}
    told = [
        subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert [t.stdout.split() for t in told] == [["True", "0"], ["False", "1"]]
