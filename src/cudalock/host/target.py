"""The machine that is locked for, and what it means for markers and wheel tags.

Specifications: dependency specifiers (environment markers), platform compatibility tags. A
`Target` is a value and asks nothing of the machine it is on: the same target gives the same
markers and tags on every host. `precedence` makes one from what a person said.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from packaging.tags import Tag, compatible_tags, cpython_tags

from cudalock.cuda import (
    ComputeCapability,
    CudaVersion,
    DriverVersion,
    known_majors,
    known_releases,
    newest_minor,
)
from cudalock.host.options import CudaCompat
from cudalock.host.platforms import parse_platform

__all__ = [
    "Origin",
    "Target",
    "TargetWarning",
    "every_release",
    "marker_environment",
    "releases_to_try",
    "supported_tags",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where the value of one field came from: a flag, a variable, a key, a source on the host."""

    field: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetWarning:
    """Something about a target that its owner should know; ``str`` is the message."""

    code: str
    message: str

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A machine: Python, platform, driver, GPUs, and the CUDA that a set may be built for.

    ``python`` is ``3.12`` or ``3.12.4``; ``platform`` the most demanding wheel tag it accepts;
    ``driver_cuda`` the newest CUDA its driver supports; ``cuda`` the newest release that the set
    may be built for, or ``None`` with ``cuda_any`` or ``cpu``. An empty ``capabilities`` is
    unknown. ``wsl`` is a Linux under Windows, whose driver is Windows' own. ``compat`` is the release
    whose package of forward compatibility the machine is to have. ``origins`` and ``warnings`` tell
    how it was made and take no part in comparison.
    """

    python: str
    platform: str
    implementation: str = "cpython"
    free_threaded: bool = False
    driver: DriverVersion | None = None
    driver_cuda: CudaVersion | None = None
    cuda: CudaVersion | None = None
    cuda_any: bool = False
    cuda_compat: CudaCompat = "strict"
    compat: CudaVersion | None = None
    capabilities: tuple[ComputeCapability, ...] = ()
    tegra: bool = False
    wsl: bool = False
    cpu: bool = False
    name: str | None = None
    origins: tuple[Origin, ...] = field(default=(), compare=False)
    warnings: tuple[TargetWarning, ...] = field(default=(), compare=False)

    @property
    def python_minor(self) -> str:
        """``3.12``, whatever the patch release."""
        major, minor = self.python.split(".")[:2]
        return f"{major}.{minor}"

    @property
    def is_linux(self) -> bool:
        """Whether it runs Linux; the other system is Windows, whose drivers count otherwise."""
        return self.platform != "win_amd64"

    @property
    def driver_system(self) -> Literal["linux", "windows"]:
        """Whose drivers the target's counts among: under WSL they are those of Windows."""
        return "linux" if self.is_linux and not self.wsl else "windows"

    @property
    def any_minor(self) -> bool:
        """Whether a set may be of any minor of its major, and not only of ``cuda`` or older."""
        return self.cuda_compat == "minor"

    @property
    def runs_cuda(self) -> CudaVersion | None:
        """The newest CUDA that programs find: the driver's, or that of ``compat``."""
        return self.driver_cuda if self.compat is None else self.compat

    @property
    def machine(self) -> str:
        """``x86_64`` or ``aarch64``."""
        return parse_platform(self.platform).machine

    def origin(self, field_name: str) -> str | None:
        """Where the field's value came from, or ``None`` for one that nobody set."""
        return next((o.text for o in self.origins if o.field == field_name), None)


def marker_environment(target: Target) -> dict[str, str]:
    """Give the values of the environment markers on ``target``.

    A target that gives only ``3.12`` has ``python_full_version`` 3.12.0, as
    ``uv pip compile --python-version 3.12`` has. The release and version of the operating system
    are unknown and empty, but for the kernel of a Jetson, whose release has the word ``tegra`` in it.
    """
    platform = parse_platform(target.platform)
    full = target.python if target.python.count(".") > 1 else f"{target.python}.0"
    return {
        "implementation_name": target.implementation,
        "implementation_version": full,
        "os_name": "posix" if platform.is_linux else "nt",
        "platform_machine": platform.machine if platform.is_linux else "AMD64",
        "platform_python_implementation": "CPython",
        # `'tegra' in platform_release` is how requirements tell a Jetson from other machines.
        "platform_release": "tegra" if target.tegra else "",
        "platform_system": "Linux" if platform.is_linux else "Windows",
        "platform_version": "",
        "python_full_version": full,
        "python_version": target.python_minor,
        "sys_platform": "linux" if platform.is_linux else "win32",
    }


def supported_tags(target: Target) -> tuple[Tag, ...]:
    """List the wheel tags ``target`` accepts, best first; about 1,200 on Linux, made once."""
    return _supported_tags(target.python_minor, target.free_threaded, target.platform)


@lru_cache(maxsize=32)
def _supported_tags(python_minor: str, free_threaded: bool, platform: str) -> tuple[Tag, ...]:
    major, minor = python_minor.split(".")
    version = (int(major), int(minor))
    interpreter = f"cp{major}{minor}"
    abi = f"{interpreter}t" if free_threaded else interpreter
    platforms = parse_platform(platform).tags
    return (
        *cpython_tags(version, abis=[abi], platforms=platforms),
        *compatible_tags(version, interpreter=interpreter, platforms=platforms),
    )


def releases_to_try(target: Target) -> list[CudaVersion]:
    """Return a release a major the driver runs, newest first (unknown driver: all known)."""
    runs = target.runs_cuda
    releases = []
    for major in sorted(known_majors(), reverse=True):
        newest = newest_minor(major)
        if newest is None or (runs is not None and major > runs.major):
            continue
        releases.append(runs if runs is not None and major == runs.major else newest)
    return releases


def every_release(target: Target) -> list[CudaVersion]:
    """Return every known release that the driver runs, newest first (unknown driver: all known).

    What the driver supports itself is one of them, also where no table has a toolkit of it.
    """
    runs = target.runs_cuda
    found = {release for major in known_majors() for release in known_releases(major)}
    if runs is not None:
        found = {release for release in found if release <= runs} | {runs}
    return sorted(found, reverse=True)
