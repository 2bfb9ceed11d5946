"""Locks of small worlds: solved and built by the real resolver, from tables as `scenario_worlds` has."""

import tomllib
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

from cudalock.lock import Lock, LockedPackage, LockedWheel, format_lock, parse_lock
from cudalock.lock.asked import describe_request
from cudalock.lock.build import build_lock
from cudalock.resolver.engine import Solution
from cudalock.resolver.notes import describe
from cudalock.wheel.knowledge import Knowledge
from scenario_worlds import Scenario

__all__ = ["GOOD", "TODAY", "change_package", "edit_record", "good_lock", "lock_of", "rename_wheel"]

TODAY = date(2026, 3, 1)

GOOD = """
requirements = ["torch>=2.9,<2.12", "kernel[fast]>=0.4", "flash-python", "flash-jit"]
constraints = ["filelock<5"]
knowledge = '''
[[entry]]
kind = "label-word"
project = "torch"
source = "labels"
date = "2026-01-01"

[[entry]]
kind = "pairing"
project = "kernel"
versions = ">=0.4,<0.5"
value = { torch = "2.11" }
source = "METADATA of the engine"
date = "2026-01-01"

[[entry]]
kind = "family"
project = "flash"
value = ["flash-python", "flash-jit"]
source = "flash, version.py"
date = "2026-01-01"

[[entry]]
kind = "runtime-library"
project = "nvidia-runtime"
versions = ">=13,<14"
value = 13
source = "its name"
date = "2026-01-01"

[[entry]]
kind = "architectures"
project = "kernel"
versions = ">=0.4,<0.5"
value = { cuda = "13.0", machine = "x86_64", images = ["sm_120"] }
source = "its build script"
date = "2026-01-01"
'''
expect = { pins = {} }

[target]
python = "3.12"
driver = "590.48.01"
cuda = "13.0"
sm = ["12.0"]

[[wheels]]
file = "torch-2.11.0+cu130-cp312-cp312-manylinux_2_28_x86_64.whl"
requires = ["nvidia-runtime==13.0.96", "filelock>=3.10", "numpy; python_version >= '3.12'"]

[[wheels]]
file = "kernel-0.4.4+cu130-cp310-abi3-manylinux_2_28_x86_64.whl"
requires = ["numpy>=2", "ninja>=1.11; extra == 'fast'"]
extras = ["fast"]

[[wheels]]
file = "flash_python-0.6.1-py3-none-any.whl"
requires = ["torch", "filelock"]

[[wheels]]
file = "flash_jit-0.6.1+cu130-cp39-abi3-manylinux_2_28_x86_64.whl"

[[wheels]]
file = "nvidia_runtime-13.0.96-py3-none-manylinux_2_28_x86_64.whl"

[[wheels]]
file = "filelock-3.20.0-py3-none-any.whl"
python = ">=3.10"

[[wheels]]
file = "numpy-2.3.1-cp312-cp312-manylinux_2_28_x86_64.whl"

[[wheels]]
file = "ninja-1.13.0-py3-none-manylinux_2_28_x86_64.whl"
"""


def lock_of(scenario: Scenario) -> tuple[Lock, Knowledge]:
    """Solve a world and build its lock, as it reads from its text; and the world's knowledge."""
    world, solution = scenario.attempt()
    assert isinstance(solution, Solution)
    resolution = describe(world, solution)
    request = world.request
    lock = build_lock(
        resolution,
        requirements=[str(entry.requirement) for entry in request.requirements],
        asked=describe_request(request, {}, {}),
    )
    return parse_lock(format_lock(lock), where="pylock.toml"), world.knowledge


def good_lock() -> tuple[Lock, Knowledge]:
    """Return a lock of eight wheels that keeps every promise, and the knowledge it was made with."""
    return lock_of(Scenario(name="good", table=tomllib.loads(GOOD)))


def change_package(lock: Lock, name: str, change: Callable[[LockedPackage], LockedPackage]) -> Lock:
    """Return a lock with one entry changed."""
    return replace(lock, packages=tuple(change(p) if p.name == name else p for p in lock.packages))


def rename_wheel(package: LockedPackage, new: str) -> LockedPackage:
    """Give an entry's first wheel another file name, in its address and its record too."""
    wheel, *rest = package.wheels
    renamed = replace(wheel, name=new, url=_beside(wheel, new))
    records = dict(package.tool or {})
    records[new] = records.pop(wheel.name)
    return replace(package, wheels=(renamed, *rest), tool=records)


def _beside(wheel: LockedWheel, new: str) -> str:
    return f"{(wheel.url or '').rpartition('/')[0]}/{new.replace('+', '%2B')}"


def edit_record(package: LockedPackage, **values: object) -> LockedPackage:
    """Change keys of the record of an entry's wheel; None takes one out."""
    (name, table), *_ = (package.tool or {}).items()
    record = dict(table)  # type: ignore[arg-type]  # a record is a table.
    for key, value in values.items():
        record.pop(key.replace("_", "-"), None)
        if value is not None:
            record[key.replace("_", "-")] = value  # type: ignore[assignment]  # plain TOML.
    return replace(package, tool={**(package.tool or {}), name: record})


def write_lock_text(folder: Path, lock: Lock) -> Path:
    """Write a lock's text into a folder."""
    path = folder / "pylock.toml"
    path.write_text(format_lock(lock), encoding="utf-8")
    return path
