"""What metadata fails to say about projects: the values `index/` reads from `indices/knowledge/`.

Every entry has the source it rests on and a date, so that an explanation can name it. The code
knows no project's name; it knows these kinds:

``family``           projects whose public versions must be equal in one set
``train``            projects released together under versions of their own: one index for all
``pairing``          a release of an extension binds the minor release of the project it links
``needs-pairing``    a release of this project without a pairing (or a pin of its own) is unknown
``rename``           a project that goes on under another name
``tested-set``       what one release of a project pins: a source of remedies and of tie-breaks
``metadata``         Requires-Dist of wheels whose METADATA cannot be had
``toolkit``          the project whose releases pin the parts of one CUDA toolkit
``toolkit-part``     a part of the CUDA toolkit, and whether its number is the toolkit's
``runtime-library``  a library bound to one CUDA major by its very name
``cuda-number``      a project whose version is a CUDA version
``placeholder``      releases that hold nothing and are never a candidate
``compiles``         a project that compiles device code on the machine
``optional-kernels`` a project of kernels for some GPUs, which whoever loads it passes over on others
``cuda-project``     a project that is built for CUDA though nothing in its name or label says so
``architectures``    the device code that builds of a project hold
``label-word``       the project whose release local labels name (``torch2.9``, ``pt28``)
``cpu-build``        the build on the default index that has no CUDA though its name does not say so
``cxx11-abi``        which C++ ABI of libstdc++ builds of a project have
``jit-floor``        the oldest toolkit with which a project compiles for some GPUs
``bundled-compiler`` the CUDA release of the compiler that a project carries
``shared-library``   whose numbers tell the CUDA major, and which projects bring it
``squatted``         a name that somebody else holds on the default index
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from cudalock.cuda import CudaVersion
from cudalock.wheel.build_facts import (
    Architectures,
    BundledCompiler,
    CpuBuild,
    CxxAbi,
    JitFloor,
)
from cudalock.wheel.cuda_parts import (
    CudaNumber,
    RuntimeLibrary,
    SharedLibrary,
    Toolkit,
    ToolkitPart,
)
from cudalock.wheel.device_code import DeviceCode
from cudalock.wheel.listing import DEFAULT_INDEX, ListedFile

__all__ = [
    "Family",
    "Knowledge",
    "Pairing",
    "Placeholder",
    "ProjectMark",
    "Rename",
    "StandInMetadata",
    "TestedSet",
    "Train",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """``projects`` must share one public version (local labels aside) within a set."""

    name: str
    projects: tuple[str, ...]
    source: str
    date: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Train:
    """``projects`` are released together, each under its own version, and come from one index."""

    name: str
    projects: tuple[str, ...]
    source: str
    date: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """Releases ``versions`` of ``project`` were built with minor ``minor`` (``2.9``) of ``partner``.

    A pre-release of that minor is before it and does not count.
    """

    project: str
    versions: SpecifierSet
    partner: str
    minor: str
    source: str
    date: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """``project`` goes on as ``successor`` from ``since`` on."""

    project: str
    successor: str
    since: Version
    source: str
    date: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestedSet:
    """The exact versions that release ``version`` of ``project`` pins beside it."""

    project: str
    version: Version
    pins: tuple[tuple[str, Version], ...]
    source: str
    date: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandInMetadata:
    """Requires-Dist of releases ``versions`` whose METADATA cannot be had."""

    project: str
    versions: SpecifierSet
    requires_dist: tuple[Requirement, ...]
    source: str
    date: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placeholder:
    """Releases ``versions`` of ``project`` (``*`` for every project) hold nothing."""

    project: str
    versions: SpecifierSet
    source: str
    date: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectMark:
    """A fact about a whole project.

    ``kind`` is needs-pairing (``value``: the partner), compiles, optional-kernels, cuda-project, label-word or squatted
    (``value``: who holds the name).
    """

    kind: str
    project: str
    value: str
    source: str
    date: str = ""


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """All knowledge entries, with the look-ups the other rooms use. Empty by default.

    Look-ups are by normalised project name and cost one dictionary access.
    """

    families: tuple[Family, ...] = ()
    trains: tuple[Train, ...] = ()
    pairings: tuple[Pairing, ...] = ()
    renames: tuple[Rename, ...] = ()
    tested_sets: tuple[TestedSet, ...] = ()
    stand_ins: tuple[StandInMetadata, ...] = ()
    toolkits: tuple[Toolkit, ...] = ()
    toolkit_parts: tuple[ToolkitPart, ...] = ()
    runtime_libraries: tuple[RuntimeLibrary, ...] = ()
    cuda_numbers: tuple[CudaNumber, ...] = ()
    placeholders: tuple[Placeholder, ...] = ()
    marks: tuple[ProjectMark, ...] = ()
    architectures: tuple[Architectures, ...] = ()
    cxx_abis: tuple[CxxAbi, ...] = ()
    cpu_builds: tuple[CpuBuild, ...] = ()
    jit_floors: tuple[JitFloor, ...] = ()
    bundled_compilers: tuple[BundledCompiler, ...] = ()
    shared_libraries: tuple[SharedLibrary, ...] = ()

    @cached_property
    def _families(self) -> dict[str, Family]:
        return {project: family for family in self.families for project in family.projects}

    @cached_property
    def _pairings(self) -> dict[str, list[Pairing]]:
        found: dict[str, list[Pairing]] = {}
        for pairing in self.pairings:
            found.setdefault(pairing.project, []).append(pairing)
        return found

    @cached_property
    def partners(self) -> frozenset[str]:
        """The projects that pairings bind others to."""
        return frozenset(pairing.partner for pairing in self.pairings)

    @cached_property
    def _parts(self) -> dict[str, ToolkitPart]:
        return {part.project: part for part in self.toolkit_parts}

    @cached_property
    def _marks(self) -> dict[tuple[str, str], ProjectMark]:
        return {(mark.kind, mark.project): mark for mark in self.marks}

    def family(self, project: str) -> Family | None:
        """Return the family a project belongs to."""
        return self._families.get(project)

    @cached_property
    def _siblings(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        groups: tuple[Family | Train, ...] = (*self.families, *self.trains)
        for group in groups:
            for project in group.projects:
                found.setdefault(project, []).extend(p for p in group.projects if p != project)
        return found

    def siblings(self, project: str) -> tuple[str, ...]:
        """Return the other projects of its family and its train: they come from one index."""
        return tuple(self._siblings.get(project, ()))

    def pairing(self, project: str, version: Version) -> Pairing | None:
        """Return the pairing of one release, read without its local label."""
        public = Version(version.public)
        for pairing in self._pairings.get(project, ()):
            if pairing.versions.contains(public, prereleases=True):
                return pairing
        return None

    def mark(self, kind: str, project: str) -> ProjectMark | None:
        """Return the mark ``kind`` of a project."""
        return self._marks.get((kind, project))

    def rename(self, project: str) -> Rename | None:
        """Return where a project went on."""
        return next((r for r in self.renames if r.project == project), None)

    def stand_in(self, project: str, version: Version) -> StandInMetadata | None:
        """Return the entry that stands in for the METADATA of one release."""
        return _of_release(self.stand_ins, project, version)

    def toolkit(self, project: str) -> Toolkit | None:
        """Return the toolkit entry when ``project`` is a toolkit metapackage."""
        return next((t for t in self.toolkits if t.project == project), None)

    def toolkit_part(self, project: str) -> ToolkitPart | None:
        """Return the toolkit-part entry of a project."""
        return self._parts.get(project)

    def runtime_library(self, project: str, version: Version) -> RuntimeLibrary | None:
        """Return the entry that binds this release to one CUDA runtime major."""
        for entry in self.runtime_libraries:
            if entry.project == project and entry.versions.contains(version, prereleases=True):
                return entry
        return None

    @cached_property
    def cuda_libraries(self) -> frozenset[str]:
        """The projects that bring shared libraries of CUDA itself, each for one runtime."""
        return frozenset(
            provider
            for entry in self.shared_libraries
            for provider in entry.providers
            if any(library.project == provider for library in self.runtime_libraries)
        )

    def cuda_number(self, project: str) -> CudaNumber | None:
        """Return the entry when the project's version is a CUDA version."""
        return next((entry for entry in self.cuda_numbers if entry.project == project), None)

    def placeholder(self, project: str, version: Version) -> Placeholder | None:
        """Return the entry that says this release holds nothing."""
        for entry in self.placeholders:
            if entry.project in (project, "*") and entry.versions.contains(
                version, prereleases=True
            ):
                return entry
        return None

    def squatted(self, project: str) -> ProjectMark | None:
        """Return the entry that says somebody else holds this name on the default index."""
        return self.mark("squatted", project)

    @cached_property
    def labelled_partner(self) -> str | None:
        """The project whose release local labels name."""
        return next((mark.project for mark in self.marks if mark.kind == "label-word"), None)

    @cached_property
    def _architectures(self) -> dict[str, list[Architectures]]:
        found: dict[str, list[Architectures]] = {}
        for entry in self.architectures:
            found.setdefault(entry.project, []).append(entry)
        return found

    def device_code(
        self, project: str, version: Version, cuda: CudaVersion | None, machine: str
    ) -> DeviceCode | None:
        """Return what a build holds; ``cuda`` None is unknown."""
        entries = self._architectures.get(project)
        if entries is None:
            return None
        public = Version(version.public)
        for entry in entries:
            if (
                (not entry.cuda or cuda in entry.cuda)
                and entry.machine in (None, machine)
                and not (entry.untagged and version.local)
                and entry.versions.contains(public, prereleases=True)
            ):
                return entry.code
        return None

    def cpu_build(self, file: ListedFile) -> CpuBuild | None:
        """Return the entry that says a file of the default index has no CUDA in spite of its name."""
        wheel = file.wheel
        if file.index != DEFAULT_INDEX or wheel.version.local is not None:
            return None
        for entry in self.cpu_builds:
            if (
                entry.project == wheel.project
                # Wheels with a plain `linux` tag are of no public default index.
                and any(
                    tag.platform == entry.machine
                    or (tag.platform.startswith("many") and tag.platform.endswith(entry.machine))
                    for tag in wheel.tags
                )
                and entry.versions.contains(wheel.version, prereleases=True)
            ):
                return entry
        return None

    def cxx_abi(self, project: str, version: Version, cuda: CudaVersion | None) -> CxxAbi | None:
        """Return the C++ ABI of a build; ``cuda`` None is unknown."""
        public = Version(version.public)
        for entry in self.cxx_abis:
            if (
                entry.project == project
                and (not entry.cuda or cuda in entry.cuda)
                and entry.versions.contains(public, prereleases=True)
            ):
                return entry
        return None

    def jit_floor(self, project: str, version: Version) -> JitFloor | None:
        """Return the oldest toolkit one release compiles with, where some GPUs need a newer one."""
        return _of_release(self.jit_floors, project, version)

    def bundled_compiler(self, project: str, version: Version) -> BundledCompiler | None:
        """Return the compiler that one release carries."""
        return _of_release(self.bundled_compilers, project, version)

    @cached_property
    def _shared_libraries(self) -> dict[str, SharedLibrary]:
        return {entry.stem: entry for entry in self.shared_libraries}

    def shared_library(self, stem: str) -> SharedLibrary | None:
        """Return what is known of a shared library by its name before ``.so``."""
        return self._shared_libraries.get(stem)

    def rank_of_library(self, stem: str) -> int:
        """Return the place of a shared library among those that are known."""
        return list(self._shared_libraries).index(stem)


class _OfReleases(Protocol):
    """An entry of some releases of a project."""

    @property
    def project(self) -> str: ...
    @property
    def versions(self) -> SpecifierSet: ...


_Entry = TypeVar("_Entry", bound=_OfReleases)


def _of_release(entries: Iterable[_Entry], project: str, version: Version) -> _Entry | None:
    """Return the first entry of one release, read without its local label."""
    public = Version(version.public)
    for entry in entries:
        if entry.project == project and entry.versions.contains(public, prereleases=True):
            return entry
    return None
