"""The rules a lock obeys, on values: the same for what is read and for what will be written.

PEP 751 and, beyond it, what ``packaging.pylock`` lets through: weak or misshapen hashes, URLs that
are not https or carry credentials, paths that climb, file names that contradict their entry,
entries no marker tells apart, and a lock that selects nothing unless an extra is named. Whether
the set is closed, of one CUDA and right for a machine is left to ``check``.

"No extra selects nothing" is judged twice. A lock with packages must have one that may be
selected when no extra and only the default groups are named. And a project with several entries,
each of which needs an extra or a group, has no default: that is the shape with which every
installer silently leaves the project out. A project with one entry under an extra is an ordinary
optional dependency. A lock that records a target for each of its extras says itself that the default
target has no such project.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import timedelta

from packaging.utils import canonicalize_name

from cudalock.errors import WheelError
from cudalock.lock.faults import FaultList, key_path, quoted
from cudalock.lock.locations import (
    credentials_in,
    path_fault,
    path_file_name,
    url_fault,
    url_file_name,
)
from cudalock.lock.markers import LockMarker, marker_fault, parse_marker
from cudalock.lock.model import Lock, LockedPackage, LockedWheel, TomlValue
from cudalock.lock.spellings import (
    hash_fault,
    name_fault,
    specifier_fault,
    version_fault,
    wheel_name_fault,
)
from cudalock.wheel.filename import split_variant_label
from cudalock.wheel.variants import is_known_schema, read_variants_table

__all__ = ["DEEPEST_TOOL", "check_document", "check_package", "check_together"]

DEEPEST_TOOL = 32
_LARGEST_INTEGER = 2**63 - 1
_NO_OFFSET = timedelta(0)


def _note(faults: FaultList, path: str, message: str | None, package: str | None = None) -> None:
    if message is not None:
        faults.add(path, message, package)


def _text_fault(text: str) -> str | None:
    if any("\ud800" <= character <= "\udfff" for character in text):
        return f"expected Unicode text, found a lone surrogate in {quoted(text)}"
    if credentials_in(text):
        return "expected text without credentials, found a URL that carries them"
    return None


def _check_tool(
    value: object, path: str, faults: FaultList, package: str | None, depth: int
) -> None:
    """Check plain data from anywhere: the annotations of ``tool`` cannot speak for its contents."""
    if depth > DEEPEST_TOOL:
        faults.add(path, f"expected at most {DEEPEST_TOOL} levels, found more", package)
    elif isinstance(value, str):
        _note(faults, path, _text_fault(value), package)
    elif isinstance(value, int):
        if not -_LARGEST_INTEGER - 1 <= value <= _LARGEST_INTEGER:
            faults.add(path, "expected an integer of 64 bits, found a larger one", package)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                faults.add(path, f"expected string keys, found {type(key).__name__}", package)
                continue
            _note(faults, path, _text_fault(key), package)
            _check_tool(item, key_path(path, key), faults, package, depth + 1)
    elif isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        for position, item in enumerate(value):
            _check_tool(item, f"{path}[{position}]", faults, package, depth + 1)
    else:
        faults.add(
            path,
            f"expected a string, boolean, integer, array or table, found {type(value).__name__}",
            package,
        )


def _check_words(
    words: Iterable[str], path: str, faults: FaultList, *, normalized: bool = False
) -> None:
    seen: set[str] = set()
    for position, word in enumerate(words):
        place = f"{path}[{position}]"
        _note(faults, place, name_fault(word) if normalized else _text_fault(word))
        if word in seen:
            faults.add(place, f"expected each name once, found {quoted(word)} again")
        seen.add(word)


def check_document(lock: Lock, faults: FaultList) -> None:
    """Check what stands above the packages, and ``[tool.cudalock]``."""
    if lock.lock_version != "1.0":
        faults.add("lock-version", f"expected `1.0`, found {quoted(lock.lock_version)}")
    if not lock.created_by:
        faults.add("created-by", "expected the name of a tool, found nothing")
    _note(faults, "created-by", _text_fault(lock.created_by))
    if lock.requires_python is not None:
        _note(faults, "requires-python", specifier_fault(lock.requires_python))
    for position, environment in enumerate(lock.environments):
        path = f"environments[{position}]"
        message = marker_fault(environment) or _text_fault(environment)
        _note(faults, path, message)
        marker = parse_marker(environment)
        if marker is not None and (marker.extras or marker.groups):
            faults.add(path, "expected a marker without extras and groups, found one with them")
    _check_words(lock.extras, "extras", faults, normalized=True)
    _check_words(lock.dependency_groups, "dependency-groups", faults)
    _check_words(lock.default_groups, "default-groups", faults)
    _check_tool(lock.tool, "tool.cudalock", faults, None, 0)


def _check_location(
    wheel: LockedWheel,
    path: str,
    faults: FaultList,
    package: str,
    insecure_hosts: AbstractSet[str],
) -> None:
    if (wheel.url is None) is (wheel.path is None):
        found = "neither" if wheel.url is None else "both"
        faults.add(path, f"expected one of `url` and `path`, found {found}", package)
        return
    if wheel.url is not None:
        key = "url"
        message = url_fault(wheel.url, insecure_hosts=insecure_hosts)
        file_name = None if message else url_file_name(wheel.url)
    else:
        key = "path"
        message = path_fault(wheel.path or "")
        file_name = None if message else path_file_name(wheel.path or "")
    if message is None and file_name != wheel.name:
        found = "none" if file_name is None else quoted(file_name)
        message = f"expected it to end in the file name {quoted(wheel.name)}, found {found}"
    _note(faults, f"{path}.{key}", message, package)


def _check_wheel(
    wheel: LockedWheel,
    path: str,
    faults: FaultList,
    package: LockedPackage,
    insecure_hosts: AbstractSet[str],
) -> None:
    owner = package.name
    message = wheel_name_fault(wheel.name, project=package.name, version=package.version)
    _note(faults, f"{path}.name", message, owner)
    _check_location(wheel, path, faults, owner, insecure_hosts)
    if wheel.upload_time is not None and wheel.upload_time.utcoffset() != _NO_OFFSET:
        faults.add(f"{path}.upload-time", "expected a time in UTC, found another", owner)
    if wheel.size is not None and not 0 <= wheel.size <= _LARGEST_INTEGER:
        found = "a negative one" if wheel.size < 0 else "a larger one than 64 bits hold"
        faults.add(f"{path}.size", f"expected a size in bytes, found {found}", owner)
    if "sha256" not in wheel.hashes:
        found = ", ".join(quoted(name) for name in sorted(wheel.hashes)[:8]) or "none"
        faults.add(f"{path}.hashes", f"expected a sha256, found {found}", owner)
    for algorithm, digest in wheel.hashes.items():
        _note(faults, key_path(f"{path}.hashes", algorithm), hash_fault(algorithm, digest), owner)


def check_package(
    package: LockedPackage,
    position: int,
    faults: FaultList,
    *,
    insecure_hosts: AbstractSet[str] = frozenset(),
) -> None:
    """Check one entry by itself; ``position`` is its place in the file, for the paths."""
    path = f"packages[{position}]"
    owner = package.name
    _note(faults, f"{path}.name", name_fault(package.name))
    _note(faults, f"{path}.version", version_fault(package.version), owner)
    if package.marker is not None:
        message = marker_fault(package.marker) or _text_fault(package.marker)
        _note(faults, f"{path}.marker", message, owner)
    if package.requires_python is not None:
        message = specifier_fault(package.requires_python)
        _note(faults, f"{path}.requires-python", message, owner)
    if package.index is not None:
        message = url_fault(package.index, insecure_hosts=insecure_hosts)
        _note(faults, f"{path}.index", message, owner)
    for place, (name, version) in enumerate(package.dependencies):
        _note(faults, f"{path}.dependencies[{place}].name", name_fault(name), owner)
        if version is not None:
            message = version_fault(version)
            _note(faults, f"{path}.dependencies[{place}].version", message, owner)
    if not package.wheels:
        faults.add(f"{path}.wheels", "expected at least one wheel, found none", owner)
    seen: set[str] = set()
    for place, wheel in enumerate(package.wheels):
        _check_wheel(wheel, f"{path}.wheels[{place}]", faults, package, insecure_hosts)
        if wheel.name in seen:
            message = f"expected each file once, found {quoted(wheel.name)} again"
            faults.add(f"{path}.wheels[{place}].name", message, owner)
        seen.add(wheel.name)
    if package.variants_json is not None:
        _check_variants(package, package.variants_json, f"{path}.variants-json", faults)
    if package.tool is not None:
        _check_tool(package.tool, f"{path}.tool.cudalock", faults, owner, 0)


def _check_variants(
    package: LockedPackage, table: Mapping[str, TomlValue], path: str, faults: FaultList
) -> None:
    """Check the metadata of wheel variants (PEP 825).

    "The ``$schema`` key MUST be preserved to facilitate versioning." A table of a schema that is
    not known is another tool's, and only has to be plain data.
    """
    before = faults.count
    _check_tool(table, path, faults, package.name, 0)
    if not isinstance(table.get("$schema"), str):
        faults.add(key_path(path, "$schema"), "expected the URL of a schema", package.name)
    if faults.count != before or not is_known_schema(table):
        return
    try:
        variants = read_variants_table(table, where=path)
    except WheelError as error:
        faults.add(path, error.message, package.name)
        return
    for wheel in package.wheels:
        # "The entry for every label that does occur MUST be retained in full."
        _, label = split_variant_label(wheel.name)
        if label is not None and variants.properties(label) is None:
            message = f"expected the label of {quoted(wheel.name)}, found none of it"
            faults.add(f"{path}.variants", message, package.name)


def _check_apart(lock: Lock, faults: FaultList) -> None:
    """PEP 751: entries of one name must narrow down to one; so each needs a marker of its own."""
    markers: dict[tuple[str, str], int] = {}
    counts = Counter(package.name for package in lock.packages)
    for position, package in enumerate(lock.packages):
        path = f"packages[{position}]"
        if package.marker is None:
            if counts[package.name] > 1:
                message = "expected a marker that sets it apart from the other entries, found none"
                faults.add(path, message, package.name)
            continue
        marker = parse_marker(package.marker)
        text = package.marker if marker is None else marker.text
        twin = markers.setdefault((package.name, text), position)
        if twin != position:
            message = f"expected another marker than that of packages[{twin}], found the same"
            faults.add(f"{path}.marker", message, package.name)


def _check_references(lock: Lock, faults: FaultList) -> None:
    """PEP 751: a dependency names an entry of the lock."""
    versions: dict[str, set[str]] = defaultdict(set)
    for package in lock.packages:
        versions[package.name].add(package.version)
    for position, package in enumerate(lock.packages):
        for place, (name, version) in enumerate(package.dependencies):
            known = versions.get(name)
            if known is None or (version is not None and version not in known):
                wanted = name if version is None else f"{name} {version}"
                faults.add(
                    f"packages[{position}].dependencies[{place}]",
                    f"expected an entry of this lock, found {quoted(wanted)}",
                    package.name,
                )


def _check_selection(lock: Lock, faults: FaultList) -> None:
    extras = set(lock.extras)
    # packaging compares group names in their normalized form; so do installers.
    default_groups = {str(canonicalize_name(name)) for name in lock.default_groups}
    groups = {str(canonicalize_name(name)) for name in lock.dependency_groups} | default_groups
    entries: dict[str, list[tuple[int, bool]]] = defaultdict(list)
    for position, package in enumerate(lock.packages):
        marker: LockMarker | None = None
        if package.marker is not None:
            marker = parse_marker(package.marker)
        selectable = True
        if marker is not None:
            for name in sorted(marker.extras - extras):
                message = f"expected an extra that `extras` declares, found {quoted(name)}"
                faults.add(f"packages[{position}].marker", message, package.name)
            for name in sorted(
                group for group in marker.groups if canonicalize_name(group) not in groups
            ):
                message = (
                    f"expected a group that `dependency-groups` declares, found {quoted(name)}"
                )
                faults.add(f"packages[{position}].marker", message, package.name)
            selectable = marker.may_hold(extras=frozenset(), groups=default_groups)
        entries[package.name].append((position, selectable))
    if not entries:
        return
    if not any(selectable for places in entries.values() for _, selectable in places):
        faults.add(
            "packages",
            "expected an entry that is selected without naming an extra or a group, found none",
        )
        return
    targets = lock.tool.get("targets")
    if isinstance(targets, Mapping) and extras == {
        str(canonicalize_name(name)) for name in targets
    }:
        # Each extra is the whole set of a target; the default one may not have the project at all.
        return
    for name, places in entries.items():
        if len(places) > 1 and not any(selectable for _, selectable in places):
            faults.add(
                f"packages[{places[0][0]}].marker",
                "expected one of its entries to be the default (`'NAME' not in extras`), "
                "found that each needs an extra or a group",
                name,
            )


def _check_one_hash(lock: Lock, faults: FaultList) -> None:
    """One file name stands for one content, in whichever entries it appears."""
    seen: dict[str, tuple[str, str]] = {}
    for position, package in enumerate(lock.packages):
        for place, wheel in enumerate(package.wheels):
            digest = wheel.hashes.get("sha256")
            if digest is None:
                continue
            path = f"packages[{position}].wheels[{place}].hashes.sha256"
            other_path, other = seen.setdefault(wheel.name, (path, digest))
            if other != digest:
                message = f"expected the hash of {other_path}, found another for the same file"
                faults.add(path, message, package.name)


def check_together(lock: Lock, faults: FaultList) -> None:
    """Check what holds between entries; only sound when every entry of the file is in ``lock``."""
    _check_apart(lock, faults)
    _check_references(lock, faults)
    _check_selection(lock, faults)
    _check_one_hash(lock, faults)
