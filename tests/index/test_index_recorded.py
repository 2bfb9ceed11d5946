import json
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.version import Version

from cudalock.errors import CudalockError, IndexAccessError
from cudalock.index.definitions import load_definitions
from cudalock.index.locate import find_indices
from cudalock.index.recorded import Recording, load_recording
from cudalock.wheel.listing import ListedFile

ROOT = Path(__file__).resolve().parents[2]
RECORDED = find_indices() / "recorded"
PYTORCH = "https://download.pytorch.org/whl"
ACME = "https://acme.example/whl"


@pytest.fixture(autouse=True)
def _scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


def recording(name: str) -> Recording:
    found = load_recording(RECORDED, name)
    assert found is not None
    return found


def the_file(name: str, url: str, project: str, start: str) -> ListedFile:
    files, _, _ = recording(name).listing(url, project)
    return next(file for file in files if file.filename.startswith(start))


def declared(file: ListedFile) -> dict[str, Requirement]:
    assert file.metadata is not None
    return {requirement.name: requirement for requirement in file.metadata.requires_dist}


def write(directory: Path, pages: list[dict[str, Any]], **publisher: object) -> Recording:
    folder = directory / "acme"
    folder.mkdir(exist_ok=True)
    listed = {"url": f"{ACME}/cu130", "folder": "cu130", "nightly": False, "file": "cu130.json"}
    document = {
        "schema": 1,
        "definition": "acme",
        "parents": [{"url": ACME, "complete": True, "source": "acme/whl"}],
        "folders": [listed],
    } | publisher
    (folder / "publisher.json").write_text(json.dumps(document))
    content = {"schema": 1, "url": f"{ACME}/cu130", "metadata": [], "pages": pages}
    (folder / "cu130.json").write_text(json.dumps(content))
    found = load_recording(directory, "acme")
    assert found is not None
    return found


def page(url: str, file: dict[str, Any] | None = None, *, complete: bool = True) -> dict[str, Any]:
    files = [{"url": url, **(file or {})}]
    return {"project": "kernel", "complete": complete, "sources": ["acme/whl"], "files": files}


WHEEL = f"{ACME}/kernel-1.0%2Bcu130-cp312-cp312-linux_x86_64.whl"


def test_a_recorded_page_answers_for_the_real_address(tmp_path: Path) -> None:
    found = write(tmp_path, [page(WHEEL, {"sha256": ["a" * 64, "b" * 64, "a" * 64], "size": 5})])
    for url in (f"{ACME}/cu130", f"{ACME}/cu130/", f"{ACME}/cu130/kernel/"):
        files, rejections, answer = found.listing(url, "kernel")
        assert rejections == ()
        assert (answer.status, answer.url, answer.folder) == ("listed", f"{ACME}/cu130", "cu130")
        assert answer.source == "recorded from acme/whl"
        assert files[0].filename == "kernel-1.0+cu130-cp312-cp312-linux_x86_64.whl"
        assert (files[0].url, files[0].index_url) == (WHEEL, f"{ACME}/cu130")
        assert files[0].sha256 == ("a" * 64, "b" * 64)
        assert files[0].metadata is None
    assert found.folder_names == ("cu130",)


def test_what_is_not_recorded_is_told_from_what_is_not_there(tmp_path: Path) -> None:
    folders = [
        {"url": f"{ACME}/cu130", "folder": "cu130", "nightly": False, "file": "cu130.json"},
        {"url": f"{ACME}/cu129", "folder": "cu129", "nightly": False},
        {"url": f"{ACME}/cu128", "folder": "cu128", "nightly": False, "projects": ["kernel"]},
    ]
    found = write(tmp_path, [page(WHEEL, complete=False)], folders=folders)

    def status(url: str, project: str) -> str:
        return found.listing(url, project)[2].status

    assert status(f"{ACME}/cu130", "kernel") == "partial"
    assert status(f"{ACME}/cu130", "other") == "unrecorded"
    assert status(f"{ACME}/cu129/kernel/", "kernel") == "unrecorded"
    assert status(f"{ACME}/cu128", "kernel") == "unrecorded"
    assert status(f"{ACME}/cu128", "other") == "absent"
    assert status(f"{ACME}/cu131/kernel/", "kernel") == "absent"
    assert found.listing(f"{ACME}/cu131", "kernel")[2].folder == "cu131"
    assert status("https://elsewhere.example/cu130", "kernel") == "unrecorded"
    open_list = [{"url": ACME, "complete": False, "source": "locks"}]
    found = write(tmp_path, [], parents=open_list)
    assert status(f"{ACME}/cu131", "kernel") == "unrecorded"


