"""Wheels read from end to end, as deep as asked: what each depth tells and what it costs."""

import os
import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from archive_builder import CENTRAL, edit, make_zip
from builders import make_wheel
from cudalock.cuda import ComputeCapability, CudaVersion
from cudalock.errors import WheelError
from cudalock.wheel.contents import WheelContents, external_needs, inspect_wheel
from cudalock.wheel.coverage import coverage_of, loose_coverage
from cudalock.wheel.library import Library
from cudalock.wheel.library_names import graft_of, is_library_name, loose_kind
from cudalock.wheel.owned_paths import OwnedPath
from cudalock.wheel.range_source import BytesSource, FileSource
from cudalock.wheel.reading import Depth, ReadingLimits
from elf_builder import Symbol, make_library
from fatbin_builder import container, cubin_file, entry

_TARGET = ComputeCapability(12, 0)
_DRIVER = CudaVersion(13, 1)
_NOISE = random.Random(7)  # noqa: S311 - bytes that do not pack, not a secret


def _noise(count: int) -> bytes:
    return _NOISE.randbytes(count)


def _kernels(*numbers: tuple[int, str], size: int = 100_000) -> bytes:
    return container(*(entry("cubin", n, s, payload=_noise(size)) for n, s in numbers))


def _inspect(
    files: Mapping[str, bytes],
    depth: Depth = "full",
    *,
    targets: tuple[ComputeCapability, ...] = (_TARGET,),
    limits: ReadingLimits | None = None,
) -> WheelContents:
    return inspect_wheel(
        BytesSource(make_zip(files.items()), where="left.whl"),
        depth=depth,
        targets=targets,
        driver_cuda=_DRIVER,
        limits=limits,
    )


def _one(contents: WheelContents) -> Library:
    (library,) = contents.libraries
    return library


def test_a_wheel_on_disk_is_read_whole(tmp_path: Path) -> None:
    library = make_library(
        needed=["libc10.so", "libcudart.so.13"],
        soname="_C.so",
        symbols=[Symbol(name="_ZN3c105ErrorD1Ev")],
        fatbin=_kernels((90, "a"), (120, "a")),
        relocatable=container(entry("ptx", 90)),
    )
    path = make_wheel(
        tmp_path, "left", "1.0", tag="cp312-cp312-linux_x86_64", files={"left/_C.so": library}
    )
    with path.open("rb") as file:
        contents = inspect_wheel(FileSource(file, where=path.name), depth="full")
    found = _one(contents)
    assert contents.complete
    assert contents.size == path.stat().st_size
    assert found.path == "left/_C.so"
    assert (found.kind, found.seen, found.size) == ("elf", "whole", len(library))
    assert found.needed == frozenset({"libc10.so", "libcudart.so.13"})
    assert found.needed_exact
    assert found.torch is not None
    assert found.torch.style == "cxx"
    assert found.code.containers == 2
    assert coverage_of(found, _TARGET, _DRIVER).verdict == "covered"
    assert {owned.path for owned in contents.paths} >= {"left/_C.so", "left-1.0.dist-info/RECORD"}


_SYMBOLS = [Symbol(name="cudaLaunchKernel"), Symbol(name="memcpy"), Symbol(name="torch_x")]
_BIG = make_library(
    symbols=_SYMBOLS,
    needed=["libcudart.so.13"],
    fatbin=_kernels((90, "")) + _kernels((120, "")) + _kernels((90, "")),
    rodata=_noise(300_000),
)


def test_each_depth_reads_more_and_tells_more() -> None:
    files = {"left/_C.so": _BIG, "left/x.py": b"x = 1\n"}
    read = {}
    for depth in ("names", "needs", "presence", "full"):
        contents = _inspect(files, depth)
        library = _one(contents)
        read[depth] = contents.bytes_read
        assert contents.complete is (depth == "full")
        match depth:
            case "names":
                assert (library.seen, library.kind, library.needed) == ("nothing", "unread", None)
            case "needs":
                assert (library.seen, library.needed_exact) == ("head", False)
            case "presence":
                assert (library.seen, library.needed_exact) == ("part", False)
                assert coverage_of(library, _TARGET, _DRIVER).verdict == "present"
            case _:
                assert (library.seen, library.needed_exact) == ("whole", True)
                coverage = coverage_of(library, _TARGET, _DRIVER)
                assert (coverage.verdict, coverage.served, coverage.units) == ("partial", 1, 3)
        if depth != "names":
            assert library.needed == frozenset({"libcudart.so.13"})
    # The directory is part of the last 64 KiB, which are read first.
    heads = {depth: count - read["names"] for depth, count in read.items()}
    assert heads["needs"] <= 128 * 1024 < heads["presence"] < heads["full"]
    assert heads["presence"] < 600_000


