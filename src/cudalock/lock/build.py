"""A lock made from a resolution: one wheel a package, with the evidence it was chosen by.

What each wheel is built for, and who says so, goes to ``[packages.tool.cudalock]`` under the
wheel's file name; the target and what was asked go to ``[tool.cudalock]``. Every hash says whether
the index claimed it, the bytes were seen to have it, or cudalock computed it where nobody claimed
any. Nothing of the host is recorded beyond what the target says was detected.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import ClassVar

from cudalock.errors import LockError, UsageError
from cudalock.host import Target, marker_environment
from cudalock.index.find_links import local_path
from cudalock.lock.model import Lock, LockedPackage, LockedWheel, TomlValue
from cudalock.resolver.resolution import Resolution, ResolvedPackage
from cudalock.wheel.file_hash import FileHash, claimed_hash
from cudalock.wheel.listing import ListedFile
from cudalock.wheel.published import parse_upload_time

__all__ = [
    "HashesNeededError",
    "build_lock",
    "describe_target",
    "describe_variant",
    "hashes_needed",
]


class HashesNeededError(LockError):
    """Wheels of the set whose sha256 the index does not settle: none is listed, or several are."""

    code: ClassVar[str] = "missing-hash"

    def __init__(self, files: tuple[ListedFile, ...]) -> None:
        """Take the files; the message says for each what was found, and the cost of computing."""
        lines = [f"{file.filename}: {_found(file)} ({file.url})" for file in files]
        super().__init__(
            "expected one sha256 for each wheel of the lock; computing them takes "
            f"{_cost(files)}:\n  " + "\n  ".join(lines),
            flag="--hash-missing download",
        )
        self.files = files


def _found(file: ListedFile) -> str:
    if not file.sha256:
        told = "the index lists none"
        return told + "".join(f" ({a.sha256}: {a.why})" for a in file.aside)
    claims = ", ".join(file.sha256)
    return f"the index lists {len(file.sha256)} for this address: {claims}"


def _cost(files: tuple[ListedFile, ...]) -> str:
    what = "a download of one wheel" if len(files) == 1 else f"a download of {len(files)} wheels"
    known = [file.size for file in files if file.size is not None]
    if len(known) < len(files):
        return f"{what}, whose size the index does not say"
    return f"{what}, {sum(known) / 1e6:.1f} MB"


def hashes_needed(resolution: Resolution) -> tuple[ListedFile, ...]:
    """Return the files whose sha256 is open: the index lists none, or several, and nobody looked."""
    return tuple(p.file for p in resolution.packages if _hash(p) is None)


def _hash(package: ResolvedPackage) -> FileHash | None:
    return claimed_hash(package.file) if package.hash is None else package.hash


def build_lock(
    resolution: Resolution,
    *,
    requirements: Iterable[str],
    folder: Path | None = None,
    asked: Mapping[str, TomlValue] | None = None,
) -> Lock:
    """Build the lock of a resolution.

    ``requirements`` is what was asked, for the record, and ``asked`` what else was, as keys of
    ``[tool.cudalock]``. ``folder`` is where the lock will stand:
    wheels of this machine are locked by their path from there. Raises `HashesNeededError` with all
    the wheels whose hash is not settled.
    """
    needed = hashes_needed(resolution)
    if needed:
        raise HashesNeededError(needed)
    versions = {package.project: str(package.version) for package in resolution.packages}
    return Lock(
        created_by="cudalock",
        requires_python=f"=={resolution.target.python_minor}.*",
        environments=(_environment(resolution.target),),
        packages=tuple(
            _locked(package, settled, versions, folder)
            for package in resolution.packages
            if (settled := _hash(package)) is not None
        ),
        tool={**_tool(resolution, requirements), **(asked or {})},
    )


def _environment(target: Target) -> str:
    environment = marker_environment(target)
    # pdm reads an environment only where it names `platform_system` and `platform_machine`.
    names = ("implementation_name", "platform_machine", "platform_system")
    clauses = [f"{name} == '{environment[name]}'" for name in names]
    return " and ".join([*clauses, f"python_version == '{environment['python_version']}'"])


def _locked(
    package: ResolvedPackage,
    settled: FileHash,
    versions: Mapping[str, str],
    folder: Path | None,
) -> LockedPackage:
    file = package.file
    python = package.metadata.requires_python
    local = local_path(file.url)
    evidence = {**describe_variant(package), **_bonds(package), "hash": settled.state}
    if settled.aside:
        evidence["hashes-aside"] = [f"{a.sha256}: {a.why}" for a in settled.aside]
    return LockedPackage(
        name=package.project,
        version=str(package.version),
        requires_python=str(python) if python is not None else file.requires_python,
        dependencies=tuple(
            (name, versions[name]) for name in package.dependencies if name in versions
        ),
        index=file.index_url if file.index_url.startswith("http") else None,
        wheels=(
            LockedWheel(
                name=file.filename,
                url=file.url if local is None else None,
                path=None if local is None else _path_from(folder, local),
                upload_time=parse_upload_time(file.upload_time),
                size=file.size if settled.size is None else settled.size,
                hashes={"sha256": settled.sha256},
            ),
        ),
        variants_json=None if package.variants is None else package.variants.document,
        tool={file.filename: evidence},
    )


def _path_from(folder: Path | None, wheel: Path) -> str:
    """Return the path of a wheel of this machine from the lock's folder (PEP 751, ``path``).

    One that would have to climb out of that folder is refused: it would mean another file as soon
    as the lock is moved.
    """
    if folder is not None:
        try:
            return wheel.resolve().relative_to(folder.resolve()).as_posix()
        except ValueError:
            pass
    raise UsageError(
        "expected a wheel of this machine below the folder of the lock, so that the lock can name "
        f"it by a relative path; found it outside {folder.resolve() if folder else 'any'}",
        where=str(wheel),
        flag="-o FILE",
    )


def describe_variant(package: ResolvedPackage) -> dict[str, TomlValue]:
    """Describe what a wheel is built for, and by which evidence, as plain data."""
    variant = package.variant
    described: dict[str, TomlValue] = {"built-for": variant.state}
    label = package.file.wheel.variant_label
    if label is not None:
        described["variant"] = label
    if variant.cuda is not None:
        described["cuda"] = str(variant.cuda)
    if variant.runtime is not None:
        described["runtime"] = variant.runtime
    if variant.evidence:
        described["evidence"] = [f"{o.text} ({o.source})" for o in variant.evidence]
    facts = variant.facts
    if facts is not None:
        described["read"] = facts.tier
    if package.proofs:
        described["proofs"] = {
            proof.rule: {"state": proof.state, "by": proof.text} for proof in package.proofs
        }
    if package.metadata.assumed:
        described["metadata-assumed"] = package.metadata.source
    return described


def _bonds(package: ResolvedPackage) -> dict[str, TomlValue]:
    """Describe what a wheel asks of the wheels beside it, so that `check` needs no METADATA."""
    described: dict[str, TomlValue] = {}
    if package.requires:
        described["requires"] = list(package.requires)
    if package.extras:
        described["extras"] = sorted(package.extras)
    if package.demands:
        described["binds"] = [
            {
                "package": demand.package,
                "values": sorted(demand.values),
                "because": f"{demand.fact.detail} ({demand.fact.source})",
            }
            for demand in sorted(package.demands, key=lambda d: (d.package, sorted(d.values)))
        ]
    if package.expires is not None:
        described["expires"] = package.expires.isoformat()
    return described


def describe_target(target: Target) -> dict[str, TomlValue]:
    """Describe a target as ``[tool.cudalock.target]`` has it; nothing of how it was made."""
    described: dict[str, TomlValue] = {"python": target.python, "platform": target.platform}
    if target.name is not None:
        described["name"] = target.name
    if target.cuda is not None:
        described["cuda"] = str(target.cuda)
        described["cuda-compat"] = target.cuda_compat
    for key, value in (
        ("driver", target.driver),
        ("driver-cuda", target.driver_cuda),
        ("compat", target.compat),
    ):
        if value is not None:
            described[key] = str(value)
    if target.capabilities:
        described["sm"] = [str(capability) for capability in target.capabilities]
    for key, holds in (
        ("free-threaded", target.free_threaded),
        ("cpu", target.cpu),
        ("tegra", target.tegra),
        ("wsl", target.wsl),
    ):
        if holds:
            described[key] = True
    return described


def _tool(resolution: Resolution, requirements: Iterable[str]) -> dict[str, TomlValue]:
    target = resolution.target
    described = describe_target(target)
    detected = sorted(o.field for o in target.origins if o.text.startswith("detected"))
    if detected:
        described["detected"] = detected
    tool: dict[str, TomlValue] = {
        "requirements": sorted(requirements),
        "target": described,
    }
    if resolution.as_of is not None:
        tool["as-of"] = str(resolution.as_of)
    if resolution.driver is not None:
        tool["needs-driver"] = str(resolution.driver)
    if resolution.compat_package is not None:
        tool["needs-package"] = resolution.compat_package
    if resolution.toolkit is not None:
        tool["toolkit"] = str(resolution.toolkit)
    if resolution.warnings:
        tool["warnings"] = sorted({warning.code for warning in resolution.warnings})
    held_back = sorted({w.message for w in resolution.warnings if w.code == "held-back"})
    if held_back:
        tool["held-back"] = held_back
    return tool
