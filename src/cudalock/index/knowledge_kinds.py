"""The kinds of knowledge entries, and what makes values of each.

The types are those of `cudalock.wheel.knowledge`; `knowledge_files.py` has the table of what each
kind holds.
"""

import re
from collections.abc import Callable, Iterator, Mapping

from cudalock.cuda import CudaVersion, parse_compute_capability, parse_cuda_version
from cudalock.errors import UsageError
from cudalock.index.knowledge_entry import Entry
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
from cudalock.wheel.device_code import DeviceCode, Image, Library, parse_image
from cudalock.wheel.knowledge import (
    Family,
    Pairing,
    Placeholder,
    ProjectMark,
    Rename,
    StandInMetadata,
    TestedSet,
    Train,
)

__all__ = ["KINDS", "make_values"]

# Linux has a machine, Windows one platform tag.
_MACHINES = ("x86_64", "aarch64", "win_amd64")
_MINOR = re.compile(r"\d{1,4}\.\d{1,4}\Z", re.ASCII)
_STEM = re.compile(r"lib[A-Za-z0-9_+-]+\Z")
_NO_VERSIONS = frozenset(
    {"family", "train", "toolkit", "toolkit-part", "cuda-number", "shared-library"}
    | {"needs-pairing", "compiles", "optional-kernels", "cuda-project", "label-word", "squatted"}
)
_NO_VALUE = frozenset(
    {"toolkit", "cuda-number", "placeholder", "compiles", "optional-kernels", "cuda-project"}
    | {"label-word"}
)


def make_values(entry: Entry) -> Iterator[object]:
    """Yield the values that an entry of a known kind stands for, noting its faults."""
    if entry.kind in _NO_VERSIONS:
        entry.forbid("versions")
    if entry.kind in _NO_VALUE:
        entry.forbid("value")
    yield from KINDS[entry.kind][1](entry)


def _groups(entry: Entry) -> Iterator[Family | Train]:
    group = Family if entry.kind == "family" else Train
    yield group(
        name=next(entry.projects(), ""),
        projects=entry.names(),
        source=entry.source,
        date=entry.date,
    )


def _pairings(entry: Entry) -> Iterator[Pairing]:
    versions, partners = entry.specifiers(), entry.pairs()
    for minor in partners.values():
        if not _MINOR.match(minor):
            entry.fault("value", f"expected a minor release such as `2.9`, found `{minor}`")
    for project in entry.projects():
        for partner, minor in sorted(partners.items()):
            yield Pairing(
                project=project,
                versions=versions,
                partner=partner,
                minor=minor,
                source=entry.source,
                date=entry.date,
            )


def _renames(entry: Entry) -> Iterator[Rename]:
    since, successor = entry.bound(">="), entry.name("value", entry.text("the successor's name"))
    for project in entry.projects():
        yield Rename(
            project=project,
            successor=successor,
            since=since,
            source=entry.source,
            date=entry.date,
        )


def _tested_sets(entry: Entry) -> Iterator[TestedSet]:
    version = entry.bound("==")
    pins = tuple(
        (name, entry.version(f"value.{name}", text)) for name, text in sorted(entry.pairs().items())
    )
    for project in entry.projects():
        yield TestedSet(
            project=project, version=version, pins=pins, source=entry.source, date=entry.date
        )


def _stand_ins(entry: Entry) -> Iterator[StandInMetadata]:
    versions, requirements = entry.specifiers(), entry.requirements()
    for project in entry.projects():
        yield StandInMetadata(
            project=project,
            versions=versions,
            requires_dist=requirements,
            source=entry.source,
            date=entry.date,
        )


def _toolkits(entry: Entry) -> Iterator[Toolkit]:
    for project in entry.projects():
        yield Toolkit(project=project, source=entry.source, date=entry.date)


def _toolkit_parts(entry: Entry) -> Iterator[ToolkitPart]:
    value = entry.text("`toolkit-number` or `own-number`")
    if value not in ("toolkit-number", "own-number"):
        entry.fault("value", f"expected `toolkit-number` or `own-number`, found `{value}`")
    for project in entry.projects():
        yield ToolkitPart(
            project=project,
            own_number=value == "own-number",
            source=entry.source,
            date=entry.date,
        )


