"""Who may import whom, which library is used where, and what starting up may cost.

Every import counts, also one inside a function or under ``TYPE_CHECKING``: the layers are about
what knows of what, not about when it is loaded.
"""

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

_SOURCE = Path(__file__).resolve().parent.parent / "src" / "cudalock"

# Top to bottom: a module imports its own room and rooms above it. The package itself, which only
# hands out public names, stands between `api` and `cli`.
_ORDER = (
    "errors", "lazy", "memo", "cuda", "wheel", "host", "project", "index", "resolver", "explain", "lock",
    "verify", "solving", "session", "targets", "api", "", "cli", "__main__",
)  # fmt: skip
_RANK = {room: rank for rank, room in enumerate(_ORDER)}
_ALONE = {"errors", "lazy", "memo"}
_STRANGERS = ({"index", "resolver"}, {"explain", "lock"})

# Which modules may use what is heavy, or reaches outside the process. An entry that ends in a
# slash is a room.
_ONLY_IN = {
    "httpx": ("index/transport.py", "index/client.py"),
    "selectolax": ("index/",),
    "msgspec": ("index/",),
    "resolvelib": ("resolver/engine.py",),
    "rich": ("cli/",),
    "argparse": ("cli/",),
    "shtab": ("cli/",),
    "uv": ("cli/default_index.py",),
    "subprocess": (
        "host/this_machine.py",
        "host/source_answers.py",
        "cli/default_index.py",
        "cli/environment.py",
    ),
    "pynvml": ("host/this_machine.py", "host/source_answers.py"),
    "ctypes": ("host/this_machine.py",),
    "truststore": ("index/",),
    "platformdirs": ("cli/",),
    "tomlkit": ("project/edit.py",),
    "requests": (),
    "urllib3": (),
    "pip": (),
    "logging": ("cli/",),
}
_NAMELESS = {"utils", "util", "common", "misc", "models", "types", "helpers", "base", "core"}
# Loaded by what is asked for, never by starting up.
_HEAVY = {
    "asyncio", "httpx", "msgspec", "packaging.metadata", "pynvml", "resolvelib", "rich",
    "selectolax", "subprocess", "tomlkit", "uv",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Module:
    name: str
    path: Path
    tree: ast.Module
    lines: int

    @property
    def place(self) -> str:
        return self.path.relative_to(_SOURCE).as_posix()

    @property
    def room(self) -> str:
        parts = self.name.split(".")
        return parts[1] if len(parts) > 1 else ""


def _read_modules() -> dict[str, _Module]:
    modules = {}
    for path in sorted(_SOURCE.rglob("*.py")):
        parts = list(path.relative_to(_SOURCE.parent).with_suffix("").parts)
        if parts[-1] == "__init__":
            parts.pop()
        text = path.read_text(encoding="utf-8")
        name = ".".join(parts)
        modules[name] = _Module(
            name=name, path=path, tree=ast.parse(text), lines=len(text.splitlines())
        )
    return modules


_MODULES = _read_modules()


def _imports(module: _Module) -> Iterator[tuple[str, int]]:
    """List what a module imports, each with its line; names of our own as modules where they are."""
    for node in ast.walk(module.tree):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield alias.name, node.lineno
            case ast.ImportFrom(level=0, module=str(origin), names=names):
                for alias in names:
                    full = f"{origin}.{alias.name}"
                    yield (full if full in _MODULES else origin), node.lineno
            case ast.ImportFrom():
                pytest.fail(f"{module.place}:{node.lineno}: expected an absolute import")
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__")
                | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(origin)), *_],
            ):
                yield origin, node.lineno
            case _:
                pass


def _may_import(room: str, wanted: str) -> bool:
    if room == wanted:
        return True
    if room in _ALONE or any({room, wanted} == pair for pair in _STRANGERS):
        return False
    return _RANK[wanted] < _RANK[room]


def _allowed(place: str, where: tuple[str, ...]) -> bool:
    return any(place.startswith(part) if part.endswith("/") else place == part for part in where)


def test_every_module_stands_in_a_room_that_has_a_rank() -> None:
    assert {module.room for module in _MODULES.values()} - set(_ORDER) == set()


def test_a_module_imports_only_its_own_room_and_rooms_above() -> None:
    wrong = []
    for module in _MODULES.values():
        for name, line in _imports(module):
            first, _, rest = name.partition(".")
            room = rest.partition(".")[0]
            if first == "cudalock" and not _may_import(module.room, room):
                wrong.append(f"{module.place}:{line}: `{module.room}` imports `{name}`")
    assert wrong == []


def test_every_import_of_our_own_names_a_module_that_exists() -> None:
    wrong = [
        f"{module.place}:{line}: {name}"
        for module in _MODULES.values()
        for name, line in _imports(module)
        if name.partition(".")[0] == "cudalock" and name not in _MODULES
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("room", "wanted", "allowed"),
    [
        ("cli", "errors", True),
        ("api", "cuda", True),
        ("explain", "resolver", True),
        ("resolver", "resolver", True),
        ("cli", "", True),
        ("cuda", "memo", True),
        ("cuda", "wheel", False),
        ("resolver", "index", False),
        ("index", "resolver", False),
        ("lock", "explain", False),
        ("errors", "memo", False),
        ("memo", "errors", False),
        ("api", "", False),
        ("lock", "cli", False),
    ],
)
def test_the_rule_says_what_the_architecture_says(room: str, wanted: str, allowed: bool) -> None:
    assert _may_import(room, wanted) is allowed


