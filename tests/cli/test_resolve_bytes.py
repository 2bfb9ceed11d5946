"""`cudalock resolve` reads the wheels it chose: from bytes on a server to the lock, end to end."""

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import cudalock
from archive_builder import CENTRAL, edit
from cudalock.cli.main import main
from default_index_site import Site, default_index
from elf_builder import Symbol, make_library
from fatbin_builder import container, entry

_TAG = "cp312-cp312-manylinux_2_28_x86_64"
_BOX = ["--python", "3.12", "--platform", "linux-x86_64", "--driver", "590.48.01", "--sm", "12.0"]
_SCHEMA = Path(cudalock.__file__).parent / "cli" / "schemas" / "resolve-1.json"
_SYMBOL = "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with default_index(tmp_path / "files") as found:
        yield found


@pytest.fixture
def run(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, dict[str, Any]]]:
    def resolve(*arguments: str, lock: str = "pylock.toml") -> tuple[int, dict[str, Any]]:
        flags = ["--default-index", site.url, "--only-default-index", "--format", "json"]
        flags += ["--cache-dir", str(tmp_path / "cache"), "-o", str(tmp_path / lock)]
        capsys.readouterr()
        code = main(["resolve", *arguments, *_BOX, *flags])
        form = json.loads(capsys.readouterr().out)
        jsonschema.validate(form, json.loads(_SCHEMA.read_text("utf-8")))
        return code, form

    return resolve


Run = Callable[..., tuple[int, dict[str, Any]]]


def _extension(*needed: str, code: tuple[tuple[int, str], ...] = (), torch: str = "") -> bytes:
    fatbin = container(*(entry("cubin", *piece) for piece in code)) if code else b""
    symbols = [Symbol(name=torch)] if torch else [Symbol(name="memcpy")]
    return make_library(needed=needed, fatbin=fatbin, symbols=symbols)


def _add(site: Site, name: str, version: str, files: Mapping[str, bytes]) -> Path:
    return site.add(name, version, tag=_TAG, files=files)


def _told(tmp_path: Path, project: str, lock: str = "pylock.toml") -> dict[str, Any]:
    table = tomllib.loads((tmp_path / lock).read_text("utf-8"))
    (package,) = (each for each in table["packages"] if each["name"] == project)
    (told,) = package["tool"]["cudalock"].values()
    found: dict[str, Any] = told
    return found


def test_the_lock_says_what_was_proved_by_the_bytes(site: Site, run: Run, tmp_path: Path) -> None:
    _add(
        site,
        "kernel",
        "1.0",
        {
            "kernel/_C.so": _extension("libcudart.so.13", code=((90, "a"), (120, ""))),
            "kernel/_D.so": _extension("libcudart.so.13", code=((90, "a"),)),
        },
    )
    code, form = run("kernel")
    assert code == 0
    told = _told(tmp_path, "kernel")
    assert told["read"] == "T4"
    assert told["runtime"] == 13
    proofs = told["proofs"]
    assert proofs["cuda-runtime"]["state"] == "proven"
    assert "NEEDED libcudart.so.13 (kernel/_C.so in kernel-1.0-" in proofs["cuda-runtime"]["by"]
    assert proofs["gpu 12.0"]["state"] == "proven"
    assert "kernel/_C.so 1 of 1, kernel/_D.so 0 of 1" in proofs["gpu 12.0"]["by"]
    variant = form["packages"][0]["wheels"][0]["variant"]
    assert variant["tier"] == told["read"]
    as_data = {p["rule"]: {"state": p["state"], "by": p["by"]} for p in variant["proofs"]}
    assert as_data == proofs
    (warning,) = (each for each in form["warnings"] if each["code"] == "gpu-in-part")
    assert "kernel/_D.so (holds sm_90a)" in warning["message"]


def test_a_second_run_reads_nothing_and_writes_the_same_bytes(
    site: Site, run: Run, tmp_path: Path
) -> None:
    _add(site, "kernel", "1.0", {"kernel/_C.so": _extension("libcudart.so.13")})
    assert run("kernel")[0] == 0
    asked = [path for path in site.asked if path.endswith(".whl")]
    first = (tmp_path / "pylock.toml").read_bytes()
    (tmp_path / "pylock.toml").unlink()
    assert run("kernel")[0] == 0
    assert [path for path in site.asked if path.endswith(".whl")] == asked
    assert (tmp_path / "pylock.toml").read_bytes() == first


