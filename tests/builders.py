"""Builders of tiny artefacts for tests; no binary is checked in that these cannot make again."""

import base64
import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from cudalock.lock import LockedPackage, LockedWheel, TomlValue

__all__ = ["locked_package", "locked_wheel", "make_wheel"]

_EPOCH = (2020, 1, 1, 0, 0, 0)


def _record_line(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}"


def make_wheel(
    directory: Path,
    name: str,
    version: str,
    *,
    tag: str = "py3-none-any",
    requires: Sequence[str] = (),
    requires_python: str | None = None,
    extras: Sequence[str] = (),
    files: Mapping[str, bytes] | None = None,
) -> Path:
    """Write an installable wheel and return its path; the same arguments give the same bytes.

    Without ``files`` it holds one module, named as the project, whose ``VERSION`` is ``version``.
    """
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    metadata = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    if requires_python is not None:
        metadata.append(f"Requires-Python: {requires_python}")
    metadata.extend(f"Requires-Dist: {requirement}" for requirement in requires)
    metadata.extend(f"Provides-Extra: {extra}" for extra in extras)
    pure = "true" if tag.endswith("-none-any") else "false"
    wheel = ["Wheel-Version: 1.0", "Generator: cudalock-tests", f"Root-Is-Purelib: {pure}"]
    wheel.append(f"Tag: {tag}")
    contents = dict(files or {f"{module}.py": f"VERSION = {version!r}\n".encode()})
    contents[f"{info}/METADATA"] = ("\n".join(metadata) + "\n").encode()
    contents[f"{info}/WHEEL"] = ("\n".join(wheel) + "\n").encode()
    record = [_record_line(member, content) for member, content in contents.items()]
    record.append(f"{info}/RECORD,,")
    contents[f"{info}/RECORD"] = ("\n".join(record) + "\n").encode()
    path = directory / f"{module}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in contents.items():
            archive.writestr(zipfile.ZipInfo(member, _EPOCH), content)
    return path


def locked_wheel(
    name: str = "left",
    version: str = "1.0+cu130",
    *,
    tag: str = "py3-none-any",
    folder: str = "https://example.org/whl/cu130",
    sha256: str = "ab" * 32,
) -> LockedWheel:
    """Return a wheel of a lock that breaks no rule."""
    file_name = f"{name.replace('-', '_')}-{version}-{tag}.whl"
    url = f"{folder}/{file_name.replace('+', '%2B')}"
    return LockedWheel(name=file_name, url=url, size=1024, hashes={"sha256": sha256})


def locked_package(
    name: str = "left",
    version: str = "1.0+cu130",
    *,
    marker: str | None = None,
    dependencies: tuple[tuple[str, str | None], ...] = (),
    wheels: tuple[LockedWheel, ...] | None = None,
    tool: Mapping[str, TomlValue] | None = None,
) -> LockedPackage:
    """Return an entry of a lock that breaks no rule."""
    return LockedPackage(
        name=name,
        version=version,
        marker=marker,
        requires_python=">=3.10",
        dependencies=dependencies,
        index="https://example.org/whl/cu130/",
        wheels=(locked_wheel(name, version),) if wheels is None else wheels,
        tool=tool,
    )