@pytest.mark.parametrize(
    ("url", "file", "kind"),
    [
        (f"{ACME}/other-1.0-cp312-cp312-linux_x86_64.whl", {}, "other-project"),
        (f"{ACME}/kernel-1.0.tar.gz", {}, "bad-name"),
        (WHEEL, {"sha256": ["abc"]}, "bad-hash"),
        (WHEEL, {"metadata": 7}, "bad-metadata"),
    ],
)
def test_a_recorded_file_that_does_not_fit_is_a_rejection(
    tmp_path: Path, url: str, file: dict[str, Any], kind: str
) -> None:
    files, rejections, _ = write(tmp_path, [page(url, file)]).listing(f"{ACME}/cu130", "kernel")
    assert files == ()
    assert [r.kind for r in rejections] == [kind]
    assert rejections[0].where == f"{ACME}/cu130/kernel"


@pytest.mark.parametrize(
    "name", ["../acme/cu130.json", ".hidden", "none.json", "publisher.json", "other.json"]
)
def test_a_broken_recording_is_an_index_that_gave_no_answer(tmp_path: Path, name: str) -> None:
    folders = [{"url": f"{ACME}/cu130", "folder": "cu130", "nightly": False, "file": name}]
    found = write(tmp_path, [], folders=folders)
    other = {"schema": 1, "url": f"{ACME}/cu129", "metadata": [], "pages": []}
    (tmp_path / "acme" / "other.json").write_text(json.dumps(other))
    with pytest.raises(IndexAccessError) as caught:
        found.listing(f"{ACME}/cu130", "kernel")
    assert caught.value.where is not None


def test_a_recording_of_another_schema_or_publisher_is_refused(tmp_path: Path) -> None:
    assert load_recording(tmp_path, "acme") is None
    with pytest.raises(IndexAccessError, match="schema 1, found 2"):
        write(tmp_path, [], schema=2)
    with pytest.raises(IndexAccessError, match="`acme`, found `else`"):
        write(tmp_path, [], definition="else")


@given(st.binary(max_size=200))
def test_any_bytes_at_all_raise_only_our_errors(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "acme").mkdir()
    (folder / "acme" / "publisher.json").write_bytes(data)
    with pytest.raises(CudalockError):
        load_recording(folder, "acme")


# What ships


def test_every_shipped_recording_reads_whole_and_names_only_its_publishers() -> None:
    hosts: Counter[str] = Counter()
    for definition in load_definitions(find_indices()):
        if load_recording(RECORDED, definition.name) is None:
            continue
        found = recording(definition.name)
        publisher = json.loads((RECORDED / definition.name / "publisher.json").read_bytes())
        for folder in publisher["folders"]:
            allowed = definition.projects | (
                definition.nightly_projects if folder["nightly"] else definition.serves
            )
            if "file" not in folder:
                continue
            content = json.loads((RECORDED / definition.name / folder["file"]).read_bytes())
            for recorded in content["pages"]:
                assert recorded["project"] in allowed
                assert recorded["sources"]
                files, rejections, _ = found.listing(folder["url"], recorded["project"])
                assert files
                assert rejections == ()
                for file in files:
                    hosts[urlsplit(file.url).netloc] += 1
                    if file.metadata is not None and file.metadata.assumed:
                        assert file.metadata.source.endswith("(assumed)")
    assert set(hosts) == {
        "download.pytorch.org",
        "download-r2.pytorch.org",
        "github.com",
        "pypi.jetson-ai-lab.dev",
        "pypi.nvidia.com",
        "wheels.astral.sh",
        "wheels.vllm.ai",
    }


