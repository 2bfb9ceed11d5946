"""Writing a lock: values to ``pylock.toml`` text (PEP 751, "File Format").

"Tools SHOULD write their lock files in a consistent way to minimize noise in diff output": keys
stand in the order of the standard, entries are sorted, and the same values give the same bytes
whatever order they came in. What the reader would refuse is refused here, before any text exists.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from datetime import datetime

from cudalock.lock.faults import FaultList, MissingHashError, UnwritableLockError
from cudalock.lock.model import Lock, LockedPackage, LockedWheel
from cudalock.lock.rules import check_document, check_package, check_together
from cudalock.lock.toml_text import format_array, format_key, format_string, format_tables

__all__ = ["GENERATED_COMMENT", "format_lock"]

# ``comments.py`` knows this line again by its first words, so a later release may reword the rest.
GENERATED_COMMENT = "# Made by cudalock; installs with pip >= 26.1, uv and pdm."


def _strings(key: str, values: tuple[str, ...]) -> Iterator[str]:
    if values:
        line = f"{key} = [{', '.join(format_string(value) for value in sorted(values))}]"
        if len(line) <= 100:
            yield line
        else:
            yield from format_array(key, [format_string(value) for value in sorted(values)])


def _format_time(time: datetime) -> str:
    return time.replace(tzinfo=None).isoformat() + "Z"


def _format_wheel(wheel: LockedWheel) -> str:
    # pip reads a percent-encoded URL as a file name only since 26.3, so the name always stands.
    pairs = [f"name = {format_string(wheel.name)}"]
    if wheel.upload_time is not None:
        pairs.append(f"upload-time = {_format_time(wheel.upload_time)}")
    if wheel.url is not None:
        pairs.append(f"url = {format_string(wheel.url)}")
    if wheel.path is not None:
        pairs.append(f"path = {format_string(wheel.path)}")
    if wheel.size is not None:
        pairs.append(f"size = {wheel.size}")
    hashes = ", ".join(
        f"{format_key(algorithm)} = {format_string(wheel.hashes[algorithm])}"
        for algorithm in sorted(wheel.hashes)
    )
    pairs.append(f"hashes = {{{hashes}}}")
    return f"{{{', '.join(pairs)}}}"


def _format_dependency(name: str, version: str | None) -> str:
    if version is None:
        return f"{{name = {format_string(name)}}}"
    return f"{{name = {format_string(name)}, version = {format_string(version)}}}"


def _package_lines(package: LockedPackage) -> Iterator[str]:
    yield ""
    yield "[[packages]]"
    yield f"name = {format_string(package.name)}"
    yield f"version = {format_string(package.version)}"
    if package.marker is not None:
        yield f"marker = {format_string(package.marker)}"
    if package.requires_python is not None:
        yield f"requires-python = {format_string(package.requires_python)}"
    if package.dependencies:
        found = {_format_dependency(name, version) for name, version in package.dependencies}
        yield from format_array("dependencies", sorted(found))
    if package.index is not None:
        yield f"index = {format_string(package.index)}"
    yield from format_array("wheels", sorted(_format_wheel(wheel) for wheel in package.wheels))
    if package.variants_json:
        yield from format_tables("packages.variants-json", package.variants_json)
    if package.tool:
        yield from format_tables("packages.tool.cudalock", package.tool)


def _check(lock: Lock, insecure_hosts: AbstractSet[str]) -> None:
    for package in lock.packages:
        for wheel in package.wheels:
            if "sha256" not in wheel.hashes:
                raise MissingHashError(package=package.name, wheel=wheel.name)
    faults = FaultList()
    check_document(lock, faults)
    for position, package in enumerate(lock.packages):
        check_package(package, position, faults, insecure_hosts=insecure_hosts)
    check_together(lock, faults)
    if faults.count:
        raise UnwritableLockError(faults)


def format_lock(lock: Lock, *, insecure_hosts: AbstractSet[str] = frozenset()) -> str:
    """Return the lock as text: LF line ends, a final newline, the same for the same values.

    ``insecure_hosts`` are the hosts for which the user's own setting allows plain http.
    Raises ``MissingHashError`` for a wheel without sha256, and ``UnwritableLockError`` with every
    fault ``parse_lock`` would find. Linear; about 60 us a package, most of it the checks.
    """
    _check(lock, insecure_hosts)
    lines = [
        GENERATED_COMMENT,
        f"lock-version = {format_string(lock.lock_version)}",
    ]
    if lock.environments:
        environments = [format_string(marker) for marker in sorted(lock.environments)]
        lines.extend(format_array("environments", environments))
    if lock.requires_python is not None:
        lines.append(f"requires-python = {format_string(lock.requires_python)}")
    lines.extend(_strings("extras", lock.extras))
    lines.extend(_strings("dependency-groups", lock.dependency_groups))
    lines.extend(_strings("default-groups", lock.default_groups))
    lines.append(f"created-by = {format_string(lock.created_by)}")
    if not lock.packages:
        lines.append("packages = []")
    entries = [
        (package.name, package.version, package.marker or "", tuple(_package_lines(package)))
        for package in lock.packages
    ]
    for _, _, _, entry in sorted(entries):
        lines.extend(entry)
    if lock.tool:
        lines.extend(format_tables("tool.cudalock", lock.tool))
    return "\n".join(lines) + "\n"