def test_heavy_and_outward_libraries_stay_where_they_belong() -> None:
    wrong = []
    for module in _MODULES.values():
        for name, line in _imports(module):
            where = _ONLY_IN.get(name.partition(".")[0])
            if where is not None and not _allowed(module.place, where):
                wrong.append(f"{module.place}:{line}: {name} belongs in {where}")
    assert wrong == []


def _outward_uses(module: _Module) -> Iterator[tuple[str, int]]:
    """List uses of the terminal, the environment and the wall clock."""
    for node in ast.walk(module.tree):
        match node:
            case ast.Call(func=ast.Name(id="print" | "input" | "breakpoint" as name)):
                yield name, node.lineno
            case ast.Attribute(value=ast.Name(id="sys"), attr="stdout" | "stderr" | "stdin"):
                yield f"sys.{node.attr}", node.lineno
            case ast.Attribute(value=ast.Name(id="os"), attr="environ" | "getenv" | "environb"):
                yield f"os.{node.attr}", node.lineno
            # A clock may be the default of an argument; what counts is that it is not called.
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="time"), attr="time" | "time_ns")
                | ast.Attribute(attr="now" | "today" | "utcnow")
            ):
                yield ast.unparse(node), node.lineno
            case ast.ImportFrom(module="os" | "sys" | "time", names=names):
                for alias in names:
                    if alias.name in {"environ", "getenv", "stdout", "stderr", "stdin", "time"}:
                        yield f"{node.module}.{alias.name}", node.lineno
            case _:
                pass


def test_only_the_command_line_prints_and_reads_the_environment_and_the_clock() -> None:
    wrong = [
        f"{module.place}:{line}: {use}"
        for module in _MODULES.values()
        if module.room not in {"cli", "__main__"}
        for use, line in _outward_uses(module)
    ]
    assert wrong == []


def test_no_module_is_longer_than_four_hundred_lines() -> None:
    assert [f"{m.place}: {m.lines}" for m in _MODULES.values() if m.lines > 400] == []


def test_every_module_is_named_after_an_idea() -> None:
    assert [m.place for m in _MODULES.values() if m.path.stem in _NAMELESS] == []


def test_no_two_modules_import_each_other() -> None:
    graph = {
        name: {found for found, _ in _imports(module) if found in _MODULES} - {name}
        for name, module in _MODULES.items()
    }
    # A package's `__init__` gathers its modules; it is no part of a cycle among them.
    packages = {m.name for m in _MODULES.values() if m.path.stem == "__init__"}
    left = {name: found - packages for name, found in graph.items() if name not in packages}
    while ready := [name for name, found in left.items() if not found & left.keys()]:
        for name in ready:
            del left[name]
    assert sorted(left) == []


_TELL = (
    "import atexit, sys;"
    "atexit.register(lambda: sys.stderr.write('\\nloaded: ' + ' '.join(sys.modules)));"
)


def _loaded_by(code: str, *arguments: str) -> set[str]:
    """Run code in a Python of its own and return the names of all modules it loaded."""
    run = subprocess.run(
        [sys.executable, "-c", _TELL + code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    _, found, names = run.stderr.rpartition("loaded: ")
    assert found, "the process ended without telling what it had loaded"
    return set(names.split())


def _heavy_in(loaded: set[str]) -> set[str]:
    return {name for name in loaded if name in _HEAVY or name.partition(".")[0] in _HEAVY}


def test_the_guard_sees_a_heavy_import() -> None:
    assert "asyncio" in _heavy_in(_loaded_by("import asyncio"))


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert _heavy_in(_loaded_by("import cudalock")) == set()


# How a command starts: as the installed script does, and by `python -m`.
_STARTS = {
    "cudalock.cli.main": "from cudalock.cli.main import main; sys.exit(main())",
    "cudalock.__main__": "import runpy; runpy.run_module('cudalock', run_name='__main__')",
}


@pytest.mark.parametrize("code", [_STARTS[name] for name in _STARTS if name in _MODULES])
def test_starting_the_command_loads_nothing_heavy(code: str) -> None:
    loaded = _loaded_by(code, "--version")
    assert "cudalock.cli.main" in loaded
    assert _heavy_in(loaded) == set()


_IMPORT_EACH_FIRST = """
import importlib
for name in sys.argv[1:]:
    for loaded in [loaded for loaded in sys.modules if loaded.partition(".")[0] == "cudalock"]:
        del sys.modules[loaded]
    importlib.import_module(name)
"""


def test_no_module_relies_on_another_having_been_imported_before_it() -> None:
    names = [module.name for module in _MODULES.values() if module.room != "__main__"]
    assert names[-1] in _loaded_by(_IMPORT_EACH_FIRST, *names)


@pytest.mark.parametrize("room", ["", ".cuda", ".host", ".lock", ".project", ".wheel"])
def test_a_name_that_is_loaded_when_used_is_not_hidden_by_a_module(room: str) -> None:
    package = importlib.import_module(f"cudalock{room}")
    folder = _SOURCE.joinpath(*room.split(".")[1:])
    modules = {path.stem for path in folder.glob("*.py")} | {
        path.name for path in folder.iterdir() if path.is_dir()
    }
    assert modules & set(package.__all__) == set()