def test_the_shipped_recordings_stay_small() -> None:
    assert sum(path.stat().st_size for path in RECORDED.rglob("*.json")) < 2_000_000


def test_a_recording_tells_which_folders_list_a_project_without_reading_a_page() -> None:
    sglang = recording("sglang")
    assert sglang.folders_with("sglang") == ("cu129", "cu130", "nightly/cu129")
    assert "cu118" in sglang.folders_with("sgl-kernel")
    assert sglang.folders_with("numpy") == ()
    assert sglang._read_files == {}


def test_cu131_is_not_published_and_cu132_is_not_recorded() -> None:
    pytorch = recording("pytorch")
    assert pytorch.listing(f"{PYTORCH}/cu131", "torch")[2].status == "absent"
    assert pytorch.listing(f"{PYTORCH}/cu132", "torch")[2].status == "unrecorded"
    assert pytorch.listing(f"{PYTORCH}/cu130", "torch")[2].status == "partial"


def test_torch_2_9_1_cu130_has_the_dependencies_of_a_lock_and_never_those_of_cuda_12() -> None:
    file = the_file("pytorch", f"{PYTORCH}/cu130", "torch", "torch-2.9.1+cu130-cp312-cp312-many")
    assert file.metadata is not None
    assert file.metadata.assumed
    assert "cosmos-transfer2.5" in file.metadata.source
    found = declared(file)
    assert str(found["triton"]) == 'triton==3.5.1; sys_platform == "linux"'
    assert str(found["nvidia-cuda-runtime"].specifier) == "==13.0.48"
    assert not any(name.endswith("-cu12") for name in found)
    # A lock's own choice of a common project is no requirement of torch.
    assert str(found["filelock"]) == "filelock"


def test_torch_2_11_0_takes_the_metadata_of_the_default_index_only_for_its_own_cuda() -> None:
    ours = the_file("pytorch", f"{PYTORCH}/cu130", "torch", "torch-2.11.0+cu130-cp312-cp312-many")
    assert ours.metadata is not None
    assert ours.metadata.source == "METADATA of torch 2.11.0 on the default index (assumed)"
    assert str(declared(ours)["cuda-toolkit"].specifier) == "==13.0.2"
    older = the_file("pytorch", f"{PYTORCH}/cu128", "torch", "torch-2.11.0+cu128-cp312-cp312-many")
    assert str(declared(older)["cuda-toolkit"].specifier) == "==12.8.1"
    assert "nvidia-cudnn-cu12" in declared(older)


@pytest.mark.parametrize("version", ["0.4.2", "0.4.3", "0.4.4"])
def test_kernels_for_cu130_declare_nothing_as_on_the_default_index(version: str) -> None:
    url = "https://docs.sglang.ai/whl/cu130"
    file = the_file("sglang", url, "sglang-kernel", f"sglang_kernel-{version}+cu130")
    assert file.metadata is not None
    assert file.metadata.assumed
    assert file.metadata.requires_dist == ()
    assert file.metadata.version == Version(f"{version}+cu130")


def test_a_kernel_uploaded_five_times_keeps_its_five_hashes_in_order() -> None:
    url = "https://docs.sglang.ai/whl/cu130"
    file = the_file(
        "sglang", url, "sgl-kernel", "sgl_kernel-0.3.21+cu130-cp310-abi3-manylinux2014_x"
    )
    assert [text[:4] for text in file.sha256] == ["c9a3", "970e", "3a0b", "b1f7", "4be1"]


def test_a_nightly_has_no_hash_and_pins_its_triton() -> None:
    url = f"{PYTORCH}/nightly/cu130"
    file = the_file("pytorch", url, "torch", "torch-2.11.0.dev20260212+cu130-cp312-cp312-many")
    assert file.nightly
    assert file.sha256 == ()
    assert str(declared(file)["triton"].specifier) == "==3.6.0+git9844da95"
    vision = the_file("pytorch", url, "torchvision", "torchvision-0.26.0.dev20260216+cu130-cp312")
    assert str(declared(vision)["torch"].specifier) == "==2.11.0.dev20260212+cu130"