def test_what_was_not_seen_in_a_part_is_never_called_absent() -> None:
    for depth in ("names", "needs", "presence"):
        contents = _inspect({"_C.so": _BIG}, depth, targets=())
        verdict = coverage_of(_one(contents), ComputeCapability(10, 0), _DRIVER).verdict
        # Without a target nothing ends the reading early.
        assert verdict == ("none" if depth == "presence" else "unknown")


def test_every_target_must_be_seen_before_reading_ends() -> None:
    both = (_TARGET, ComputeCapability(9, 0))
    assert _one(_inspect({"_C.so": _BIG}, "presence", targets=both)).seen == "part"
    none = (_TARGET, ComputeCapability(10, 0))
    assert _one(_inspect({"_C.so": _BIG}, "presence", targets=none)).seen == "whole"


def test_a_library_without_device_code_is_read_to_its_end_for_presence() -> None:
    library = make_library(needed=["libcuda.so.1"], rodata=_noise(200_000))
    found = _one(_inspect({"_C.so": library}, "presence"))
    assert found.seen == "whole"
    assert coverage_of(found, _TARGET, _DRIVER).verdict == "no-device-code"


@pytest.mark.parametrize("moved", ["end", "before-dynamic"])
def test_moved_names_are_read_from_the_end_while_the_budget_lasts(moved: str) -> None:
    files = {
        f"{name}.so": make_library(
            needed=[f"lib{name}.so.1"],
            symbols=_SYMBOLS,
            moved=moved,  # type: ignore[arg-type]
            rodata=_noise(100_000),
            fatbin=_kernels((120, "")),
        )
        for name in "ab"
    }
    for depth in ("needs", "presence"):
        enough = _inspect(files, depth)
        found = [sorted(library.needed or ()) for library in enough.libraries]
        assert found == [["liba.so.1"], ["libb.so.1"]]
        short = _inspect(files, depth, limits=ReadingLimits(moved=220_000))
        first, second = short.libraries
        assert first.needed == frozenset({"liba.so.1"})
        assert second.needed is None
        assert second.seen in ("head", "part")


def test_a_head_without_tables_is_given_up_at_its_bound() -> None:
    library = make_library(needed=["liba.so"], padding=200_000)
    limits = ReadingLimits(head=65_536, moved=0)
    assert _one(_inspect({"_C.so": library}, "needs", limits=limits)).needed is None
    assert _one(_inspect({"_C.so": library}, "needs")).needed == frozenset({"liba.so"})


def test_headers_far_behind_the_bound_of_a_head_are_not_waited_for() -> None:
    library = bytearray(make_library(needed=["liba.so"], rodata=_noise(600_000)))
    library[32:40] = (500_000).to_bytes(8, "little")
    limits = ReadingLimits(head=65_536, moved=0)
    for depth in ("needs", "presence"):
        found = _one(_inspect({"_C.so": bytes(library)}, depth, limits=limits))
        assert found.needed is None
        assert found.code.containers == 0


def test_a_library_does_not_need_itself() -> None:
    library = make_library(needed=["libc.so.6"], soname="libcudart.so.13", rodata=_noise(200_000))
    for name in ("nvidia/cu13/lib/libcudart.so.13", "left.libs/libcudart-3eda8113.so.13"):
        assert _one(_inspect({name: library}, "needs")).needed == frozenset({"libc.so.6"})


def test_the_same_library_under_three_names_is_read_once() -> None:
    files = {f"lib/m.so{end}": _BIG for end in ("", ".0", ".0.6.0")}
    contents = _inspect(files)
    first, *others = contents.libraries
    assert [library.copy_of for library in contents.libraries] == [None, first.path, first.path]
    assert all(other.code == first.code and other.whole for other in others)
    assert contents.complete
    assert contents.bytes_read < 1.5 * contents.size / 3 + 65_633


