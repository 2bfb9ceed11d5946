"""What a wheel's own bytes say of the CUDA it loads, library by library.

The name of a library that is needed tells the CUDA major only where its number follows it; which do is
knowledge (``shared-library``). A wheel may carry one library several times, for several CUDA releases,
torch releases or GPUs, and load the one that fits: those are *builds* of one library, recognised by paths
that differ in such a number alone.
"""

import re
from collections.abc import Iterable

from cudalock.wheel.contents import WheelContents
from cudalock.wheel.evidence import Observation
from cudalock.wheel.knowledge import Knowledge
from cudalock.wheel.library import Library
from cudalock.wheel.library_names import graft_of
from cudalock.wheel.wheel_facts import WheelFacts

__all__ = ["builds_of_libraries", "cuda_major_of", "observe_bytes", "split_soname"]

_SONAME = re.compile(r"(lib[A-Za-z0-9_+-]+?)\.so(?:\.([0-9]{1,6}))?(?:\.[0-9.]*)?\Z")
# `libx_cuda130.so`, `x_cu12.so`, `sm100/x.so`, `x_torch29.so`, and a library that a release of it names.
_BUILD = re.compile(
    r"(?<![a-z])(cuda|cu|torch|sm|compute)[_-]?v?[0-9]{1,4}[a-z]?(?![0-9a-z])", re.IGNORECASE
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


def builds_of_libraries(contents: WheelContents) -> list[tuple[Library, ...]]:
    """Return the libraries of a wheel, several builds of one together; copies are left out."""
    groups: dict[str, list[Library]] = {}
    for library in contents.libraries:
        if library.copy_of is None:
            groups.setdefault(_BUILD.sub(r"\1", library.path), []).append(library)
    return [tuple(group) for group in groups.values()]


def observe_bytes(
    facts: WheelFacts, knowledge: Knowledge, *, wanted: int | None
) -> tuple[Observation, ...]:
    """Observe which CUDA runtime a wheel's libraries load; ``wanted`` is the target's major.

    Nothing is said of a wheel none of whose libraries tells. One that carries builds for several majors
    is for the target's, if that is among them. Libraries that are no builds of each other and load
    different majors leave the question open, which is said.
    """
    told: dict[int, tuple[str, str]] = {}
    common: set[int] | None = None
    for group in builds_of_libraries(facts.contents):
        found: set[int] = set()
        for library in group:
            majors = dict(_majors(library, knowledge))
            for major, each in majors.items():
                told.setdefault(major, each)
            if len(majors) > 1:
                common = set()
            found |= set(majors)
        if found:
            common = found if common is None else common & found
    if common is None:
        return ()
    shown = [f"NEEDED {name} ({path})" for _, (name, path) in sorted(told.items())]
    if not common:
        # Nobody can load them all.
        text = f"libraries of several CUDA majors: {', '.join(shown)}"
        return (Observation(kind="needed", text=text, source=facts.filename),)
    major = wanted if wanted in common else max(common)
    if len(common) == 1:
        name, path = told[major]
        text, source = f"NEEDED {name}", f"{path} in {facts.filename}"
    else:
        listed = ", ".join(str(each) for each in sorted(common))
        text, source = f"carries builds for CUDA {listed}", facts.filename
    return (Observation(kind="needed", text=text, source=source, major=major),)


def _majors(library: Library, knowledge: Knowledge) -> Iterable[tuple[int, tuple[str, str]]]:
    """Yield the CUDA majors that a library's needs belong to, each with the first that tells it.

    Copies that a wheel carries count as well: they tell what it was built with.
    """
    stem, _ = split_soname(library.soname or library.path.rpartition("/")[2])
    if knowledge.shared_library(stem) is not None:
        # A library of CUDA that a wheel brings along says nothing of who uses it.
        return
    for name in sorted(library.needed or ()):
        major = cuda_major_of(name, knowledge)
        if major is not None:
            yield major, (name, library.path)
