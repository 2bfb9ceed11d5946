"""The file name of a wheel (binary distribution format, "File name convention"; PEP 825).

PEP 825 lets a variant label follow the platform tag. No older part may begin as a build tag does:
"the Python tag component MUST NOT start with a digit", so one name is read in one way.

A file name arrives from a page or a URL, so its length and the number of tags it stands for are
capped before anything is expanded: 40 x 40 x 40 parts in 250 characters would be 64,000 tags.
"""

import math
import re
from dataclasses import dataclass
from functools import lru_cache

from packaging.tags import Tag
from packaging.version import Version

from cudalock.errors import WheelError
from cudalock.wheel.names import format_quoted, parse_project_name, parse_version

__all__ = ["NULL_VARIANT", "WheelFile", "parse_wheel_file", "split_variant_label"]

NULL_VARIANT = "null"
"""The label that PEP 825 keeps for the variant with no properties, which suits every machine."""

_FILENAME_LIMIT = 255
_TAGS_LIMIT = 1024
_BUILD = re.compile(r"(\d{1,18})([A-Za-z0-9_.]*)\Z", re.ASCII)
_TAG = re.compile(r"[A-Za-z0-9_.+]+\Z", re.ASCII)
# PEP 825, "Variant label"; how long a label may be is left to the length of the whole name.
_VARIANT_LABEL = re.compile(r"[0-9a-z_.]+\Z", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelFile:
    """What a wheel's file name says; equal names are equal values.

    ``project`` is normalised, ``version`` carries the local version label, ``build`` orders builds
    of one version (``()`` when there is none), ``tags`` is the expanded compressed tag set.
    ``variant_label`` is the label of a wheel variant, None for an ordinary wheel.
    """

    filename: str
    project: str
    version: Version
    build: tuple[int, str] | tuple[()]
    tags: frozenset[Tag]
    variant_label: str | None = None

    @property
    def any_platform(self) -> bool:
        """Whether every tag of the wheel is of platform ``any``."""
        return all(tag.platform == "any" for tag in self.tags)

    def __str__(self) -> str:
        return self.filename


@lru_cache(maxsize=65536)
def _parse_tags(interpreter: str, abi: str, platform: str) -> frozenset[Tag]:
    parts = [interpreter.split("."), abi.split("."), platform.split(".")]
    if math.prod(len(part) for part in parts) > _TAGS_LIMIT:
        raise WheelError(f"expected at most {_TAGS_LIMIT} tags in a compressed tag set")
    if not all(_TAG.match(text) for part in parts for text in part):
        raise WheelError("expected wheel tags of letters, digits, `_` and `.`")
    return frozenset(Tag(i, a, p) for i in parts[0] for a in parts[1] for p in parts[2])


@lru_cache(maxsize=65536)
def parse_wheel_file(filename: str) -> WheelFile:
    """Parse a decoded file name (``+``, not ``%2B``); raise `WheelError` for anything else."""
    if len(filename) > _FILENAME_LIMIT:
        raise WheelError(f"expected a wheel's file name, found {len(filename)} characters")
    if not filename.endswith(".whl"):
        raise WheelError(f"expected a wheel's file name, found {format_quoted(filename)}")
    parts = filename[:-4].split("-")
    label = parts.pop() if _has_label(parts) else None
    if len(parts) not in (5, 6):
        raise WheelError(
            "expected name-version[-build]-python-abi-platform[-variant].whl, "
            f"found {format_quoted(filename)}"
        )
    build: tuple[int, str] | tuple[()] = ()
    if len(parts) == 6:
        match = _BUILD.match(parts[2])
        if match is None:
            raise WheelError(
                f"expected a build tag that begins with a digit in {format_quoted(filename)}"
            )
        build = (int(match[1]), match[2])
    if label is not None:
        if not _VARIANT_LABEL.match(label):
            raise WheelError(
                "expected a variant label of lower-case letters, digits, `_` and `.` in "
                f"{format_quoted(filename)}"
            )
        if parts[-3][:1].isdigit():
            raise WheelError(
                f"expected a Python tag that begins with a letter in {format_quoted(filename)}"
            )
    return WheelFile(
        filename=filename,
        project=parse_project_name(parts[0]),
        version=parse_version(parts[1].replace("_", "-")),
        build=build,
        tags=_parse_tags(parts[-3], parts[-2], parts[-1]),
        variant_label=label,
    )


def split_variant_label(filename: str) -> tuple[str, str | None]:
    """Return the name without its variant label, and the label; None and the name for any other.

    Nothing is checked: it only finds where a label would stand, by the number of parts. Of six
    parts one is optional: a third part that begins with a digit is a build tag, else the last is
    a label.
    """
    parts = filename.removesuffix(".whl").split("-")
    if _has_label(parts):
        return f"{'-'.join(parts[:-1])}.whl", parts[-1]
    return filename, None


def _has_label(parts: list[str]) -> bool:
    return len(parts) == 7 or (len(parts) == 6 and not parts[2][:1].isdigit())