def test_grafted_libraries_are_told_by_the_name_they_had() -> None:
    files = {
        "left/_C.so": make_library(
            needed=["libcudart-3eda8113.so.13", "libnvjpeg.1a359ba7.so.13", "libc10.so"]
        ),
        "left.libs/libcudart-3eda8113.so.13": make_library(soname="libcudart-3eda8113.so.13"),
        "left.libs/libother.so": make_library(soname="libnvjpeg.1a359ba7.so.13"),
    }
    contents = _inspect(files)
    library = next(lib for lib in contents.libraries if lib.path == "left/_C.so")
    assert library.grafted == (
        ("libcudart-3eda8113.so.13", "libcudart.so.13"),
        ("libnvjpeg.1a359ba7.so.13", "libnvjpeg.so.13"),
    )
    assert external_needs(contents, library) == frozenset({"libc10.so"})
    unread = _inspect(files, "names")
    assert external_needs(unread, unread.libraries[0]) is None


@pytest.mark.parametrize(
    ("name", "original"),
    [
        ("libcudart.3eda8113.so.13", "libcudart.so.13"),
        ("libnvjpeg-1a359ba7.so.13.0.1.86", "libnvjpeg.so.13.0.1.86"),
        ("libz.7dbeb23c.so", "libz.so"),
        ("libcudart.so.13", None),
        ("libcudart-3eda811.so.13", None),
        ("libcudart-3edag113.so.13", None),
        ("cudart-3eda8113.so.13", None),
    ],
)
def test_a_graft_is_known_by_its_eight_digits(name: str, original: str | None) -> None:
    assert graft_of(name) == original


@pytest.mark.parametrize(
    ("name", "native"),
    [
        ("left/_C.cpython-312-x86_64-linux-gnu.so", True),
        ("lib/libcudart.so.13", True),
        ("lib/libleft.so.1.2.3", True),
        ("left/_C.cp312-win_amd64.pyd", True),
        ("left/left.DLL", True),
        ("left/kernels.fatbin", True),
        ("left/x.py", False),
        ("left/also.txt", False),
        ("left/x.so/readme.md", False),
    ],
)
def test_native_files_are_known_by_name(name: str, native: bool) -> None:
    assert is_library_name(name) is native
    assert loose_kind(name) is None


def test_what_is_no_library_of_ours_is_recognised_and_stays_unknown() -> None:
    foreign = bytearray(make_library(rodata=_noise(200_000)))
    foreign[4] = 1
    damaged = b"\x7fELF" + b"\xff" * 200_000
    files = {
        "a.pyd": b"MZ" + _noise(300_000),
        "b.so": bytes(foreign),
        "c.so": damaged,
        "d.so": b"INPUT(libleft.so.1)\n",
        "e.so": b"",
        "f.so": b"\x7fELF",
    }
    contents = _inspect(files)
    kinds = [library.kind for library in contents.libraries]
    assert kinds == ["windows", "foreign", "damaged", "other", "other", "damaged"]
    assert not contents.complete
    for library in contents.libraries:
        assert library.needed is None
        assert coverage_of(library, _TARGET, _DRIVER).verdict == "unknown"


def test_a_file_of_containers_is_read_as_one() -> None:
    fatbin = _kernels((90, ""), (120, "")) + _kernels((120, "f"))
    library = _one(_inspect({"left/kernels.fatbin": fatbin}))
    assert (library.kind, library.code.containers) == ("fatbin", 2)
    assert coverage_of(library, _TARGET, _DRIVER).verdict == "covered"
    assert _one(_inspect({"k.fatbin": fatbin}, "needs")).seen == "head"
    assert _one(_inspect({"k.fatbin": fatbin}, "presence")).seen == "part"
    cut = _one(_inspect({"k.fatbin": fatbin[:5000]}))
    assert coverage_of(cut, _TARGET, _DRIVER).verdict == "unknown"


_LOOSE = {
    "k/fmhaSm100fKernel.cubin": cubin_file(100, "f"),
    "k/gemm.cubin": cubin_file(100),
    "k/noted.cubin": cubin_file(120, note="ptxas -arch sm_120a -v ") + bytes(5000),
    "k/odd_sm_90.cubin": cubin_file(80),
    "k/old_sm_90a.cubin": cubin_file(90, "a", abi="old"),
    "k/broken_sm_90.cubin": b"no cubin",
    "k/jit.ptx": b".version 8.7\n.target sm_90\n" + bytes(5000),
    "k/jit_sm_80.ptx": b"no ptx",
}


