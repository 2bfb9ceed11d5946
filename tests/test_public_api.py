"""What `import cudalock` promises, and that every name a module offers is there."""

import importlib
import inspect
import typing
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

import cudalock

_SOURCE = Path(cudalock.__file__).resolve().parent

# A change here is a change for everyone who imports cudalock: it goes into CHANGELOG.md.
_PUBLIC = [
    "CheckResult",
    "ComputeCapability",
    "Conflict",
    "CudaVersion",
    "CudalockError",
    "DriverVersion",
    "HostError",
    "IndexAccessError",
    "IndexOptions",
    "InputState",
    "InvalidLockError",
    "Lock",
    "LockError",
    "LockMismatchError",
    "LockedPackage",
    "LockedWheel",
    "Machine",
    "MemorySource",
    "NoSolutionError",
    "Problem",
    "Resolution",
    "ResolutionError",
    "ResolutionStoppedError",
    "SelectedWheel",
    "Session",
    "Source",
    "Target",
    "UsageError",
    "WheelError",
    "WheelReport",
    "check",
    "detect_target",
    "inspect",
    "parse_driver_version",
    "read_lock",
    "resolve",
    "select",
    "this_python",
    "write_lock",
]


def _module_names() -> list[str]:
    names = []
    for path in sorted(_SOURCE.rglob("*.py")):
        parts = path.relative_to(_SOURCE.parent).with_suffix("").parts
        if parts[-1] not in {"__init__", "__main__"}:
            names.append(".".join(parts))
        elif parts[-1] == "__init__":
            names.append(".".join(parts[:-1]))
    return names


def _public_names(module: ModuleType) -> list[str]:
    return list(getattr(module, "__all__", ()))


def _check_annotations(value: object) -> None:
    """Resolve every annotation of a function, or of a class and its public methods."""
    if isinstance(value, FunctionType):
        typing.get_type_hints(value, include_extras=True)
    elif isinstance(value, type):
        typing.get_type_hints(value, include_extras=True)
        for name, member in vars(value).items():
            function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            if isinstance(function, FunctionType) and not name.startswith("_"):
                typing.get_type_hints(function, include_extras=True)


def test_the_package_offers_exactly_the_names_that_are_promised() -> None:
    assert sorted(_public_names(cudalock)) == _PUBLIC


def test_the_promised_names_are_what_a_person_finds_with_dir() -> None:
    assert set(_PUBLIC) <= set(dir(cudalock))


@pytest.mark.parametrize("name", [name for name in _PUBLIC if not name.startswith("__")])
def test_a_promised_name_is_there_documented_and_typed(name: str) -> None:
    value = getattr(cudalock, name)
    assert inspect.getdoc(value)
    _check_annotations(value)


@pytest.mark.parametrize("name", ["frobnicate", "api_of_old"])
def test_a_name_that_is_not_promised_is_an_attribute_error(name: str) -> None:
    with pytest.raises(AttributeError, match=name):
        getattr(cudalock, name)


@pytest.mark.parametrize("name", _module_names())
def test_every_name_a_module_offers_exists_once_and_is_documented(name: str) -> None:
    module = importlib.import_module(name)
    offered = _public_names(module)
    assert len(set(offered)) == len(offered)
    for public in offered:
        value = getattr(module, public)
        if isinstance(value, FunctionType | type):
            assert value.__doc__, f"{name}.{public} has no docstring"


@pytest.mark.parametrize("name", _module_names())
def test_every_module_says_what_it_offers(name: str) -> None:
    module = importlib.import_module(name)
    own = [
        public
        for public, value in vars(module).items()
        if not public.startswith("_")
        and isinstance(value, FunctionType | type)
        and value.__module__ == name
    ]
    assert set(own) <= set(_public_names(module))


def test_the_package_is_typed() -> None:
    assert (_SOURCE / "py.typed").is_file()
