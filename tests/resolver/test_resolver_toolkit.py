"""Which release a toolkit part belongs to: by the toolkit that pins it, else by its number."""

from concurrent.futures import Executor, ThreadPoolExecutor

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from cudalock.cuda import CudaVersion
from cudalock.errors import IndexAccessError
from cudalock.host import Target
from cudalock.resolver.source import MemorySource
from cudalock.resolver.toolkit import ToolkitReleases
from cudalock.wheel import CoreMetadata, Knowledge, ListedFile, parse_wheel_file
from cudalock.wheel.cuda_parts import RuntimeLibrary, Toolkit, ToolkitPart

_KNOWLEDGE = Knowledge(
    toolkits=(Toolkit(project="cuda-toolkit", source="s"),),
    toolkit_parts=tuple(
        ToolkitPart(project=project, own_number=own, source="s")
        for project, own in [
            ("cccl", False),
            ("nvcc", False),
            ("cublas", True),
            ("nvcc-cu12", False),
        ]
    ),
    runtime_libraries=(
        RuntimeLibrary(project="nvcc-cu12", major=12, source="s"),
        RuntimeLibrary(project="nvcc", major=13, source="s"),
    ),
)


def _toolkit(version: str, *requires: str, yanked: bool = False, known: bool = True) -> ListedFile:
    wheel = parse_wheel_file(f"cuda_toolkit-{version}-py2.py3-none-any.whl")
    metadata = CoreMetadata(
        project="cuda-toolkit",
        version=wheel.version,
        requires_dist=tuple(Requirement(f"{text}; extra == 'all'") for text in requires),
    )
    return ListedFile(
        wheel=wheel,
        url=f"https://wheels.test/{wheel.filename}",
        index="wheels",
        index_url="https://wheels.test/",
        yanked=yanked,
        metadata=metadata if known else None,
    )


_FILES = (
    _toolkit("13.0.2", "nvcc==13.0.88", "cccl==13.0.85", "cublas==13.1.0.3.*"),
    _toolkit("13.5.0", "nvcc==13.5.40", "cccl==13.3.5.0.6", "cublas==13.4.1"),
    _toolkit("13.5.1", "nvcc==13.5.40", "cccl>=13.0,<14"),
    _toolkit("13.6.0", "nvcc==13.0.88", yanked=True),
    _toolkit("13.7.0", known=False),
    _toolkit("12.9.1", "nvcc==13.0.88"),
)


class _Counting(MemorySource):
    """Counts what is asked for."""

    def __init__(self) -> None:
        super().__init__(_FILES)
        self.read: list[str] = []

    def metadata(self, file: ListedFile) -> CoreMetadata | None:
        self.read.append(str(file.wheel.version))
        return super().metadata(file)


_TARGET = Target(python="3.12", platform="manylinux_2_28_x86_64", cuda=CudaVersion(13, 0))


def _releases(
    source: MemorySource | None = None, target: Target = _TARGET, executor: Executor | None = None
) -> ToolkitReleases:
    return ToolkitReleases(
        source=source or _Counting(), knowledge=_KNOWLEDGE, target=target, executor=executor
    )


@pytest.mark.parametrize(
    ("project", "version", "releases", "who"),
    [
        # The number of cccl is no release of CUDA: its toolkit says which one it is of.
        ("cccl", "13.3.5.0.6", ["13.5"], "cuda-toolkit 13.5.0"),
        ("cccl", "13.0.85", ["13.0"], "cuda-toolkit 13.0.2"),
        ("nvcc", "13.5.40", ["13.5", "13.5"], "cuda-toolkit 13.5.1"),
        # A toolkit that was yanked, or is of another major, says nothing.
        ("nvcc", "13.0.88", ["13.0"], "cuda-toolkit 13.0.2"),
        ("nvcc", "13.2.1", ["13.2"], "its version"),
        ("cublas", "13.1.0.3", ["13.0"], "cuda-toolkit 13.0.2"),
        ("cuda-toolkit", "13.5.0", ["13.5"], "its version"),
    ],
)
def test_a_part_is_of_the_releases_that_pin_it(
    project: str, version: str, releases: list[str], who: str
) -> None:
    found = _releases().releases_of(project, Version(version))
    assert found is not None
    assert ([str(release) for release in found[0]], found[1]) == (releases, who)


@pytest.mark.parametrize(
    ("project", "version"), [("cublas", "13.9.9"), ("numpy", "2.0"), ("nvcc-cu12", "12.9.86")]
)
def test_of_what_nothing_speaks_nothing_is_known(project: str, version: str) -> None:
    assert _releases().releases_of(project, Version(version)) is None


def test_without_cuda_no_toolkit_is_read() -> None:
    source = _Counting()
    target = Target(python="3.12", platform="manylinux_2_28_x86_64", cpu=True)
    assert _releases(source, target).releases_of("nvcc", Version("13.0.88")) is None
    assert source.read == []


def test_the_toolkits_of_the_major_are_read_once() -> None:
    source = _Counting()
    toolkit = _releases(source)
    for _ in range(2):
        toolkit.releases_of("nvcc", Version("13.0.88"))
    assert source.read == ["13.0.2", "13.5.0", "13.5.1", "13.7.0"]


def test_an_executor_reads_them_ahead_and_changes_no_answer() -> None:
    with ThreadPoolExecutor(2) as pool:
        found = _releases(executor=pool).releases_of("cccl", Version("13.3.5.0.6"))
    assert found == ([CudaVersion(13, 5)], "cuda-toolkit 13.5.0")


class _Unreachable(MemorySource):
    def metadata(self, file: ListedFile) -> CoreMetadata | None:
        raise IndexAccessError("expected an answer, found none", where=file.url)


def test_an_index_that_does_not_answer_is_no_answer() -> None:
    with pytest.raises(IndexAccessError):
        _releases(_Unreachable(_FILES)).releases_of("cccl", Version("13.3.5.0.6"))


def test_a_memory_source_takes_no_notice_of_what_is_admitted() -> None:
    listing = _Counting().listing("cuda-toolkit", admitted=SpecifierSet("<1"), nightly=False)
    assert len(listing.files) == len(_FILES)