def test_files_of_device_code_are_told_by_their_names_and_heads() -> None:
    by_name = {code.path: str(code.code) for code in _inspect(_LOOSE, "names").loose}
    assert by_name == {
        "k/fmhaSm100fKernel.cubin": "sm_100f",
        "k/gemm.cubin": "None",
        "k/noted.cubin": "None",
        "k/odd_sm_90.cubin": "sm_90",
        "k/old_sm_90a.cubin": "sm_90a",
        "k/broken_sm_90.cubin": "sm_90",
        "k/jit.ptx": "None",
        "k/jit_sm_80.ptx": "None",
    }
    contents = _inspect(_LOOSE)
    whole = {code.path: (str(code.code), code.anomaly) for code in contents.loose}
    assert whole["k/fmhaSm100fKernel.cubin"] == ("sm_100f", "")
    assert whole["k/gemm.cubin"] == ("sm_100?", "")
    assert whole["k/noted.cubin"] == ("sm_120a", "")
    assert whole["k/odd_sm_90.cubin"] == ("sm_80", "named for sm_90, and written for sm_80")
    assert whole["k/old_sm_90a.cubin"] == ("sm_90a", "")
    assert whole["k/jit.ptx"] == ("compute_90@8.7", "")
    for name in ("k/broken_sm_90.cubin", "k/jit_sm_80.ptx"):
        assert whole[name] == ("None", "a file of device code that does not begin as one")
    assert contents.complete
    assert loose_coverage(contents.loose, _TARGET, _DRIVER).verdict == "present"


def test_a_note_that_names_another_number_is_not_believed() -> None:
    files = {"k.cubin": cubin_file(120, note="-arch sm_90a "), "l.cubin": cubin_file(120)}
    assert [str(code.code) for code in _inspect(files).loose] == ["sm_120?", "sm_120?"]


def test_unnamed_files_are_read_as_far_as_the_depth_allows() -> None:
    files = {f"k{number:03}.cubin": cubin_file(100) for number in range(50)}
    files["named_sm_90.cubin"] = cubin_file(90)
    read = {
        depth: [code.read for code in _inspect(files, depth).loose]
        for depth in ("names", "needs", "presence", "full")
    }
    assert [sum(found) for found in read.values()] == [0, 32, 50, 51]
    assert read["presence"][-1] is False


def test_paths_are_those_an_installer_would_write() -> None:
    files = {
        "left/x.py": b"1",
        "left-1.data/purelib/left/y.py": b"2",
        "left-1.data/platlib/left/z.so": b"3",
        "left-1.data/data/share/a": b"4",
        "left-1.data/scripts/run": b"5",
        "left-1.data/headers/a.h": b"6",
        "left/": b"",
        "../out.py": b"",
        "/abs.py": b"",
        "a//b.py": b"",
        "c:/d.py": b"",
        "e\\f.py": b"",
    }
    contents = _inspect(files, "names")
    assert [(owned.scheme, owned.path) for owned in contents.paths] == [
        ("data", "share/a"),
        ("headers", "a.h"),
        ("lib", "left/x.py"),
        ("lib", "left/y.py"),
        ("lib", "left/z.so"),
        ("scripts", "run"),
    ]
    assert len(contents.anomalies) == 5
    assert all("leaves its folder" in anomaly for anomaly in contents.anomalies)


def test_one_path_with_other_bytes_is_told_apart() -> None:
    def owned(data: bytes) -> tuple[OwnedPath, ...]:
        return _inspect({"nvidia/nccl/lib/libnccl.so.2": data}, "names").paths

    assert owned(b"cu12") != owned(b"cu13")
    assert owned(b"cu12") == owned(b"cu12")


def test_unsafe_paths_are_counted_when_they_are_many() -> None:
    contents = _inspect({f"../{number}": b"" for number in range(100)}, "names")
    assert len(contents.anomalies) == 17
    assert contents.anomalies[-1] == "84 more such paths"


def test_a_library_whose_bytes_are_not_what_the_directory_says_is_an_error() -> None:
    data = make_zip([("_C.so", make_library())])
    for changed, words in (
        (edit(data, CENTRAL, 16, "<I", 1), "checksum"),
        (edit(data, CENTRAL, 8, "<H", 1), "encrypted"),
    ):
        with pytest.raises(WheelError, match=words) as caught:
            inspect_wheel(BytesSource(changed, where="left.whl"), depth="full")
        assert caught.value.where == "left.whl"


def test_nothing_is_written_and_no_file_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("builtins.open", None)
    monkeypatch.setattr(os, "open", None)
    assert _inspect({"_C.so": _BIG, "../../evil.so": _BIG}).complete
    assert list(tmp_path.iterdir()) == []