def test_a_wheel_that_loads_another_runtime_is_refused_by_its_file(site: Site, run: Run) -> None:
    _add(site, "kernel", "1.0", {"kernel/_C.so": _extension("libcudart.so.12")})
    code, form = run("kernel", "--no-remedies")
    assert code == 1
    texts = [fact["text"] for fact in form["conflict"]["facts"]]
    assert any("loads CUDA runtime 12" in text for text in texts), texts
    sources = " ".join(str(fact["source"]) for fact in form["conflict"]["facts"])
    assert "NEEDED libcudart.so.12 in kernel/_C.so in kernel-1.0-" in sources


def test_the_bytes_of_the_newest_lead_to_an_older_release(
    site: Site, run: Run, tmp_path: Path
) -> None:
    _add(site, "kernel", "2.0", {"kernel/_C.so": _extension("libcudart.so.12")})
    _add(site, "kernel", "1.0", {"kernel/_C.so": _extension("libcudart.so.13")})
    code, form = run("kernel")
    assert (code, [p["version"] for p in form["packages"]]) == (0, ["1.0"])
    assert _told(tmp_path, "kernel")["proofs"]["cuda-runtime"]["state"] == "proven"


def test_symbols_are_compared_with_what_the_chosen_torch_exports(
    site: Site, run: Run, tmp_path: Path
) -> None:
    # The exports of torch 2.11.0 come along with cudalock, and this torch is taken for it.
    _add(site, "torch", "2.11.0", {"torch/_C.so": _extension("libcudart.so.13")})
    _add(site, "kernel", "1.0", {"kernel/_C.so": _extension(torch="aoti_torch_new_tensor_handle")})
    assert run("kernel", "torch==2.11.0")[0] == 0
    proof = _told(tmp_path, "kernel")["proofs"]["libtorch"]
    assert proof["state"] == "proven"
    assert "every symbol it needs is exported (torch-2.11.0-" in proof["by"]
    _add(site, "other", "1.0", {"other/_C.so": _extension(torch="_ZN3c1012no_such_nameEv")})
    code, form = run("other", "torch==2.11.0", "--no-remedies")
    assert code == 1
    texts = " ".join(fact["text"] for fact in form["conflict"]["facts"])
    assert "needs `c10::no_such_name`, which torch 2.11.0 does not export" in texts


def test_a_wheel_whose_bytes_lie_is_locked_as_unknown_with_the_reason(
    site: Site, run: Run, tmp_path: Path
) -> None:
    path = _add(site, "kernel", "1.0", {"kernel/_C.so": _extension("libcudart.so.12")})
    path.write_bytes(edit(path.read_bytes(), CENTRAL, 16, "<I", 0x12345678))
    for _ in range(2):
        assert run("kernel")[0] == 0
        told = _told(tmp_path, "kernel")
        assert "read" not in told
        assert told["proofs"]["cuda-runtime"]["state"] == "unknown"
        assert "not read: " in told["proofs"]["cuda-runtime"]["by"]
        assert "kernel/_C.so" in told["proofs"]["cuda-runtime"]["by"]


def test_nothing_is_read_without_being_wanted(site: Site, run: Run, tmp_path: Path) -> None:
    _add(site, "kernel", "1.0", {"kernel/_C.so": _extension("libcudart.so.12")})
    assert run("kernel", "--verify-sm", "off")[0] == 0
    assert "read" not in _told(tmp_path, "kernel")
    # What an earlier run read counts all the same.
    assert run("kernel", "--no-remedies")[0] == 1
    assert run("kernel", "--verify-sm", "off", "--no-remedies")[0] == 1


def test_strict_refuses_a_library_without_the_gpu(site: Site, run: Run) -> None:
    _add(
        site,
        "kernel",
        "1.0",
        {
            "kernel/_C.so": _extension("libcudart.so.13", code=((120, ""),)),
            "kernel/_D.so": _extension("libcudart.so.13", code=((90, "a"),)),
        },
    )
    assert run("kernel")[0] == 0
    code, form = run("kernel", "--verify-sm", "strict", "--no-remedies")
    assert code == 1
    texts = " ".join(fact["text"] for fact in form["conflict"]["facts"])
    assert "holds nothing for sm_120 in kernel/_D.so (sm_90a)" in texts


def test_a_name_that_would_control_a_terminal_does_not(
    site: Site, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "kernel/\x1b[2J\x1b]0;x\x07.so"
    _add(site, "kernel", "1.0", {name: _extension("libcudart.so.12", code=((90, ""),))})
    assert run("kernel", "--no-remedies")[0] == 1
    flags = ["--default-index", site.url, "--only-default-index"]
    flags += ["--cache-dir", str(tmp_path / "cache"), "-o", str(tmp_path / "pylock.x.toml")]
    assert main(["resolve", "kernel", "--no-remedies", *_BOX, *flags]) == 1
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err
    assert "NEEDED libcudart.so.12" in shown.out + shown.err
