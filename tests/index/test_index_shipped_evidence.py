"""The facts that come along with cudalock: each file loads, is what it says, and says what is known.

Known content was measured on the wheels by hand; see the sources in `indices/knowledge/`.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from cudalock.cuda import ComputeCapability, CudaVersion
from cudalock.index.fact_files import ShippedFacts
from cudalock.index.knowledge_files import load_knowledge
from cudalock.index.locate import find_indices
from cudalock.resolver.byte_demands import missing_in
from cudalock.wheel.byte_evidence import observe_bytes
from cudalock.wheel.evidence import conclude
from cudalock.wheel.filename import parse_wheel_file
from cudalock.wheel.gpu_service import GpuService, gpu_service
from cudalock.wheel.knowledge import Knowledge
from cudalock.wheel.listing import ListedFile
from cudalock.wheel.wheel_facts import DIGEST, ExportTable, WheelFacts

_FOLDER = find_indices() / "evidence"
_FILES = sorted(_FOLDER.glob("*.json"))
_X86 = "manylinux_2_28_x86_64.whl"
_SGL = "sgl_kernel-0.3.21-cp310-abi3-manylinux2014_x86_64.whl"
_CHECK = "c10_cuda_check_implementation"


def _form(path: Path) -> Mapping[str, Any]:
    form: Mapping[str, Any] = json.loads(path.read_text("utf-8"))
    return form


def _facts(name: str) -> WheelFacts:
    wheel = parse_wheel_file(name)
    sha256 = _form(_FOLDER / f"{name}.json")["sha256"]
    file = ListedFile(wheel=wheel, url=name, index="default", index_url="x", sha256=(sha256,))
    found = ShippedFacts(_FOLDER).find(file)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def tables() -> dict[str, ExportTable]:
    return {str(table.release): table for table in ShippedFacts(_FOLDER).tables}


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return load_knowledge(find_indices() / "knowledge")


def test_there_are_a_few_dozen_and_they_are_small() -> None:
    everything = [path for path in _FOLDER.iterdir() if path.name != "exports.bin"]
    assert sorted(everything) == _FILES
    assert 40 <= len(_FILES) <= 60
    assert sum(path.stat().st_size for path in _FOLDER.iterdir()) < 1_500_000


@pytest.mark.parametrize("path", _FILES, ids=lambda path: path.name.partition("-cp")[0])
def test_a_file_loads_and_is_named_after_its_wheel(path: Path) -> None:
    form = _form(path)
    assert path.name == f"{form['filename']}.json"
    assert re.fullmatch(r"[0-9a-f]{64}", form["sha256"])
    assert date.fromisoformat(form["date"]) >= date(2026, 1, 1)
    facts = _facts(form["filename"])
    assert facts.tier in ("T2", "T4")
    assert facts.contents.complete or facts.tier == "T2"
    assert facts.contents.size > 1000
    # A library a line, so that what changed can be reviewed.
    assert len(path.read_text("utf-8").splitlines()) == len(facts.contents.libraries) + 2


def test_exports_are_of_six_releases_at_most_and_sorted(tables: Mapping[str, ExportTable]) -> None:
    assert 1 <= len(tables) <= 6
    for release, table in tables.items():
        assert table.project == "torch"
        assert table.source.startswith(f"torch-{release}-")
        digests = [table.digests[at : at + DIGEST] for at in range(0, len(table.digests), DIGEST)]
        # They are searched by halving.
        assert digests == sorted(set(digests))
        assert len(table.masks) == len(digests)
        assert "aoti_torch_new_tensor_handle" in table
        assert "_ZN3c1012no_such_nameEv" not in table or table.partial


def test_every_release_of_exports_has_symbols_of_its_own(
    tables: Mapping[str, ExportTable],
) -> None:
    def of(table: ExportTable) -> str:
        present = bytes(mask & table.bit for mask in table.masks)
        return hashlib.sha256(present.replace(bytes([table.bit]), b"\1")).hexdigest()

    assert len({of(table) for table in tables.values()}) == len(tables)


def _needed(facts: WheelFacts) -> set[str]:
    return {name for library in facts.contents.libraries for name in library.needed or ()}


def test_sgl_kernel_is_of_cuda_12_and_of_an_older_torch(
    tables: Mapping[str, ExportTable], knowledge: Knowledge
) -> None:
    facts = _facts(_SGL)
    assert "libcudart.so.12" in _needed(facts)
    assert "libcudart.so.13" not in _needed(facts)
    (seen,) = observe_bytes(facts, knowledge, wanted=13)
    assert (seen.major, seen.text) == (12, "NEEDED libcudart.so.12")
    missing = missing_in(facts.contents, tables["2.11.0"])
    assert missing is not None
    assert any(_CHECK in symbol for _, symbol in missing)
    older = missing_in(facts.contents, tables["2.9.1"])
    assert not older


@pytest.mark.parametrize(
    ("name", "fits", "lacks"),
    [
        (f"torchvision-0.26.0-cp312-cp312-{_X86}", "2.11.0", "2.15.0"),
        ("sglang_kernel-0.4.5-cp310-abi3-manylinux2014_x86_64.whl", "2.11.0", "2.15.0"),
        ("sglang_kernel-0.4.10-cp310-abi3-manylinux2014_x86_64.whl", "2.15.0", "2.11.0"),
        (f"torchaudio-2.11.1-py3-none-{_X86}", "2.15.0", "2.11.0"),
    ],
)
def test_an_extension_misses_nothing_in_its_torch_and_something_in_another(
    name: str, fits: str, lacks: str, tables: Mapping[str, ExportTable]
) -> None:
    contents = _facts(name).contents
    assert missing_in(contents, tables[fits]) == ()
    assert missing_in(contents, tables[lacks])


def _service(name: str, knowledge: Knowledge, major: int, minor: int) -> GpuService | None:
    facts = _facts(name)
    observed = observe_bytes(facts, knowledge, wanted=13)
    variant = replace(conclude(observed, native=True), facts=facts)
    return gpu_service(
        variant,
        ComputeCapability(major, minor),
        driver_cuda=CudaVersion(13, 1),
        knowledge=knowledge,
        project=parse_wheel_file(name).project,
    )


def test_sglang_kernel_serves_sm_120_in_part(knowledge: Knowledge) -> None:
    name = "sglang_kernel-0.4.10-cp310-abi3-manylinux2014_x86_64.whl"
    service = _service(name, knowledge, 12, 0)
    assert service is not None
    told = {each.name.rpartition("/")[2]: each.served for each in service.libraries}
    assert told["flash_ops.abi3.so"] == "none"
    assert told["common_ops.abi3.so"] == "yes"
    # Code for sm_120a alone is no code for 12.1.
    desktop = _service(name, knowledge, 12, 1)
    assert desktop is not None
    assert desktop.nothing


def test_flashinfer_cubin_holds_three_architectures() -> None:
    facts = _facts("flashinfer_cubin-0.6.4-py3-none-any.whl")
    held = {str(code.code) for code in facts.contents.loose if code.code is not None}
    # Some are not named after an architecture, and their heads tell no suffix.
    assert held - {"sm_100?"} == {"sm_100a", "sm_100f", "sm_103a"}
    assert sum(code.count for code in facts.contents.loose) == 8934


@pytest.mark.parametrize(
    ("name", "major"),
    [
        (f"torch-2.11.0-cp312-cp312-{_X86}", 13),
        (f"torchvision-0.26.0-cp312-cp312-{_X86}", 13),
        (f"torchvision-0.25.0-cp312-cp312-{_X86}", 12),
        ("vllm-0.33.0-cp38-abi3-manylinux_2_28_x86_64.whl", 13),
        ("bitsandbytes-0.50.2-py3-none-manylinux_2_24_x86_64.whl", 13),
        ("xformers-0.0.35-py39-none-manylinux_2_28_x86_64.whl", 12),
    ],
)
def test_the_runtime_that_a_wheel_loads_is_told(
    name: str, major: int, knowledge: Knowledge
) -> None:
    (seen,) = observe_bytes(_facts(name), knowledge, wanted=13)
    assert seen.major == major


def test_cuda_s_own_libraries_tell_nothing_of_who_uses_them(knowledge: Knowledge) -> None:
    for path in _FILES:
        if path.name.startswith("nvidia_"):
            facts = _facts(path.name.removesuffix(".json"))
            assert _service(facts.filename, knowledge, 12, 0) is None
