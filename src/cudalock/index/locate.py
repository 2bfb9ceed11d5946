"""Where the data of `indices/` lies, and the strict reading that its TOML files share.

An installed wheel carries the data as ``cudalock/indices``; an editable install finds the folder
at the top of the repository. Everything in a data file is checked at once: `FaultList` collects
what is wrong and raises one `DataFileError` that lists all of it, because a person who fixes a
file wants every fault, not the first. What the keys mean belongs to the readers beside this one.
"""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from cudalock.errors import UsageError

__all__ = ["DataFileError", "FaultList", "find_indices", "parse_toml", "read_data_file"]

_FILE_LIMIT = 4 * 1024 * 1024
_PACKAGE = Path(__file__).resolve().parent.parent


class DataFileError(UsageError):
    """A data file cannot be used; ``faults`` holds every reason, each with its place."""

    code = "data-file"

    def __init__(self, faults: Iterable[str], *, where: str) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(self.faults), where=where)


class FaultList:
    """The faults found so far in one file."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.faults: list[str] = []

    def add(self, key: str, message: str) -> None:
        """Note one fault; ``key`` is the path to the value inside the file."""
        self.faults.append(f"{key}: {message}")

    def check_keys(
        self, table: Mapping[str, object], allowed: Iterable[str], key: str = ""
    ) -> None:
        """Note every key of ``table`` that is not allowed, with the nearest that is."""
        known = sorted(allowed)
        for name in table:
            if name not in known:
                self.add(f"{key}{name}", f"expected one of {', '.join(known)}{_near(name, known)}")

    def text(self, table: Mapping[str, object], name: str, key: str = "") -> str:
        """Return the non-empty text under ``name``; note a fault and return "" for the rest."""
        value = table.get(name)
        if isinstance(value, str) and value.strip():
            return value
        found = "nothing" if value is None else f"`{value!r}`"
        self.add(f"{key}{name}", f"expected a text, found {found}")
        return ""

    def texts(self, table: Mapping[str, object], name: str, key: str = "") -> tuple[str, ...]:
        """Return the list of texts under ``name``, or (); anything else is a fault."""
        value = table.get(name, [])
        if isinstance(value, list) and all(isinstance(item, str) and item for item in value):
            return tuple(value)
        self.add(f"{key}{name}", f"expected a list of texts, found `{value!r}`")
        return ()

    def raise_if_any(self) -> None:
        """Raise `DataFileError` when a fault was noted."""
        if self.faults:
            raise DataFileError(self.faults, where=self.where)


def _near(name: str, known: list[str]) -> str:
    # difflib is only needed once something is wrong.
    from difflib import get_close_matches  # noqa: PLC0415 - keeps the common path light

    near = get_close_matches(name, known, n=1)
    return f"; did you mean `{near[0]}`?" if near else ""


def find_indices() -> Path:
    """Return the folder of index data; raise `UsageError` when this installation has none.

    A built wheel carries it inside the package. In a checkout, where the package is imported from
    ``src/``, it is the top-level folder, recognised by its ``knowledge`` folder.
    """
    for folder in (_PACKAGE / "indices", _PACKAGE.parent.parent / "indices"):
        if (folder / "knowledge").is_dir():
            return folder
    raise UsageError(
        "expected the folder `indices` inside the package or at the top of the checkout",
        where=str(_PACKAGE),
    )


def read_data_file(path: Path) -> bytes:
    """Read one data file of at most 4 MiB; raise `DataFileError` when it cannot be read."""
    try:
        with path.open("rb") as file:
            data = file.read(_FILE_LIMIT + 1)
    except OSError as error:
        raise DataFileError([f"expected a readable file: {error.strerror}"], where=str(path)) from (
            error
        )
    if len(data) > _FILE_LIMIT:
        raise DataFileError([f"expected at most {_FILE_LIMIT} bytes"], where=str(path))
    return data


def parse_toml(text: str, *, where: str) -> dict[str, object]:
    """Parse TOML; raise `DataFileError` for anything that is not."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise DataFileError([f"expected TOML: {error}"], where=where) from error
