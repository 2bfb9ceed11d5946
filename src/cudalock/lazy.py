"""Names of a package that are imported when they are first used (PEP 562).

A command that is run at every commit cannot pay for rooms that it does not enter, so the packages
only say in which of their modules each name lives.
"""

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["lazy_names"]


def lazy_names(package: str, homes: "Mapping[str, tuple[str, ...]]") -> "Callable[[str], object]":
    """Return the ``__getattr__`` of a package: ``homes`` are its modules, each with its names."""
    home_of = {name: home for home, names in homes.items() for name in names}

    def find(name: str) -> object:
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{home}"), name)
        setattr(import_module(package), name, value)
        return value

    return find
