"""The tables that the rules of this room read, as typed values.

They are data (``tables.toml`` beside this module, every table with its source), so that a new
CUDA release or architecture needs no code. Every rule takes an optional ``tables``; without it
the shipped ones are meant, which are read once. What the numbers mean is told by the rules.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Final, Literal, TypeAlias, TypeVar

from cudalock.cuda.arch import (
    Architecture,
    ComputeCapability,
    parse_architecture,
    parse_compute_capability,
)
from cudalock.cuda.version import (
    CudaVersion,
    DriverVersion,
    PtxIsa,
    parse_cuda_version,
    parse_driver_version,
    parse_ptx_isa,
)
from cudalock.errors import UsageError

__all__ = [
    "DeviceClass",
    "System",
    "Tables",
    "parse_tables",
    "shipped_tables",
    "shipped_tables_text",
]

System: TypeAlias = Literal["linux", "windows"]
DeviceClass: TypeAlias = Literal["data-centre", "workstation", "geforce", "jetson"]

_NAME: Final = "tables.toml"
_SYSTEMS: Final[tuple[System, ...]] = ("linux", "windows")
_CLASSES: Final[tuple[DeviceClass, ...]] = ("data-centre", "workstation", "geforce", "jetson")


# Compared by identity: there is one of it in a process, and comparing two would walk every table.
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tables:
    """NVIDIA's rules as numbers. Mappings are in ascending order of their keys.

    ``toolkit_driver`` is keyed by the three numbers of a toolkit, ``family`` and ``alias`` by the
    number of an architecture, ``branch`` by the first number of a driver, ``l4t`` by the first two of L4T.
    """

    toolkit_driver: Mapping[System, Mapping[tuple[int, int, int], DriverVersion]]
    seen_driver: Mapping[System, Mapping[CudaVersion, DriverVersion]]
    floor: Mapping[System, Mapping[int, DriverVersion]]
    branch: Mapping[int, CudaVersion]
    l4t: Mapping[tuple[int, int], CudaVersion]
    forward: Mapping[CudaVersion, frozenset[int]]
    ptx: Mapping[PtxIsa, CudaVersion]
    targets: Mapping[CudaVersion, tuple[Architecture, ...]]
    family: Mapping[int, frozenset[ComputeCapability]]
    alias: Mapping[int, int]
    tegra: frozenset[ComputeCapability]
    lifted_from: CudaVersion
    lifted: frozenset[int]
    devices: Mapping[ComputeCapability, tuple[str, ...]]
    classes: Mapping[DeviceClass, tuple[str, ...]]
    two_digit_minor_from: CudaVersion
    one_digit_minor_to: CudaVersion
    newest_two_digit_minor: int
    newest_two_digit_major: int
    releases_of_two_digits: frozenset[int]


@cache
def shipped_tables() -> Tables:
    """Return the tables in the package, read on the first call (a few milliseconds) and then kept."""
    return parse_tables(shipped_tables_text(), where=_NAME)


def shipped_tables_text() -> str:
    """Return the text of ``tables.toml``, for someone who wants to add a line and parse it again."""
    # `importlib.resources` would cost three times what reading and parsing cost together.
    return Path(__file__).with_name(_NAME).read_text(encoding="utf-8")


def parse_tables(text: str, *, where: str = _NAME) -> Tables:
    """Read tables in the format of ``tables.toml``; raises ``UsageError`` naming the key."""
    import tomllib  # noqa: PLC0415 - values and parsers of this room are used without tables

    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"expected TOML: {error}", where=where) from error
    read = _Reader(data, where)
    return Tables(
        toolkit_driver={
            system: read.mapping(f"toolkit_driver.{system}", _toolkit, _driver)
            for system in _SYSTEMS
        },
        seen_driver={
            system: read.mapping(f"seen_driver.{system}", parse_cuda_version, _driver)
            for system in _SYSTEMS
        },
        floor={system: read.mapping(f"floor.{system}", int, _driver) for system in _SYSTEMS},
        branch=read.mapping("branch.cuda", int, _cuda),
        l4t=read.mapping("l4t.cuda", _l4t, _cuda),
        forward=read.mapping("forward.branches", parse_cuda_version, _numbers),
        ptx=read.mapping("ptx.cuda", parse_ptx_isa, _cuda),
        targets=read.mapping("targets.sm", parse_cuda_version, _architectures),
        family=read.mapping("family.members", int, _capabilities),
        alias=read.mapping("alias.number", int, _int),
        tegra=read.value("tegra.capabilities", _capabilities),
        lifted_from=read.value("tegra.lifted.from", _cuda),
        lifted=read.value("tegra.lifted.numbers", _numbers),
        devices=read.mapping("device.capability", parse_compute_capability, _names),
        classes={name: read.value(f"device.class.{name}", _names) for name in _CLASSES},
        two_digit_minor_from=read.value("label.two_digit_minor_from", _cuda),
        one_digit_minor_to=read.value("label.one_digit_minor_to", _cuda),
        newest_two_digit_minor=read.value("label.newest_two_digit_minor", _int),
        newest_two_digit_major=read.value("label.cuda.newest_two_digit_major", _int),
        releases_of_two_digits=read.value("label.cuda.releases", _numbers),
    )


_Value = TypeVar("_Value")
_Key = TypeVar(
    "_Key", CudaVersion, PtxIsa, ComputeCapability, int, tuple[int, int, int], tuple[int, int]
)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Takes values out of parsed TOML; every fault names its key."""

    data: Mapping[str, object]
    where: str

    def mapping(
        self, path: str, key: Callable[[str], _Key], value: Callable[[object], _Value]
    ) -> Mapping[_Key, _Value]:
        table = self._find(path)
        if not isinstance(table, dict):
            raise UsageError(f"{path}: expected a table, found `{table}`", where=self.where)
        rows: list[tuple[_Key, _Value]] = []
        for name, raw in table.items():
            try:
                rows.append((key(name), value(raw)))
            except (UsageError, ValueError, TypeError) as error:
                raise UsageError(f"{path}.{name}: {error}", where=self.where) from error
        return dict(sorted(rows, key=itemgetter(0)))

    def value(self, path: str, value: Callable[[object], _Value]) -> _Value:
        raw = self._find(path)
        try:
            return value(raw)
        except (UsageError, ValueError, TypeError) as error:
            raise UsageError(f"{path}: {error}", where=self.where) from error

    def _find(self, path: str) -> object:
        found: object = self.data
        for part in path.split("."):
            if not isinstance(found, dict) or part not in found:
                raise UsageError(f"{path}: expected a value, found none", where=self.where)
            found = found[part]
        return found