def test_flashinfer_cache_is_known_before_0_7_and_unknown_after() -> None:
    files, _, _ = recording("flashinfer").listing(
        "https://flashinfer.ai/whl/cu130", "flashinfer-jit-cache"
    )
    for file in files:
        before = file.wheel.version < Version("0.7.0.dev0")
        assert (file.metadata is not None) == before, file.filename


def test_only_a_wheel_whose_metadata_was_kept_is_not_assumed() -> None:
    file = the_file("pytorch", f"{PYTORCH}/nightly/cu134", "torch", "torch-2.16.0.dev20261006")
    assert file.metadata is not None
    assert not file.metadata.assumed
    assert file.metadata.source.startswith("METADATA, kept in kklouzal/TensorFold")


# How the recordings are made


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("extra == 'extra-4-proj-a'", ""),
        ("sys_platform == 'linux' and extra == 'extra-4-proj-a'", "sys_platform == 'linux'"),
        # The clause on two of them is about a choice that the project forbids.
        (
            (
                "(sys_platform == 'linux' and extra == 'extra-4-proj-a') or "
                "(extra == 'extra-4-proj-a' and extra == 'extra-4-proj-b')"
            ),
            "sys_platform == 'linux'",
        ),
        (
            "sys_platform == 'linux' or (extra == 'extra-4-proj-a' and extra == 'group-4-proj-b')",
            "sys_platform == 'linux'",
        ),
        ("extra == 'extra-4-proj-a' and extra == 'extra-4-proj-b'", None),
        ("os_name == 'nt' and extra != 'extra-4-proj-a'", "os_name == 'nt'"),
        (
            (
                "(python_version < '3.11' and extra != 'extra-4-proj-a') or "
                "(python_version >= '3.11' and extra == 'extra-4-proj-a')"
            ),
            "",
        ),
        ("extra == 'docs' and extra == 'extra-4-proj-a'", "extra == 'docs'"),
        ("'linux' == sys_platform", "sys_platform == 'linux'"),
        (
            "os_name == 'nt' or (os_name != 'nt' and extra == 'test')",
            "extra == 'test' or os_name == 'nt'",
        ),
        (
            (
                "os_name == 'nt' and (extra == 'extra-1-p-a' or sys_platform == 'win32') "
                "and extra != 'extra-1-p-a'"
            ),
            "os_name == 'nt' and sys_platform == 'win32'",
        ),
        ("os_name == 'nt' and os_name != 'nt'", None),
    ],
)
def test_artificial_extras_of_a_lock_leave_the_real_marker(text: str, cleaned: str | None) -> None:
    from scripts.lock_markers import clean_marker, format_marker

    terms = clean_marker(text)
    assert (format_marker(terms) if terms else None) == cleaned


@given(
    st.recursive(
        st.sampled_from(
            [
                "os_name == 'nt'",
                "os_name != 'nt'",
                "sys_platform == 'linux'",
                "python_full_version < '3.11'",
                "python_full_version >= '3.11'",
                "extra == 'extra-1-p-a'",
                "extra != 'extra-1-p-a'",
                "extra == 'extra-1-p-b'",
            ]
        ),
        lambda inner: st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(
            lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
        ),
        max_leaves=8,
    ),
    st.sampled_from(["nt", "posix"]),
    st.sampled_from(["linux", "win32"]),
    st.sampled_from(["3.10.0", "3.12.0"]),
)
def test_a_cleaned_marker_holds_when_it_does_for_none_or_one_of_the_extras(
    text: str, os_name: str, sys_platform: str, python: str
) -> None:
    from scripts.lock_markers import clean_marker, format_marker

    environment = {key: str(value) for key, value in default_environment().items()} | {
        "os_name": os_name,
        "sys_platform": sys_platform,
        "python_full_version": python,
    }

    def holds(marker: str, extra: str) -> bool:
        found = Requirement(f"x ; {marker}").marker
        assert found is not None
        return found.evaluate(environment | {"extra": extra})

    terms = clean_marker(text)
    shown = format_marker(terms)
    cleaned = bool(terms) and (not shown or holds(shown, ""))
    assert cleaned == any(holds(text, extra) for extra in ("", "extra-1-p-a", "extra-1-p-b"))


