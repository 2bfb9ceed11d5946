"""CUDA releases, driver versions and PTX ISA versions as ordered values.

Three numbers that look alike and must not blur: a CUDA release (``13.0``, what a wheel was built
with or the newest a driver supports), the version of the kernel driver (``590.48.01``) and the
version of the PTX language (``9.0``). Each is a value, so that next year's number needs no code.
Which of them go together is in the tables and told by the ``drivers`` module.
"""

import re
from dataclasses import dataclass, field

from cudalock.errors import UsageError

__all__ = [
    "CudaVersion",
    "DriverVersion",
    "PtxIsa",
    "cuda_from_number",
    "parse_cuda_version",
    "parse_driver_version",
    "parse_ptx_isa",
]

_DOTTED = re.compile(r"(0|[1-9][0-9]?)\.(0|[1-9][0-9]?)")
_LABEL = re.compile(r"cu([1-9][0-9])([0-9]|[1-9][0-9])", re.IGNORECASE)
_DRIVER = re.compile(r"[1-9][0-9]{1,4}(?:\.[0-9]{1,5}){1,3}")


# These small pairs may be built by position, ``CudaVersion(13, 0)``: nobody can swap the two.
@dataclass(frozen=True, slots=True, order=True)
class CudaVersion:
    """A CUDA release, ``13.0``. Ordered by number: 12.9 < 12.10 < 13.0."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    @property
    def label(self) -> str:
        """Its spelling in local version labels and index folders: ``cu130``, ``cu1210``."""
        return f"cu{self.major}{self.minor}"

    @property
    def number(self) -> int:
        """Its spelling in the driver API: ``13000`` for 13.0 and ``12080`` for 12.8."""
        return 1000 * self.major + 10 * self.minor


def parse_cuda_version(text: str) -> CudaVersion:
    """Read ``13.0`` or ``cu130``.

    A third number is refused rather than dropped, since ``13.0.2`` names a package and not a
    release, and a bare major is refused since it names many. Raises ``UsageError``.
    """
    stripped = text.strip()
    match = _DOTTED.fullmatch(stripped) or _LABEL.fullmatch(stripped)
    if match is None:
        raise UsageError(
            f"expected a CUDA release as X.Y (13.0) or as a label (cu130), found `{_shown(text)}`"
        )
    return CudaVersion(int(match[1]), int(match[2]))


def cuda_from_number(number: int) -> CudaVersion | None:
    """Read what ``cuDriverGetVersion`` answers: ``13010`` is 13.1; ``None`` if it is no release."""
    major, rest = divmod(number, 1000)
    return CudaVersion(major, rest // 10) if number >= 1000 else None


@dataclass(frozen=True, slots=True, order=True)
class DriverVersion:
    """The version of a kernel driver. Ordered by number; printed as it was written.

    ``570.26`` is ``570.26.00``, and ``570.124.06`` is newer: the parts are numbers.
    """

    parts: tuple[int, ...]
    text: str = field(compare=False)

    def __str__(self) -> str:
        return self.text

    @property
    def branch(self) -> int:
        """The release branch, which decides the newest CUDA it supports: 590 of 590.48.01."""
        return self.parts[0]


def parse_driver_version(text: str) -> DriverVersion:
    """Read ``590.48.01`` or ``616.56``; raises ``UsageError``.

    A bare branch (``590``) is refused: floors differ inside a branch.
    """
    stripped = text.strip()
    if _DRIVER.fullmatch(stripped) is None:
        raise UsageError(
            "expected a driver version with all its numbers, as `nvidia-smi` prints it"
            f" (590.48.01), found `{_shown(text)}`"
        )
    parts = [int(part) for part in stripped.split(".")]
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return DriverVersion(tuple(parts), stripped)


@dataclass(frozen=True, slots=True, order=True)
class PtxIsa:
    """A version of the PTX language: the ``.version`` line that a compiler wrote."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


def parse_ptx_isa(text: str) -> PtxIsa:
    """Read ``8.5``; raises ``UsageError``."""
    match = _DOTTED.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"expected a PTX ISA version as X.Y (8.5), found `{_shown(text)}`")
    return PtxIsa(int(match[1]), int(match[2]))


def _shown(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
