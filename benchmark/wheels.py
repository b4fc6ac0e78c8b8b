"""Collects the wheels that endeavour needs on a machine without network: the versions that are installed here.

    .venv/bin/python benchmark/wheels.py wheels --python 3.12 --without wandb numpy pyarrow --with pytest

Torch is left out, with all that only torch needs: it depends on the machine, and is large. `--without` leaves out what
the machine has already, and what only that needs, which also serves where a package there needs its own version of
another, as transformers does of huggingface-hub; `--with` adds packages that are optional. Run it where endeavour is
installed and pip reaches a package index; on the other machine `gpu.py --wheels` installs the folder, or

    pip install --no-index --no-deps wheels/*.whl
"""

import argparse
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.markers import Environment, default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# pip matches the name of a platform exactly; most wheels have one of these.
GLIBC = (17, 24, 26, 27, 28, 31, 34, 35)
ALWAYS_LEFT_OUT = "torch"


def needed(packages: list[str], without: set[str], environment: Environment) -> dict[str, str]:
    """Name to version of these packages as installed here, and of all that they need there, and so on."""
    found: dict[str, str] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    open_ones = [Requirement(package) for package in packages]
    while open_ones:
        requirement = open_ones.pop()
        name = canonicalize_name(requirement.name)
        asked = (name, frozenset(requirement.extras))
        if name in without or asked in seen:
            continue
        seen.add(asked)
        try:
            installed = distribution(name)
        except PackageNotFoundError as error:
            raise SystemExit(f"{name} is not installed here: install it, or --without {name}") from error
        found[name] = installed.version
        for line in installed.requires or []:
            other = Requirement(line)
            extras = [{**environment, "extra": extra} for extra in ("", *requirement.extras)]
            if other.marker is None or any(other.marker.evaluate(dict(each)) for each in extras):
                open_ones.append(other)
    return found


def fetch(name: str, version: str, *, python: str, machine: str, folder: Path) -> None:
    """Downloads a wheel; a package that has none, and no compiled parts, is built here."""
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in GLIBC] + [f"manylinux2014_{machine}"]
    options = [word for platform in platforms for word in ("--platform", platform)]
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    download = [*pip, "download", "--no-deps", "--only-binary=:all:", f"--python-version={python}", *options]
    what = ["-d", str(folder), f"{name}=={version}"]
    if subprocess.run([*download, *what], stderr=subprocess.DEVNULL, check=False).returncode:
        subprocess.run([*pip, "wheel", "--no-deps", "-w", str(folder), f"{name}=={version}"], check=True)
        built = next(folder.glob(f"{name.replace('-', '_')}-*.whl"))
        if not built.name.endswith("-none-any.whl"):
            built.unlink()
            raise SystemExit(
                f"{name} {version} has no wheel for Python {python} on {machine}: --without {name}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--python", default=f"{sys.version_info[0]}.{sys.version_info[1]}", help="of the machine"
    )
    parser.add_argument("--machine", default="x86_64", help="its processor: x86_64 or aarch64")
    parser.add_argument("--with", dest="also", nargs="*", default=[], metavar="PACKAGE")
    parser.add_argument("--without", nargs="*", default=[], metavar="PACKAGE")
    given = parser.parse_args()
    if not re.fullmatch(r"3\.\d+", given.python):
        parser.error(f"--python {given.python}: no version such as 3.12")
    environment = default_environment()
    environment["python_version"] = given.python
    environment["python_full_version"] = f"{given.python}.0"
    environment["platform_machine"] = given.machine
    without = {canonicalize_name(name) for name in [ALWAYS_LEFT_OUT, *given.without]}
    given.folder.mkdir(parents=True, exist_ok=True)
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    packages = needed([*project["dependencies"], *given.also], without, environment)
    for name, version in sorted(packages.items()):
        fetch(name, version, python=given.python, machine=given.machine, folder=given.folder)
        print(f"{name} {version}", flush=True)
    size = sum(path.stat().st_size for path in given.folder.glob("*.whl"))
    print(f"{len(packages)} wheels, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
