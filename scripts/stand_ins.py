"""Chooses what a recorded wheel declares, and says how that is known.

In this order: the wheel's own METADATA where the facts hold it; a knowledge entry; the METADATA of
the same project and version on the default index, unless it names NVIDIA runtime parts of another
CUDA release than the wheel's label; the dependencies of a lock file, cleaned. All but the first
are marked assumed. A wheel for which none of these speaks stays unknown.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version
from scripts.default_index import DefaultIndex
from scripts.lock_markers import clean_requirements, parse_edge

from cudalock.wheel.filename import WheelFile, parse_wheel_file
from cudalock.wheel.knowledge import Knowledge
from cudalock.wheel.metadata import parse_core_metadata

__all__ = ["StandIns", "family_of", "python_of"]

_LABEL = re.compile(r"(?:^|\.)cu(\d{2})(\d{1,2})(?:\.|$)")
_EXTRA = re.compile(r"cu(?:da)?(\d{2})\Z")
_LOCK = re.compile(r"of (\S+) (\S+) \(.*: (\S+ \S+) @ ([0-9a-f]{40})\Z")
_PYTHON = re.compile(r"cp3(\d{1,2})\Z")
_FAMILIES = frozenset({"linux-x86_64", "linux-aarch64", "any"})
_PINNED = re.compile(r"(?:torch|triton|nvidia-.*|cuda-.*)\Z")

Record = dict[str, object]
Fact = Mapping[str, object]


@dataclass
class _Lock:
    """What one lock file says of one version, and for which platforms it lists wheels."""

    source: str
    edges: tuple[str, ...]
    # Versions that the lock holds by project; empty when the facts' list is another lock's.
    held: dict[str, list[str]] = field(default_factory=dict)
    families: set[str] = field(default_factory=set)


def family_of(wheel: WheelFile) -> str:
    """Return the platform family of a wheel's tags."""
    platforms = {tag.platform for tag in wheel.tags}
    for end, start, name in (
        ("x86_64", ("linux", "manylinux"), "linux-x86_64"),
        ("aarch64", ("linux", "manylinux"), "linux-aarch64"),
        ("amd64", ("win",), "win-amd64"),
    ):
        if any(p.endswith(end) and p.startswith(start) for p in platforms):
            return name
    return "any" if platforms == {"any"} else "other"


def python_of(wheel: WheelFile) -> int:
    """Return the minor of the Python the wheel is read for: its own, 12 for any Python."""
    minors = [int(m[1]) for tag in wheel.tags if (m := _PYTHON.match(tag.interpreter))]
    own = max(minors, default=12)
    return max(own, 12) if any(tag.abi in ("abi3", "none") for tag in wheel.tags) else own


def _environment(family: str, python: int) -> dict[str, str]:
    system = {"win-amd64": ("win32", "Windows", "nt", "AMD64")}.get(
        family, ("linux", "Linux", "posix", family.removeprefix("linux-"))
    )
    environment = {key: str(value) for key, value in default_environment().items()}
    environment |= dict(
        zip(("sys_platform", "platform_system", "os_name", "platform_machine"), system, strict=True)
    )
    environment |= {"python_version": f"3.{python}", "python_full_version": f"3.{python}.0"}
    return environment | {"extra": "", "implementation_version": f"3.{python}.0"}