def _runtime_libraries(entry: Entry) -> Iterator[RuntimeLibrary]:
    versions, major = entry.specifiers(required=False), entry.number()
    for project in entry.projects():
        yield RuntimeLibrary(
            project=project,
            major=major,
            versions=versions,
            source=entry.source,
            date=entry.date,
        )


def _cuda_numbers(entry: Entry) -> Iterator[CudaNumber]:
    for project in entry.projects():
        yield CudaNumber(project=project, source=entry.source, date=entry.date)


def _placeholders(entry: Entry) -> Iterator[Placeholder]:
    versions = entry.specifiers()
    for project in entry.projects():
        yield Placeholder(project=project, versions=versions, source=entry.source, date=entry.date)


def _marks(entry: Entry) -> Iterator[ProjectMark]:
    value = ""
    if entry.kind == "needs-pairing":
        value = entry.name("value", entry.text("the partner's name"))
    elif entry.kind == "squatted":
        value = entry.text("who holds the name")
    for project in entry.projects():
        yield ProjectMark(
            kind=entry.kind, project=project, value=value, source=entry.source, date=entry.date
        )


def _architectures(entry: Entry) -> Iterator[Architectures]:
    table = entry.table("cuda", "machine", "untagged", "images", "libraries", "as-data")
    versions, cuda = entry.specifiers(required=False), _releases(entry, table)
    machine = table.get("machine")
    if machine is not None and machine not in _MACHINES:
        entry.fault("value.machine", f"expected one of {', '.join(_MACHINES)}, found `{machine!r}`")
    lists = table.get("libraries", {"*": table.get("images")})
    if not isinstance(lists, dict) or ("libraries" in table) is ("images" in table):
        entry.fault("value", "expected either `images` or a table `libraries`")
        lists = {}
    libraries = tuple(
        Library(name=str(name), images=_images(entry, f"value.{name}", found))
        for name, found in lists.items()
    )
    as_data, untagged = (_flag(entry, table, key) for key in ("as-data", "untagged"))
    code = DeviceCode(libraries=libraries, source=entry.source, as_data=as_data)
    for project in entry.projects():
        yield Architectures(
            project=project,
            versions=versions,
            code=code,
            cuda=cuda,
            machine=machine if isinstance(machine, str) else None,
            untagged=untagged,
            source=entry.source,
            date=entry.date,
        )


def _flag(entry: Entry, table: Mapping[str, object], key: str) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        entry.fault(f"value.{key}", f"expected true or false, found `{value!r}`")
    return value is True


def _images(entry: Entry, key: str, value: object) -> tuple[Image, ...]:
    if not isinstance(value, list) or not value:
        entry.fault(key, f"expected a list such as [`sm_90a`, `compute_90@8.7`], found `{value!r}`")
        return ()
    found = []
    for item in value:
        try:
            found.append(parse_image(item if isinstance(item, str) else ""))
        except UsageError as error:
            entry.fault(key, error.message)
    return tuple(found)


def _releases(entry: Entry, table: Mapping[str, object]) -> frozenset[CudaVersion]:
    """Return ``cuda`` of a value: one release or a list of them, or none at all."""
    value = table.get("cuda", [])
    found = set()
    for item in value if isinstance(value, list) else [value]:
        try:
            found.add(parse_cuda_version(item if isinstance(item, str) else ""))
        except UsageError as error:
            entry.fault("value.cuda", error.message)
    return frozenset(found)


def _release(entry: Entry, table: Mapping[str, object], key: str) -> CudaVersion:
    try:
        value = table.get(key)
        return parse_cuda_version(value if isinstance(value, str) else "")
    except UsageError as error:
        entry.fault(f"value.{key}", error.message)
        return CudaVersion(major=1, minor=0)


def _cpu_builds(entry: Entry) -> Iterator[CpuBuild]:
    versions, machine = entry.specifiers(), entry.text("a machine")
    if machine not in _MACHINES:
        entry.fault("value", f"expected one of {', '.join(_MACHINES)}, found `{machine}`")
    for project in entry.projects():
        yield CpuBuild(
            project=project,
            versions=versions,
            machine=machine,
            source=entry.source,
            date=entry.date,
        )