def test_dependencies_of_a_lock_keep_names_extras_and_pins_only() -> None:
    from scripts.lock_markers import clean_requirements

    edges = [
        "Cuda_Toolkit[nvrtc,cudart]==13.0.2 ; sys_platform == 'linux' and extra == 'extra-1-p-a'",
        "numpy==1.26 ; python_version < '3.11'",
        "numpy==2.0 ; python_version >= '3.11'",
        "gone ; extra == 'extra-1-p-a' and extra == 'extra-1-p-b'",
    ]
    assert clean_requirements(edges, {"cuda-toolkit": "==13.0.2"}) == (
        "cuda-toolkit[cudart,nvrtc]==13.0.2 ; sys_platform == 'linux'",
        "numpy",
    )


class FakeIndex:
    """A default index of one wheel whose METADATA is given."""

    def __init__(self, filename: str, *requires: str, sha256: str = "0" * 64) -> None:
        self._filename, self._requires, self._sha256 = filename, requires, sha256

    def files(self, project: str) -> list[dict[str, object]]:
        assert project == "torch"
        return [{"filename": self._filename, "hashes": {"sha256": self._sha256}}]

    def metadata(self, project: str, file: dict[str, object]) -> bytes:
        assert (project, file["filename"]) == ("torch", self._filename)
        lines = "".join(f"Requires-Dist: {text}\n" for text in self._requires)
        return f"Name: torch\nVersion: 2.9.1\n{lines}\n".encode()


def chosen(index: FakeIndex, *facts: dict[str, Any], sha256: str = "f" * 64) -> dict[str, Any]:
    """Return the record, empty for a wheel that nothing speaks for."""
    from scripts.stand_ins import StandIns

    from cudalock.index.knowledge_files import load_knowledge

    knowledge = load_knowledge(find_indices() / "knowledge")
    stand_ins = StandIns(knowledge=knowledge, index=index)  # type: ignore[arg-type] # a stand-in
    stand_ins.read_page("torch", facts)
    return stand_ins.choose(facts[0], [sha256]) or {}


X86 = "cp312-cp312-manylinux_2_28_x86_64.whl"
PUBLIC = f"torch-2.9.1-{X86}"
LINUX = ' ; platform_system == "Linux"'


@pytest.mark.parametrize(
    ("label", "requires", "taken"),
    [
        ("+cu128", [f"nvidia-cuda-runtime-cu12==12.8.90{LINUX}"], True),
        ("+cu130", [f"nvidia-cuda-runtime-cu12==12.8.90{LINUX}"], False),
        ("+cu126", [f"nvidia-cuda-runtime-cu12==12.8.90{LINUX}"], False),
        ("+cu130", [f"cuda-toolkit[cudart]==13.0.2{LINUX}"], True),
        ("+cu132", [f"cuda-toolkit[cudart]==13.0.2{LINUX}"], False),
        ("+cu126", [f"nvidia-cudnn-cu12==9.5{LINUX}"], True),
        ("+cu129", ["nvidia-cutlass-dsl[cu13]==4.5.2"], False),
        ("+cu129", ["nvidia-cudnn-cu13 ; extra == 'cu13'"], True),
        ("+cu130", ["numpy"], True),
        ("", ["numpy"], True),
        ("", [f"cuda-toolkit[cudart]==13.0.2{LINUX}"], False),
        # Parts that are never installed on this machine describe the build without CUDA.
        ("+cu130", ["cuda-toolkit==13.0.2 ; platform_machine == 'aarch64'"], False),
    ],
)
def test_metadata_of_the_default_index_stands_in_unless_it_names_another_cuda(
    label: str, requires: list[str], taken: bool
) -> None:
    record = chosen(FakeIndex(PUBLIC, *requires), {"filename": f"torch-2.9.1{label}-{X86}"})
    assert bool(record) == taken
    if record:
        assert record["assumed"] is True
        assert record["source"] == "METADATA of torch 2.9.1 on the default index (assumed)"


