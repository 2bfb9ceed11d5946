"""Kinds of knowledge about the parts of CUDA itself: which projects bring them, and for which release.

They are entries of `knowledge.py`, which says what each kind means; each has a source and a date.
"""

from dataclasses import dataclass, field

from packaging.specifiers import SpecifierSet

__all__ = ["CudaNumber", "RuntimeLibrary", "SharedLibrary", "Toolkit", "ToolkitPart"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit:
    """The metapackage ``project`` pins the parts of the toolkit of its own X.Y."""

    project: str
    source: str
    date: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolkitPart:
    """A part of the toolkit; ``own_number`` when its version is not a CUDA version."""

    project: str
    own_number: bool
    source: str
    date: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeLibrary:
    """Releases ``versions`` of ``project`` serve one CUDA runtime major."""

    project: str
    major: int
    versions: SpecifierSet = field(default_factory=SpecifierSet)
    source: str
    date: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaNumber:
    """The version of ``project`` is a CUDA version: X.Y of it is the release it is for."""

    project: str
    source: str
    date: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedLibrary:
    """Libraries called ``stem.so.N`` come from ``providers``, each for one CUDA major.

    ``numbers`` maps N to the CUDA major it belongs to; with ``follows_cuda`` N is that major itself. Where
    neither tells, the name says nothing of the CUDA release.
    """

    stem: str
    providers: tuple[str, ...]
    follows_cuda: bool = False
    numbers: tuple[tuple[int, int], ...] = ()
    source: str
    date: str = ""

    def cuda_major(self, number: int | None) -> int | None:
        """Return the CUDA major of the library with this number, None where it does not tell."""
        if self.follows_cuda or number is None:
            return number
        return dict(self.numbers).get(number)
