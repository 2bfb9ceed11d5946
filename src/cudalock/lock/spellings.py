"""How names, versions, file names and hashes must be spelled in a lock.

Each function says what is wrong, or returns ``None``. Lengths are capped before ``packaging``
parses, because some of its parsers are slow or raise a bare ``ValueError`` on long input, and
ASCII is asked for first: ``parse_wheel_filename`` takes homoglyphs and control characters.
"""

import hashlib
import re
from functools import lru_cache

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

from cudalock.errors import WheelError
from cudalock.lock.faults import quoted
from cudalock.wheel.filename import parse_wheel_file, split_variant_label

__all__ = ["hash_fault", "name_fault", "specifier_fault", "version_fault", "wheel_name_fault"]

_LONGEST_FILE_NAME = 255
_LONGEST_VERSION = 128
_LONGEST_LABEL = 64
_LONGEST_SPECIFIER = 1024
_MOST_TAGS = 256

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
# The wheel file name grammar's characters; a name with any other is no wheel.
_WHEEL_NAME = re.compile(r"[A-Za-z0-9_.+!-]+\.whl")
_ASCII = re.compile(r"[!-~ ]*")
_HEX = re.compile(r"[0-9a-f]+")
# PEP 751: "hashes" keys are algorithm names from ``hashlib.algorithms_guaranteed``. The shake
# family has no fixed length, so it proves nothing here.
_HEX_LENGTHS = {
    name: 2 * hashlib.new(name, usedforsecurity=False).digest_size
    for name in sorted(hashlib.algorithms_guaranteed)
    if not name.startswith("shake_")
}


def name_fault(name: str) -> str | None:
    """Check a normalized project name or extra (PEP 503, PEP 685)."""
    if len(name) > _LONGEST_FILE_NAME or not _NAME.fullmatch(name):
        return f"expected a normalized name, found {quoted(name)}"
    return None


def version_fault(version: str) -> str | None:
    """Check a PEP 440 version."""
    return _parse_version(version)[1]


@lru_cache(maxsize=4096)
def _parse_version(text: str) -> tuple[Version | None, str | None]:
    if len(text) > _LONGEST_VERSION or not _ASCII.fullmatch(text):
        return (
            None,
            f"expected a version of at most {_LONGEST_VERSION} ASCII characters, found {quoted(text)}",
        )
    try:
        version = Version(text)
    except ValueError:
        return None, f"expected a version, found {quoted(text)}"
    if len(version.local or "") > _LONGEST_LABEL:
        return (
            None,
            f"expected a local label of at most {_LONGEST_LABEL} characters, found {quoted(text)}",
        )
    return version, None


@lru_cache(maxsize=4096)
def specifier_fault(text: str) -> str | None:
    """Check a ``requires-python``."""
    if len(text) <= _LONGEST_SPECIFIER and _ASCII.fullmatch(text):
        try:
            SpecifierSet(text)
        except ValueError:
            pass
        else:
            return None
    return f"expected a version specifier, found {quoted(text)}"


def wheel_name_fault(file_name: str, *, project: str, version: str) -> str | None:
    """Check a wheel's file name against the entry it stands in.

    The version must be the entry's own, local label included: installers refuse a lock whose
    version lacks the label its file carries.
    """
    if len(file_name) > _LONGEST_FILE_NAME or not _WHEEL_NAME.fullmatch(file_name):
        return f"expected a wheel's file name, found {quoted(file_name)}"
    plain, label = split_variant_label(file_name)
    tags = 1
    for part in plain.removesuffix(".whl").split("-")[-3:]:
        tags *= part.count(".") + 1
    if tags > _MOST_TAGS:
        return f"expected at most {_MOST_TAGS} tags, found {tags} in {quoted(file_name)}"
    try:
        if label is not None:
            # PEP 825 adds a part that packaging does not know.
            parse_wheel_file(file_name)
        found_project, found_version, _, _ = parse_wheel_filename(plain)
    except (ValueError, WheelError):
        return f"expected a wheel's file name, found {quoted(file_name)}"
    if found_project != canonicalize_name(project):
        return f"expected a wheel of {quoted(project)}, found {quoted(file_name)}"
    expected, message = _parse_version(version)
    if message is None and found_version != expected:
        return f"expected a wheel of version {quoted(version)}, found {quoted(file_name)}"
    return None


def hash_fault(algorithm: str, digest: str) -> str | None:
    """Check one hash: an algorithm that is known, and lower-case hex of its length."""
    length = _HEX_LENGTHS.get(algorithm)
    if length is None:
        return f"expected an algorithm of {', '.join(_HEX_LENGTHS)}, found {quoted(algorithm)}"
    if len(digest) != length or not _HEX.fullmatch(digest):
        return f"expected {length} lower-case hex digits, found {quoted(digest)}"
    return None
