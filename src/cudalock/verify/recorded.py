"""What cudalock wrote into a lock beside what PEP 751 has: the target, and each wheel's record.

A record says of a wheel what its METADATA required, what it binds of virtual packages, and which CUDA
it is built for and by which evidence. It is data of a file that a person may have edited, so every
value is read as what it should be or not at all: a record that cannot be read is a missing one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from cudalock.cuda import parse_compute_capability, parse_cuda_version, parse_driver_version
from cudalock.cuda.version import CudaVersion
from cudalock.errors import UsageError
from cudalock.host.options import CudaCompat
from cudalock.host.platforms import parse_platform
from cudalock.host.target import Target
from cudalock.lock.model import Lock, LockedPackage, TomlValue

__all__ = ["Bind", "WheelRecord", "read_records", "read_target", "texts"]

_COMPATS: dict[str, CudaCompat] = {"strict": "strict", "minor": "minor", "forward": "forward"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """A wheel takes only these ``values`` of a virtual package; ``because`` says why."""

    package: str
    values: frozenset[str]
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelRecord:
    """What is recorded of one wheel, by its file name.

    ``built_for`` is ``known``, ``none`` or ``unknown``. ``requires`` are requirements in force,
    without markers. ``proven`` are the rules of which its bytes told that it fits (`libtorch`).
    """

    filename: str
    built_for: str
    cuda: CudaVersion | None = None
    runtime: int | None = None
    evidence: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    extras: frozenset[str] = frozenset()
    binds: tuple[Bind, ...] = ()
    expires: date | None = None
    proven: frozenset[str] = frozenset()


def texts(table: Mapping[str, TomlValue], key: str) -> tuple[str, ...] | None:
    """Return the list of texts under a key, () without it, None for anything else."""
    value = table.get(key, ())
    if isinstance(value, str | bool | int | Mapping):
        return None
    found = tuple(item for item in value if isinstance(item, str))
    return found if len(found) == len(value) else None


def read_target(lock: Lock) -> Target | None:
    """Return the target that a lock was made for; None where the lock does not say it readably."""
    table = lock.tool.get("target")
    if not isinstance(table, Mapping):
        return None
    python, platform = table.get("python"), table.get("platform")
    sm = texts(table, "sm")
    compat = _COMPATS.get(str(table.get("cuda-compat", "strict")))
    if not isinstance(python, str) or not isinstance(platform, str) or sm is None or compat is None:
        return None
    name = table.get("name")
    try:
        return Target(
            python=_python(python),
            platform=str(parse_platform(platform)),
            free_threaded=table.get("free-threaded") is True,
            driver=None if (text := _text(table, "driver")) is None else parse_driver_version(text),
            driver_cuda=_cuda(table, "driver-cuda"),
            cuda=_cuda(table, "cuda"),
            cuda_compat=compat,
            compat=_cuda(table, "compat"),
            capabilities=tuple(sorted(parse_compute_capability(text) for text in sm)),
            tegra=table.get("tegra") is True,
            wsl=table.get("wsl") is True,
            cpu=table.get("cpu") is True,
            name=name if isinstance(name, str) else None,
        )
    except UsageError:
        return None


def _python(text: str) -> str:
    parts = text.split(".")
    if len(parts) < 2 or not all(part.isascii() and part.isdecimal() for part in parts[:2]):
        raise UsageError("expected a Python version")
    return text


def _text(table: Mapping[str, TomlValue], key: str) -> str | None:
    value = table.get(key)
    if value is not None and not isinstance(value, str):
        raise UsageError("expected a text")
    return value


def _cuda(table: Mapping[str, TomlValue], key: str) -> CudaVersion | None:
    text = _text(table, key)
    return None if text is None else parse_cuda_version(text)


def read_records(package: LockedPackage) -> dict[str, WheelRecord]:
    """Return the records of an entry's wheels by file name; a wheel without a readable one has none."""
    found = {}
    for wheel in package.wheels:
        table = (package.tool or {}).get(wheel.name)
        record = _record(wheel.name, table) if isinstance(table, Mapping) else None
        if record is not None:
            found[wheel.name] = record
    return found


def _record(filename: str, table: Mapping[str, TomlValue]) -> WheelRecord | None:
    evidence, requires, extras = (texts(table, key) for key in ("evidence", "requires", "extras"))
    built_for, runtime = table.get("built-for"), table.get("runtime")
    binds = _binds(table.get("binds", ()))
    if (
        evidence is None
        or requires is None
        or extras is None
        or binds is None
        or built_for not in ("known", "none", "unknown")
        or isinstance(runtime, bool)
        or not (runtime is None or isinstance(runtime, int))
        # What is known is at least known by its major.
        or (built_for == "known") is not (runtime is not None)
    ):
        return None
    try:
        cuda = _cuda(table, "cuda")
        expires = _text(table, "expires")
        return WheelRecord(
            filename=filename,
            built_for=str(built_for),
            cuda=cuda,
            runtime=runtime,
            evidence=evidence,
            requires=requires,
            extras=frozenset(extras),
            binds=binds,
            expires=None if expires is None else date.fromisoformat(expires),
            proven=_proven(table.get("proofs")),
        )
    except (UsageError, ValueError):
        return None


def _proven(value: "TomlValue | None") -> frozenset[str]:
    if not isinstance(value, Mapping):
        return frozenset()
    return frozenset(
        rule
        for rule, proof in value.items()
        if isinstance(proof, Mapping) and proof.get("state") == "proven"
    )


def _binds(value: TomlValue) -> tuple[Bind, ...] | None:
    if isinstance(value, str | bool | int | Mapping) or not isinstance(value, Sequence):
        return None
    found = []
    for item in value:
        values = texts(item, "values") if isinstance(item, Mapping) else None
        if not isinstance(item, Mapping) or not values:
            return None
        package, because = item.get("package"), item.get("because")
        if not isinstance(package, str) or not isinstance(because, str):
            return None
        found.append(Bind(package=package, values=frozenset(values), because=because))
    return tuple(found)