def _cxx_abis(entry: Entry) -> Iterator[CxxAbi]:
    table = entry.table("new", "cuda")
    versions, cuda = entry.specifiers(), _releases(entry, table)
    if not isinstance(table.get("new"), bool):
        entry.fault("value.new", f"expected true or false, found `{table.get('new')!r}`")
    for project in entry.projects():
        yield CxxAbi(
            project=project,
            versions=versions,
            new=table.get("new") is True,
            cuda=cuda,
            source=entry.source,
            date=entry.date,
        )


def _jit_floors(entry: Entry) -> Iterator[JitFloor]:
    table = entry.table("capabilities", "toolkit")
    versions, toolkit = entry.specifiers(required=False), _release(entry, table, "toolkit")
    value = table.get("capabilities")
    capabilities = set()
    for item in value if isinstance(value, list) and value else [None]:
        try:
            capabilities.add(parse_compute_capability(item if isinstance(item, str) else ""))
        except UsageError as error:
            entry.fault("value.capabilities", error.message)
    for project in entry.projects():
        yield JitFloor(
            project=project,
            versions=versions,
            capabilities=frozenset(capabilities),
            toolkit=toolkit,
            source=entry.source,
            date=entry.date,
        )


def _bundled_compilers(entry: Entry) -> Iterator[BundledCompiler]:
    table = entry.table("cuda", "remedy")
    versions, cuda = entry.specifiers(), _release(entry, table, "cuda")
    remedy = table.get("remedy")
    if not isinstance(remedy, str) or not remedy:
        entry.fault("value.remedy", f"expected a text, found `{remedy!r}`")
    for project in entry.projects():
        yield BundledCompiler(
            project=project,
            versions=versions,
            cuda=cuda,
            remedy=str(remedy),
            source=entry.source,
            date=entry.date,
        )


def _shared_libraries(entry: Entry) -> Iterator[SharedLibrary]:
    table = entry.table("names", "numbers")
    names, numbers = table.get("names"), table.get("numbers")
    sound = isinstance(names, list) and all(isinstance(n, str) and _STEM.match(n) for n in names)
    if not isinstance(names, list) or not names or not sound:
        entry.fault("value.names", f"expected names such as `libcudart`, found `{names!r}`")
        names = []
    majors: list[tuple[int, int]] = []
    if isinstance(numbers, dict):
        for number, major in numbers.items():
            if not number.isdecimal() or type(major) is not int:
                entry.fault(f"value.numbers.{number}", f"expected a CUDA major, found `{major!r}`")
            else:
                majors.append((int(number), major))
    elif numbers not in (None, "cuda"):
        entry.fault("value.numbers", f"expected `cuda` or a table of numbers, found `{numbers!r}`")
    providers = tuple(entry.projects())
    for name in names:
        yield SharedLibrary(
            stem=name,
            providers=providers,
            follows_cuda=numbers == "cuda",
            numbers=tuple(majors),
            source=entry.source,
            date=entry.date,
        )


# Kind, the field of `Knowledge` it fills, and what makes the values of one entry.
KINDS: dict[str, tuple[str, Callable[[Entry], Iterator[object]]]] = {
    "family": ("families", _groups),
    "train": ("trains", _groups),
    "pairing": ("pairings", _pairings),
    "rename": ("renames", _renames),
    "tested-set": ("tested_sets", _tested_sets),
    "metadata": ("stand_ins", _stand_ins),
    "toolkit": ("toolkits", _toolkits),
    "toolkit-part": ("toolkit_parts", _toolkit_parts),
    "runtime-library": ("runtime_libraries", _runtime_libraries),
    "cuda-number": ("cuda_numbers", _cuda_numbers),
    "placeholder": ("placeholders", _placeholders),
    "needs-pairing": ("marks", _marks),
    "compiles": ("marks", _marks),
    "optional-kernels": ("marks", _marks),
    "cuda-project": ("marks", _marks),
    "label-word": ("marks", _marks),
    "squatted": ("marks", _marks),
    "architectures": ("architectures", _architectures),
    "cpu-build": ("cpu_builds", _cpu_builds),
    "cxx11-abi": ("cxx_abis", _cxx_abis),
    "jit-floor": ("jit_floors", _jit_floors),
    "bundled-compiler": ("bundled_compilers", _bundled_compilers),
    "shared-library": ("shared_libraries", _shared_libraries),
}
