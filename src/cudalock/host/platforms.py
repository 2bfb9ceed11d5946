"""The platforms that CUDA wheels are built for, and how a person or a wheel tag names them.

Specifications: platform compatibility tags (PEP 600 for ``manylinux_X_Y``, with its table of the
older names). Only Linux on x86_64 and aarch64, and Windows on x86_64, have CUDA wheels; anything
else is refused in words.
"""

import re
from dataclasses import dataclass

from cudalock.errors import UsageError

__all__ = ["DEFAULT_GLIBC", "Platform", "parse_platform"]

# A Linux platform without a glibc means manylinux_2_28: what RHEL 8, Debian 11 and newer run.
DEFAULT_GLIBC = (2, 28)

_MACHINES = {
    "x86_64": "x86_64",
    "amd64": "x86_64",
    "x64": "x86_64",
    "aarch64": "aarch64",
    "arm64": "aarch64",
}
# PEP 600: "manylinux1 … = manylinux_2_5", "manylinux2010 … = manylinux_2_12",
# "manylinux2014 … = manylinux_2_17".
_LEGACY = {"1": (2, 5), "2010": (2, 12), "2014": (2, 17)}
_LEGACY_BY_GLIBC = {glibc: f"manylinux{name}" for name, glibc in _LEGACY.items()}
# PEP 600 builds begin with glibc 2.5 on x86; the other machines came with manylinux2014.
_OLDEST_GLIBC = {"x86_64": (2, 5), "aarch64": (2, 17)}

_MANYLINUX = re.compile(r"manylinux_(2)_([0-9]{1,3})_(\w+)|manylinux(1|2010|2014)_(\w+)")
_PLAIN = re.compile(r"(linux|win|windows)[-_]([a-z0-9_]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """An operating system and machine; ``glibc`` is ``None`` on Windows.

    ``str`` is the most demanding wheel tag it accepts: ``manylinux_2_34_x86_64``, ``win_amd64``.
    """

    machine: str
    glibc: tuple[int, int] | None

    @property
    def is_linux(self) -> bool:
        """Whether it is Linux; the only other system is Windows."""
        return self.glibc is not None

    def __str__(self) -> str:
        if self.glibc is None:
            return "win_amd64"
        return f"manylinux_{self.glibc[0]}_{self.glibc[1]}_{self.machine}"

    @property
    def tags(self) -> tuple[str, ...]:
        """Every platform tag it accepts, the most demanding first.

        The order is that of ``packaging.tags`` on such a machine (falling glibc, each older name
        behind the one it stands for), except that the bare ``linux_`` tag comes last: a wheel
        with it was built for some machine, and promises nothing about the target.
        """
        if self.glibc is None:
            return ("win_amd64",)
        major, newest = self.glibc
        tags: list[str] = []
        for minor in range(newest, _OLDEST_GLIBC[self.machine][1] - 1, -1):
            tags.append(f"manylinux_{major}_{minor}_{self.machine}")
            legacy = _LEGACY_BY_GLIBC.get((major, minor))
            if legacy is not None:
                tags.append(f"{legacy}_{self.machine}")
        return (*tags, f"linux_{self.machine}")


def parse_platform(text: str) -> Platform:
    """Read ``linux-x86_64``, ``linux-aarch64``, ``win-amd64`` or a wheel tag of these.

    Raises:
        UsageError: it is another platform, or none.

    """
    lowered = text.strip().lower()
    found = _MANYLINUX.fullmatch(lowered)
    if found is not None:
        machine = _MACHINES.get(found[3] or found[5])
        glibc = (2, int(found[2])) if found[2] else _LEGACY[found[4]]
        if machine is not None and glibc >= _OLDEST_GLIBC[machine]:
            return Platform(machine=machine, glibc=glibc)
    found = _PLAIN.fullmatch(lowered)
    if found is not None:
        machine = _MACHINES.get(found[2])
        if found[1] == "linux" and machine is not None:
            return Platform(machine=machine, glibc=DEFAULT_GLIBC)
        if found[1] != "linux" and machine == "x86_64":
            return Platform(machine=machine, glibc=None)
    raise UsageError(
        "expected `linux-x86_64`, `linux-aarch64`, `win-amd64` or a tag such as"
        f" `manylinux_2_34_x86_64`, found `{text[:80]}`"
    )
