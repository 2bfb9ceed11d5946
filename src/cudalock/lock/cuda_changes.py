"""What changed between two locks for those who run them: CUDA, driver and GPUs first.

`compare_locks` says what changed in the file; this adds what those changes are about, from the target
and the evidence that both locks record.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from cudalock.lock.model import Lock, LockedPackage, TomlValue

__all__ = ["CudaChange", "cuda_changes", "package_cuda"]

_TARGET = (
    "cuda", "cuda-compat", "driver", "driver-cuda", "sm", "cpu", "platform", "python",
)  # fmt: skip
_SET = ("toolkit", "needs-driver", "needs-package")


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaChange:
    """One change of CUDA, driver, GPU or machine: what it is about, and both values as words."""

    what: str
    old: str | None
    new: str | None


def cuda_changes(old: Lock, new: Lock) -> tuple[CudaChange, ...]:
    """Return the changes of the target, of what the set needs, and of each wheel's CUDA; in that order."""
    found = [
        CudaChange(what=f"target {key}", old=before, new=after)
        for key in _TARGET
        if (before := _words(_table(old, "target").get(key)))
        != (after := _words(_table(new, "target").get(key)))
    ]
    found += [
        CudaChange(what=key, old=before, new=after)
        for key in _SET
        if (before := _words(old.tool.get(key))) != (after := _words(new.tool.get(key)))
    ]
    olds = {package.name: package_cuda(package) for package in old.packages}
    news = {package.name: package_cuda(package) for package in new.packages}
    found += [
        CudaChange(what=name, old=olds[name], new=news[name])
        for name in sorted(olds.keys() & news.keys())
        if olds[name] != news[name]
    ]
    return tuple(found)


def package_cuda(package: LockedPackage) -> str | None:
    """Return what an entry's wheels are built for: ``CUDA 13.0``; None where the lock does not say."""
    told = set()
    for table in (package.tool or {}).values():
        if isinstance(table, Mapping):
            release = table.get("cuda") or table.get("runtime")
            if isinstance(release, str | int):
                told.add(f"CUDA {release}")
    return " and ".join(sorted(told)) or None


def _table(lock: Lock, key: str) -> Mapping[str, TomlValue]:
    value = lock.tool.get(key)
    return value if isinstance(value, Mapping) else {}


def _words(value: "TomlValue | None") -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | int | Mapping):
        return str(value).lower()
    return ", ".join(map(str, value))
