"""What is installed in an environment: a virtual environment, its Python, or a folder of packages."""

from importlib.metadata import distributions
from pathlib import Path

from packaging.utils import canonicalize_name

from cudalock.errors import UsageError

__all__ = ["read_environment"]


def read_environment(path: str) -> dict[str, str]:
    """Return the distributions of an environment: versions by normalised name.

    ``path`` is a virtual environment, its Python, or a folder that holds ``*.dist-info``. Nothing of
    it is run. Raises `UsageError` where there is none.
    """
    given = Path(path)
    root = given.parent.parent if given.is_file() else given
    folders = [
        *root.glob("lib/python3*/site-packages"),
        *root.glob("Lib/site-packages"),
    ] or [root]
    if not any(any(folder.glob("*.dist-info")) for folder in folders):
        raise UsageError(
            "expected a virtual environment, its Python, or a folder with *.dist-info, found none",
            where=path,
            flag="--env",
        )
    found: dict[str, str] = {}
    for distribution in distributions(path=[str(folder) for folder in folders]):
        name = distribution.metadata["Name"]
        if name:
            found.setdefault(str(canonicalize_name(name)), distribution.version)
    return found