class StandIns:
    """Answers for the wheels of one folder; ``facts`` are all its files by project."""

    def __init__(self, *, knowledge: Knowledge, index: DefaultIndex) -> None:
        self._knowledge = knowledge
        self._index = index
        self._locks: dict[tuple[str, Version], list[_Lock]] = {}
        self._asked: set[tuple[str, str]] = set()
        self._tested = {(s.project, s.version): dict(s.pins) for s in knowledge.tested_sets}

    def read_page(self, project: str, facts: Sequence[Fact]) -> None:
        """Collect what lock files say of each version of ``project`` in one folder.

        Also notes the versions worth a request: those with a wheel for Linux and Python 3.10 or
        newer. Older files stay on the page, without metadata.
        """
        self._locks = {}
        for fact in facts:
            wheel = parse_wheel_file(str(fact["filename"]))
            if family_of(wheel) in _FAMILIES and python_of(wheel) >= 10:
                self._asked.add((project, wheel.version.public))
        found: dict[tuple[Version, str], _Lock] = {}
        for fact in facts:
            match = _LOCK.search(str(fact.get("requires_dist_from") or ""))
            edges = fact.get("requires_dist")
            if match is None or not isinstance(edges, list):
                continue
            wheel = parse_wheel_file(str(fact["filename"]))
            if canonicalize_name(match[1]) != project or Version(match[2]) != wheel.version:
                continue
            source = f"{match[3]} at {match[4][:8]}"
            key = (wheel.version, source)
            lock = found.setdefault(key, _Lock(source=source, edges=tuple(edges)))
            lock.families.add(family_of(wheel))
            held = fact.get("locked_versions_of_deps")
            if isinstance(held, dict) and _is_of_this_lock(lock.edges, held):
                lock.held = held
        for (version, _), lock in sorted(found.items(), key=lambda item: item[1].source):
            self._locks.setdefault((project, version), []).append(lock)

    def choose(self, fact: Fact, sha256: Sequence[str]) -> Record | None:
        """Return what the wheel declares, or None when nothing speaks for it."""
        wheel = parse_wheel_file(str(fact["filename"]))
        source = str(fact.get("requires_dist_from") or "")
        declared = fact.get("requires_dist")
        if source.startswith(("METADATA", "metadata.requires_dist")) and isinstance(declared, list):
            kept = source.rpartition(" kept in ")[2].replace(" @ ", " at ")
            python = fact.get("requires_python")
            return _record(f"METADATA, kept in {kept}", declared, python, assumed=False)
        entry = self._knowledge.stand_in(wheel.project, wheel.version)
        if entry is not None:
            return _record(f"{entry.source} (assumed)", [str(r) for r in entry.requires_dist])
        return self._from_default_index(wheel, sha256) or self._from_lock(wheel)

    # The default index

    def _from_default_index(self, wheel: WheelFile, sha256: Sequence[str]) -> Record | None:
        public = Version(wheel.version.public)
        family = family_of(wheel)
        if (wheel.project, wheel.version.public) not in self._asked:
            return None
        listed = [
            (parse_wheel_file(str(file["filename"])), file)
            for file in self._index.files(wheel.project)
            if not file.get("yanked") and _is_wheel_name(str(file["filename"]))
        ]
        listed = [(other, file) for other, file in listed if other.version == public]
        # One wheel's METADATA speaks for the release on a platform; another platform's for one
        # that the default index does not have.
        for wanted in dict.fromkeys((family, "linux-x86_64", "any")):
            of_family = [item for item in listed if family_of(item[0]) == wanted]
            if of_family:
                other, file = min(
                    of_family, key=lambda item: (python_of(item[0]) != 12, item[0].filename)
                )
                break
        else:
            return None
        hashes = {
            str(f["hashes"]["sha256"])
            for o, f in listed
            if o.filename == wheel.filename and isinstance(f["hashes"], dict)
        }
        same = len(sha256) == 1 and sha256[0] in hashes
        core = parse_core_metadata(self._index.metadata(wheel.project, file), where=other.filename)
        if not same and self._is_of_another_release(wheel, core.requires_dist):
            return None
        what = f"METADATA of {wheel.project} {public} on the default index"
        return _record(
            f"{what}, the same file by its sha256 (assumed)" if same else f"{what} (assumed)",
            [str(requirement) for requirement in core.requires_dist],
            None if core.requires_python is None else str(core.requires_python),
            extras=core.provides_extra,
        )

    def _is_of_another_release(self, wheel: WheelFile, requirements: Iterable[Requirement]) -> bool:
        """Whether the NVIDIA parts a METADATA names are not those of the wheel's label."""
        match = _LABEL.search(wheel.version.local or "")
        family = family_of(wheel)
        environment = _environment(family, python_of(wheel))
        named = applies = False
        for requirement in requirements:
            marker = requirement.marker
            if marker is not None and "extra" in str(marker):
                continue
            for major, minor in self._releases(requirement):
                if match is None or major != int(match[1]):
                    return True
                if minor is not None and minor != int(match[2]):
                    return True
                named = True
                applies = applies or marker is None or marker.evaluate(environment)
        # Parts that never apply on the wheel's own Linux describe the build without CUDA.
        return named and not applies and family.startswith("linux")

    def _releases(self, requirement: Requirement) -> Iterable[tuple[int, int | None]]:
        """Yield the CUDA release, or only its major, that a requirement names."""
        project = canonicalize_name(requirement.name)
        for extra in requirement.extras:
            match = _EXTRA.match(extra)
            if match is not None:
                yield int(match[1]), None
        exact = [Version(s.version) for s in requirement.specifier if s.operator == "=="]
        part = self._knowledge.toolkit_part(project)
        numbered = self._knowledge.toolkit(project) or (part is not None and not part.own_number)
        for library in self._knowledge.runtime_libraries:
            if library.project == project and library.versions == SpecifierSet():
                yield library.major, None
        if numbered and exact:
            yield exact[0].major, exact[0].minor

    # Lock files

    def _from_lock(self, wheel: WheelFile) -> Record | None:
        locks = self._locks.get((wheel.project, wheel.version), [])
        environment = _environment(family_of(wheel), python_of(wheel))
        usable = []
        for lock in locks:
            if family_of(wheel) in lock.families:
                pins = self._pins(wheel, lock, locks)
                cleaned = clean_requirements(lock.edges, pins)
                # A lock made for other machines says nothing here: all its markers are false.
                if any(_applies(text, environment) for text in cleaned):
                    usable.append((-len(pins), lock.source, cleaned))
        if not usable:
            return None
        _, source, cleaned = min(usable)
        what = f"dependencies of {wheel.project} {wheel.version} in {source}"
        return _record(f"{what} (assumed)", list(cleaned))

    def _pins(self, wheel: WheelFile, lock: _Lock, locks: Sequence[_Lock]) -> dict[str, str]:
        """Return the specifiers to keep: what the lock holds once, and most locks agree on.

        A project may override what a wheel pins, and a range is locked to whatever was newest, so
        a version on which the locks of one release are divided is not taken for a pin.
        """
        pins = {}
        for name, versions in lock.held.items():
            if _PINNED.match(name) and len(versions) == 1:
                seen = [_seen(other, name) for other in locks]
                agree = sum(versions[0] in found for found in seen)
                if agree > sum(bool(found) and versions[0] not in found for found in seen):
                    pins[name] = f"=={versions[0]}"
        tested = self._tested.get((wheel.project, Version(wheel.version.public)), {})
        pins |= {name: f"=={tested[name]}" for name in ("torch", "triton") if name in tested}
        return pins


