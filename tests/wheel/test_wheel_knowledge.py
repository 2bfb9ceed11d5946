"""Look-ups in knowledge: by project, by version, and what is the same whatever the local label."""

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from cudalock.wheel.cuda_parts import CudaNumber, RuntimeLibrary, Toolkit, ToolkitPart
from cudalock.wheel.knowledge import (
    Family,
    Knowledge,
    Pairing,
    Placeholder,
    ProjectMark,
    Rename,
    StandInMetadata,
    Train,
)
from cudalock.wheel.listing import IndexAnswer, ProjectListing

_KNOWLEDGE = Knowledge(
    families=(Family(name="flash", projects=("flash-python", "flash-cubin"), source="s"),),
    trains=(Train(name="torch", projects=("torch", "torchvision", "flash-python"), source="s"),),
    pairings=(
        Pairing(
            project="kernel",
            versions=SpecifierSet("==0.3.21"),
            partner="torch",
            minor="2.9",
            source="s",
        ),
        Pairing(
            project="kernel",
            versions=SpecifierSet(">=0.4,<0.5"),
            partner="torch",
            minor="2.11",
            source="s",
        ),
    ),
    renames=(Rename(project="kernel", successor="new-kernel", since=Version("0.4"), source="s"),),
    stand_ins=(
        StandInMetadata(
            project="flash-cubin",
            versions=SpecifierSet("<0.7"),
            requires_dist=(Requirement("torch"),),
            source="s",
        ),
    ),
    toolkits=(Toolkit(project="cuda-toolkit", source="s"),),
    toolkit_parts=(ToolkitPart(project="nvcc", own_number=False, source="s"),),
    runtime_libraries=(
        RuntimeLibrary(project="cublas", major=13, versions=SpecifierSet(">=13,<14"), source="s"),
        RuntimeLibrary(project="cublas", major=14, versions=SpecifierSet(">=14"), source="s"),
        RuntimeLibrary(project="cublas-cu12", major=12, source="s"),
    ),
    cuda_numbers=(CudaNumber(project="cuda-python", source="s"),),
    placeholders=(
        Placeholder(project="nvcc", versions=SpecifierSet("<1"), source="s"),
        Placeholder(project="*", versions=SpecifierSet("==0.0.0a0"), source="s"),
    ),
    marks=(ProjectMark(kind="compiles", project="triton", value="", source="s"),),
)


def test_siblings_are_those_of_the_family_and_of_the_train() -> None:
    assert _KNOWLEDGE.siblings("flash-python") == ("flash-cubin", "torch", "torchvision")
    assert _KNOWLEDGE.siblings("numpy") == ()
    family = _KNOWLEDGE.family("flash-cubin")
    assert family is not None
    assert family.name == "flash"
    assert _KNOWLEDGE.family("torch") is None


def test_a_pairing_is_found_by_the_public_version_pre_releases_included() -> None:
    found = {
        text: (pairing.minor if pairing is not None else None)
        for text in ("0.3.21", "0.3.21+cu130", "0.4.4rc1+cu130", "0.5", "0.3.20")
        for pairing in [_KNOWLEDGE.pairing("kernel", Version(text))]
    }
    assert found == {
        "0.3.21": "2.9",
        "0.3.21+cu130": "2.9",
        "0.4.4rc1+cu130": "2.11",
        "0.5": None,
        "0.3.20": None,
    }
    assert _KNOWLEDGE.pairing("torch", Version("2.9")) is None
    assert _KNOWLEDGE.partners == {"torch"}


def test_a_runtime_library_is_found_by_its_version() -> None:
    def major(project: str, version: str) -> int | None:
        library = _KNOWLEDGE.runtime_library(project, Version(version))
        return library.major if library is not None else None

    assert [major("cublas", text) for text in ("12.9", "13.1.0.3", "14.0")] == [None, 13, 14]
    assert major("cublas-cu12", "12.9") == 12
    assert major("numpy", "12.9") is None


def test_a_stand_in_is_found_by_the_public_version() -> None:
    assert _KNOWLEDGE.stand_in("flash-cubin", Version("0.6.4+cu130")) is not None
    assert _KNOWLEDGE.stand_in("flash-cubin", Version("0.7")) is None
    assert _KNOWLEDGE.stand_in("flash-python", Version("0.6.4")) is None


def test_a_placeholder_may_be_of_every_project() -> None:
    assert _KNOWLEDGE.placeholder("nvcc", Version("0.0.1.dev5")) is not None
    assert _KNOWLEDGE.placeholder("numpy", Version("0.0.1")) is None
    assert _KNOWLEDGE.placeholder("numpy", Version("0.0.0a0")) is not None


def test_marks_renames_and_numbers_are_found_by_project() -> None:
    rename = _KNOWLEDGE.rename("kernel")
    assert rename is not None
    assert rename.successor == "new-kernel"
    assert _KNOWLEDGE.rename("torch") is None
    assert _KNOWLEDGE.mark("compiles", "triton") is not None
    assert _KNOWLEDGE.mark("cuda-project", "triton") is None
    assert _KNOWLEDGE.cuda_number("cuda-python") is not None
    assert _KNOWLEDGE.cuda_number("torch") is None
    assert _KNOWLEDGE.toolkit("cuda-toolkit") is not None
    assert _KNOWLEDGE.toolkit("nvcc") is None
    assert _KNOWLEDGE.toolkit_part("nvcc") is not None


def test_a_listing_is_absent_when_every_index_says_so() -> None:
    def listing(*statuses: str) -> ProjectListing:
        answers = [
            IndexAnswer(index="i", url="u", folder=None, status=status)  # type: ignore[arg-type]  # the test's own words
            for status in statuses
        ]
        return ProjectListing(project="x", answers=tuple(answers))

    assert listing("absent", "absent").absent
    assert not listing("absent", "partial").absent
    assert not listing().absent