def test_the_same_file_by_its_hash_speaks_for_itself() -> None:
    index = FakeIndex(PUBLIC, f"cuda-toolkit==13.0.2{LINUX}", sha256="a" * 64)
    record = chosen(index, {"filename": PUBLIC}, sha256="a" * 64)
    assert "the same file by its sha256" in record["source"]


def test_own_metadata_comes_before_everything_and_is_not_assumed() -> None:
    fact = {
        "filename": PUBLIC,
        "requires_dist": ["numpy"],
        "requires_dist_from": "METADATA in a report kept in a/b x.json @ 01",
        "requires_python": ">=3.10",
    }
    assert chosen(FakeIndex(PUBLIC, "wrong"), fact) == {
        "source": "METADATA, kept in a/b x.json at 01",
        "assumed": False,
        "requires_python": ">=3.10",
        "requires_dist": ["numpy"],
    }


def lock(
    filename: str, commit: str, edges: list[str], held: dict[str, list[str]]
) -> dict[str, Any]:
    source = (
        f"uv lock 'dependencies' of torch 2.9.1+cu130 (notes): a/{commit} uv.lock @ {commit * 40}"
    )
    return {
        "filename": filename,
        "requires_dist": edges,
        "requires_dist_from": source,
        "locked_versions_of_deps": held,
    }


OTHER_CUDA = f"nvidia-cuda-runtime-cu12==12.8.90{LINUX}"


def test_a_lock_pins_only_what_it_holds_once() -> None:
    edges = ["nvidia-nccl-cu13", "cuda-toolkit==13.0.2", "networkx", "triton==3.3.0"]
    held = {
        "nvidia-nccl-cu13": ["2.27.7"],
        "cuda-toolkit": ["12.8.1", "13.0.2"],
        "networkx": ["3.5"],
        "triton": ["3.3.0", "3.5.1"],
    }
    record = chosen(
        FakeIndex(PUBLIC, OTHER_CUDA), lock(f"torch-2.9.1+cu130-{X86}", "a", edges, held)
    )
    # triton comes from what is known of torch 2.9.1, not from the lock.
    assert record["requires_dist"] == [
        "cuda-toolkit",
        "networkx",
        "nvidia-nccl-cu13==2.27.7",
        "triton==3.5.1",
    ]
    assert record["source"] == (
        "dependencies of torch 2.9.1+cu130 in a/a uv.lock at aaaaaaaa (assumed)"
    )


def test_a_list_of_versions_from_another_lock_pins_nothing() -> None:
    edges = ["nvidia-cublas==13.1.0.3", "nvidia-nccl-cu13"]
    held = {"nvidia-cublas": ["13.4.1.1"], "nvidia-nccl-cu13": ["2.28.9"]}
    record = chosen(
        FakeIndex(PUBLIC, OTHER_CUDA), lock(f"torch-2.9.1+cu130-{X86}", "a", edges, held)
    )
    assert record["requires_dist"] == ["nvidia-cublas", "nvidia-nccl-cu13"]


def test_a_version_on_which_locks_are_divided_is_no_pin() -> None:
    facts = [
        lock(
            f"torch-2.9.1+cu130-{python}-{python}-manylinux_2_28_x86_64.whl",
            name,
            ["nvidia-x"],
            held,
        )
        for python, name, held in (
            ("cp312", "a", {"nvidia-x": ["1"]}),
            ("cp313", "b", {"nvidia-x": ["2"]}),
        )
    ]
    assert chosen(FakeIndex(PUBLIC, OTHER_CUDA), *facts)["requires_dist"] == ["nvidia-x"]


@pytest.mark.parametrize("marker", ["platform_machine == 'aarch64'", "sys_platform == 'win32'"])
def test_a_lock_made_for_other_machines_says_nothing(marker: str) -> None:
    fact = lock(f"torch-2.9.1+cu130-{X86}", "a", [f"numpy ; {marker}"], {"numpy": ["2"]})
    assert chosen(FakeIndex(PUBLIC, OTHER_CUDA), fact) == {}