def _seen(lock: _Lock, name: str) -> set[str]:
    """Return the versions of ``name`` that a lock gives this package."""
    edges = [parse_edge(text) for text in lock.edges]
    exact = {s.version for e in edges if canonicalize_name(e.name) == name for s in e.specifier}
    held = lock.held.get(name, [])
    return exact or (set(held) if len(held) == 1 else set())


def _is_of_this_lock(edges: Iterable[str], held: Mapping[str, Sequence[str]]) -> bool:
    """Whether a list of held versions fits the edges.

    A lock writes a version into an edge exactly when it holds several of that project, so a list
    taken from another lock shows.
    """
    for text in edges:
        edge = parse_edge(text)
        versions = held.get(canonicalize_name(edge.name), ())
        exact = [s.version for s in edge.specifier]
        if exact and not (exact[0] in versions and len(versions) > 1):
            return False
        if not exact and len(versions) != 1:
            return False
    return True


def _applies(text: str, environment: dict[str, str]) -> bool:
    marker = parse_edge(text).marker
    return marker is None or marker.evaluate(environment)


def _is_wheel_name(filename: str) -> bool:
    return filename.count("-") in (4, 5)


def _record(
    source: str,
    requires: Sequence[object],
    python: object = None,
    *,
    extras: Iterable[str] = (),
    assumed: bool = True,
) -> Record:
    record: Record = {"source": source, "assumed": assumed}
    if python:
        record["requires_python"] = str(python)
    if extras:
        record["provides_extra"] = sorted(extras)
    record["requires_dist"] = [str(item) for item in requires]
    return record