def _text(raw: object) -> str:
    if not isinstance(raw, str):
        raise TypeError(f"expected a string, found `{raw}`")
    return raw


def _int(raw: object) -> int:
    if not isinstance(raw, int):
        raise TypeError(f"expected a whole number, found `{raw}`")
    return raw


def _toolkit(text: str) -> tuple[int, int, int]:
    major, minor, update = text.split(".")
    return int(major), int(minor), int(update)


def _l4t(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)


def _cuda(raw: object) -> CudaVersion:
    return parse_cuda_version(_text(raw))


def _driver(raw: object) -> DriverVersion:
    return parse_driver_version(_text(raw))


# The same forty architectures stand in the lists of all releases.
_architecture = cache(parse_architecture)


def _architectures(raw: object) -> tuple[Architecture, ...]:
    return tuple(sorted(map(_architecture, _text(raw).split())))


def _capabilities(raw: object) -> frozenset[ComputeCapability]:
    return frozenset(map(parse_compute_capability, _text(raw).split()))


def _numbers(raw: object) -> frozenset[int]:
    return frozenset(map(int, _text(raw).split()))


def _names(raw: object) -> tuple[str, ...]:
    if not isinstance(raw, list):
        raise TypeError(f"expected a list of names, found `{raw}`")
    return tuple(map(_text, raw))
