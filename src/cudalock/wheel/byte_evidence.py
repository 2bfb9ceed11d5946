"""What a wheel's own bytes say of the CUDA it loads, library by library.

The name of a library that is needed tells the CUDA major only where its number follows it; which do is
knowledge (``shared-library``). A wheel may carry one library several times, for several CUDA releases,
torch releases or GPUs, and load the one that fits: those are *builds* of one library, recognised by paths
that differ in such a number alone.
"""

import re
from collections.abc import Iterator

from cudalock.wheel.evidence import Observation
from cudalock.wheel.knowledge import Knowledge
from cudalock.wheel.library_names import graft_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cudalock.wheel.contents import WheelContents
    from cudalock.wheel.library import Library
    from cudalock.wheel.wheel_facts import WheelFacts

__all__ = [
    "builds_for",
    "builds_of_libraries",
    "cuda_major_of",
    "installed_libraries",
    "names_a_torch",
    "observe_bytes",
    "speaks_of_cuda",
    "split_soname",
]

# Binary distribution format, "Spread": what is below `x.data/purelib` goes where the rest goes.
_SPREAD = re.compile(r"[^/]+\.data/(?:(?:purelib|platlib)/(.+)|.*)\Z", re.DOTALL)
_SONAME = re.compile(r"(lib[A-Za-z0-9_+-]+?)\.so(?:\.([0-9]{1,6}))?(?:\.[0-9.]*)?\Z")
# `libx_cuda130.so`, `x_cuda12.8.so`, `x_cu12.so`, `sm100/x.so`, `x_torch29.so`.
_BUILD = re.compile(
    r"(?<![a-z])(cuda|cu|torch|sm|compute)[_-]?v?[0-9]{1,4}(?:\.[0-9]{1,2})?[a-z]?(?![0-9a-z])",
    re.IGNORECASE,
)


def split_soname(name: str) -> tuple[str, int | None]:
    """Return ``libcudart`` and 12 of ``libcudart.so.12``; of a copy that a repair tool renamed too."""
    match = _SONAME.match(graft_of(name) or name)
    if match is None:
        return name, None
    return match[1], None if match[2] is None else int(match[2])


def cuda_major_of(name: str, knowledge: Knowledge) -> int | None:
    """Return the CUDA major that a library of this name belongs to, None where it does not tell."""
    stem, number = split_soname(name)
    entry = knowledge.shared_library(stem)
    return None if entry is None else entry.cuda_major(number)


def names_a_torch(path: str) -> bool:
    """Whether a library is named after a release of torch: it is for that one alone."""
    return any(match[1].lower() == "torch" for match in _BUILD.finditer(path))


def builds_of_libraries(contents: "WheelContents") -> "list[tuple[Library, ...]]":
    """Return the libraries of a wheel, several builds of one together; copies are left out."""
    groups: dict[str, list[Library]] = {}
    for library in contents.libraries:
        if library.copy_of is None:
            groups.setdefault(_BUILD.sub(r"\1", library.path), []).append(library)
    return [tuple(group) for group in groups.values()]


def builds_for(
    group: "tuple[Library, ...]", major: int | None, knowledge: Knowledge
) -> "tuple[Library, ...]":
    """Return of builds of one library those that a set of a CUDA major loads; all, where none tells."""
    told = [(library, _majors(library, knowledge)) for library in group]
    loading = tuple(library for library, majors in told if major in majors)
    return loading or tuple(library for library, majors in told if not majors) or group


def installed_libraries(contents: "WheelContents") -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the paths of native files that a wheel installs, each with CRC-32 and length of its bytes."""
    for library in contents.libraries:
        match = _SPREAD.match(library.path)
        path = library.path if match is None else match[1]
        if path is not None:
            yield path, (library.crc32, library.size)


def observe_bytes(
    facts: "WheelFacts", knowledge: Knowledge, *, wanted: int | None
) -> tuple[Observation, ...]:
    """Observe which CUDA runtime a wheel's libraries load; ``wanted`` is the target's major.

    Nothing is said of a wheel none of whose libraries tells. One that carries builds for several majors
    is for the target's, if that is among them. Libraries that are no builds of each other and load
    different majors leave the question open, which is said.
    """
    # The library that knowledge names first is the one that a person knows best.
    told: dict[int, tuple[int, str, str]] = {}
    common: set[int] | None = None
    for group in builds_of_libraries(facts.contents):
        found: set[int] = set()
        for library in group:
            majors = _majors(library, knowledge)
            for major, each in majors.items():
                told[major] = min(told.get(major, each), each)
            if len(majors) > 1:
                common = set()
            found |= set(majors)
        if found:
            common = found if common is None else common & found
    if common is None:
        return ()
    shown = [f"NEEDED {name} ({path})" for _, (_, name, path) in sorted(told.items())]
    if not common:
        # Nobody can load them all.
        text = f"libraries of several CUDA majors: {', '.join(shown)}"
        return (Observation(kind="needed", text=text, source=facts.filename),)
    major = wanted if wanted in common else max(common)
    if len(common) == 1:
        _, name, path = told[major]
        text, source = f"NEEDED {name}", f"{path} in {facts.filename}"
    else:
        listed = ", ".join(str(each) for each in sorted(common))
        text, source = f"carries builds for CUDA {listed}", facts.filename
    return (Observation(kind="needed", text=text, source=source, major=major),)


def _majors(library: "Library", knowledge: Knowledge) -> dict[int, tuple[int, str, str]]:
    """Return the CUDA majors that a library's needs belong to, each with what tells it best.

    Copies that a wheel carries count as well: they tell what it was built with.
    """
    found: dict[int, tuple[int, str, str]] = {}
    stem, _ = split_soname(library.soname or library.path.rpartition("/")[2])
    if knowledge.shared_library(stem) is not None:
        # A library of CUDA that a wheel brings along says nothing of who uses it.
        return found
    for name in library.needed or ():
        major = cuda_major_of(name, knowledge)
        if major is not None:
            each = (knowledge.rank_of_library(split_soname(name)[0]), name, library.path)
            found[major] = min(found.get(major, each), each)
    return found


def speaks_of_cuda(contents: "WheelContents", knowledge: Knowledge) -> bool:
    """Whether anything that was read of a wheel has to do with CUDA or torch."""
    return bool(contents.loose) or any(
        library.code.containers
        or library.code.bare_cubins
        or (library.torch is not None and library.torch.undefined)
        or any(knowledge.shared_library(split_soname(n)[0]) for n in library.needed or ())
        for library in contents.libraries
    )
