"""`cudalock inspect`: a file, an address or a requirement, and what its bytes mean for a machine."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import cudalock
from builders import make_wheel
from cudalock.cli.main import main
from default_index_site import Site, default_index
from elf_builder import Symbol, make_library
from fatbin_builder import container, cubin_file, entry

_SCHEMA = Path(cudalock.__file__).parent / "cli" / "schemas" / "inspect-1.json"
_BLACKWELL = ["--sm", "12.0", "--driver", "590.48.01"]
_TAG = "cp312-cp312-manylinux_2_28_x86_64"
_MACHINE = ["--python", "3.12", "--platform", "manylinux_2_28_x86_64"]


def _library(*codes: bytes, needed: tuple[str, ...] = ("libcudart.so.13", "libc10.so")) -> bytes:
    return make_library(
        needed=list(needed),
        soname="_C.so",
        symbols=[Symbol(name="_ZN3c105ErrorD1Ev")],
        fatbin=b"".join(container(code) for code in codes),
    )


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    files = {
        "left/_C.so": _library(entry("cubin", 120, "a"), entry("ptx", 90, version=(9, 0))),
        "left/old.so": _library(entry("cubin", 90, "a"), needed=("libcudart.so.12",)),
    }
    return make_wheel(tmp_path, "left", "1.0", tag=_TAG, files=files)


class Command:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._flags = ["--cache-dir", str(folder / "cache")]
        self._capsys = capsys
        self.err = ""

    def __call__(self, *arguments: str) -> tuple[int, str]:
        self._capsys.readouterr()
        code = main(["inspect", *arguments, *self._flags])
        out, self.err = self._capsys.readouterr()
        return code, out

    def form(self, *arguments: str) -> dict[str, Any]:
        _, out = self(*arguments, "--format", "json")
        form: dict[str, Any] = json.loads(out)
        jsonschema.validate(form, json.loads(_SCHEMA.read_text(encoding="utf-8")))
        return form


@pytest.fixture
def inspect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path, capsys)


def test_a_file_is_told_library_by_library(
    inspect: Command, wheel: Path, golden: Callable[[str, str], None]
) -> None:
    code, out = inspect(str(wheel), *_BLACKWELL, *_MACHINE)
    assert code == 0
    golden("inspect.txt", out)
    form = inspect.form(str(wheel), *_BLACKWELL, *_MACHINE)
    assert form["filename"] == wheel.name
    assert (form["tier"], form["complete"]) == ("T4", True)
    assert form["architectures"] == ["sm_90a", "sm_120a"]
    assert form["ptx"] == ["compute_90@9.0"]
    assert form["needed"] == ["libc10.so", "libcudart.so.12", "libcudart.so.13"]
    assert form["libraries"]["left/_C.so"] == {
        "architectures": ["sm_120a"],
        "ptx": ["compute_90@9.0"],
        "needed": ["libc10.so", "libcudart.so.13"],
        "containers": 2,
        "torch_abi": "cxx",
    }
    judged = form["verdict"]["12.0"]
    assert judged["verdict"] == "in-part"
    assert judged["libraries"]["left/_C.so"]["verdict"] == "covered"
    assert judged["libraries"]["left/old.so"]["verdict"] == "none"


def test_without_a_machine_there_is_no_verdict(inspect: Command, wheel: Path) -> None:
    assert inspect.form(str(wheel))["verdict"] == {}


def test_a_wheel_of_which_nothing_runs_there_is_a_no(inspect: Command, tmp_path: Path) -> None:
    files = {"left/old.so": _library(entry("cubin", 90, "a"))}
    path = make_wheel(tmp_path, "old", "1.0", tag=_TAG, files=files)
    code, out = inspect(str(path), *_BLACKWELL)
    assert code == 1
    assert "on 12.0: nothing in it runs there" in out


def test_ptx_serves_a_driver_that_knows_its_isa_and_no_older_one(
    inspect: Command, tmp_path: Path
) -> None:
    files = {"left/_C.so": _library(entry("ptx", 90, version=(9, 2)))}
    path = make_wheel(tmp_path, "ptx", "1.0", tag=_TAG, files=files)
    verdicts = [
        inspect.form(str(path), "--sm", "12.0", "--driver-cuda", cuda)["verdict"]["12.0"]["verdict"]
        for cuda in ("13.1", "13.2")
    ]
    assert verdicts == ["nothing", "runs"]
    unknown = inspect.form(str(path), "--sm", "12.0", "--cuda", "13.0")["verdict"]["12.0"]
    assert unknown["verdict"] == "unknown"


def test_what_was_not_read_whole_is_never_called_missing(inspect: Command, wheel: Path) -> None:
    form = inspect.form(str(wheel), *_BLACKWELL, "--tier", "T1")
    assert form["verdict"]["12.0"]["verdict"] == "unknown"
    assert not form["complete"]
    assert {c["verdict"] for c in form["verdict"]["12.0"]["libraries"].values()} == {"unknown"}
    assert all(library["needed"] is None for library in form["libraries"].values())


def test_files_of_device_code_are_counted_by_what_they_are_for(
    inspect: Command, tmp_path: Path
) -> None:
    files = {
        f"left/cubins/kernel_sm{name}_{n}.cubin": cubin_file(int(name[:3]), name[3:])
        for n in range(3)
        for name in ("100f", "103a")
    }
    path = make_wheel(tmp_path, "cubins", "1.0", files=files)
    form = inspect.form(str(path), *_BLACKWELL)
    assert form["architectures"] == ["sm_100f", "sm_103a"]
    assert form["verdict"]["12.0"]["verdict"] == "nothing"
    code, out = inspect(str(path), "--sm", "10.3", "--driver", "590.48.01")
    assert code == 0
    assert "files for     sm_100f: 3" in out


def test_pure_python_has_no_device_code(inspect: Command, tmp_path: Path) -> None:
    path = make_wheel(tmp_path, "pure", "1.0")
    form = inspect.form(str(path), *_BLACKWELL)
    assert form["verdict"]["12.0"]["verdict"] == "no-device-code"


@pytest.fixture
def site(tmp_path: Path, wheel: Path) -> Iterator[Site]:
    with default_index(tmp_path / "files") as found:
        found.files["left"] = [Path(shutil.copy(wheel, found.folder))]
        yield found


def test_a_requirement_is_read_by_range_and_never_kept(
    inspect: Command, site: Site, wheel: Path, tmp_path: Path
) -> None:
    flags = ["--default-index", site.url, "--only-default-index", *_MACHINE, *_BLACKWELL]
    form = inspect.form("left>=1", *flags)
    assert form["filename"] == wheel.name
    assert len(form["sha256"]) == 64
    assert form["architectures"] == ["sm_90a", "sm_120a"]
    kept = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert all(b"left/_C.so" not in path.read_bytes() for path in kept)


def test_an_address_is_read_as_it_is(inspect: Command, site: Site, wheel: Path) -> None:
    root = site.url.removesuffix("/simple")
    assert site.server is not None
    inspect("left", "--default-index", site.url, "--only-default-index", *_MACHINE)
    address = next(path for path in site.server.paths() if path.endswith(".whl"))
    form = inspect.form(f"{root}{address}", *_BLACKWELL)
    assert (form["filename"], form["sha256"]) == (wheel.name, None)
    assert form["complete"]


def test_a_requirement_that_nothing_fits_is_asked_wrongly(inspect: Command, site: Site) -> None:
    flags = ["--default-index", site.url, "--only-default-index", "--python", "3.11"]
    code, out = inspect("left", *flags, "--platform", "manylinux_2_28_x86_64")
    assert (code, out) == (2, "")
    assert "expected a wheel of `left` for Python 3.11" in " ".join(inspect.err.split())


@pytest.mark.parametrize("content", [b"", b"PK\x05\x06", b"not a wheel" * 100])
def test_what_is_no_wheel_is_a_typed_error(
    content: bytes, inspect: Command, tmp_path: Path
) -> None:
    path = tmp_path / "left-1.0-py3-none-any.whl"
    path.write_bytes(content)
    code, out = inspect(str(path))
    assert (code, out) == (3, "")
    assert inspect.err.startswith("error[CUDA507]:")


def test_a_file_that_is_not_there_is_asked_wrongly(inspect: Command, tmp_path: Path) -> None:
    code, _ = inspect(str(tmp_path / "left-1.0-py3-none-any.whl"))
    assert code == 2
