"""Each definition resolves a real project: from its recording, or from a page in our own hand."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from cudalock.cuda import CudaVersion, parse_compute_capability
from cudalock.errors import ResolutionStoppedError
from cudalock.host import Target
from cudalock.index.definitions import load_definitions
from cudalock.index.recorded import load_recording
from cudalock.index.routes import AddedIndex
from cudalock.resolver.request import Request, Requested
from cudalock.resolver.resolution import Resolution
from cudalock.session import IndexOptions, Session
from cudalock.wheel.names import parse_requirement
from default_index_site import Site
from publisher_worlds import INDICES, moved_indices, publisher_site, required_index

_PAGES = Path(__file__).parent / "pages"


@dataclass(frozen=True)
class Case:
    """What is asked, for which machine, and which wheel of the publisher must come out."""

    requirements: tuple[str, ...]
    wheel: str
    cuda: str = "13.0"
    sm: str = "9.0"
    python: str = "3.12"
    platform: str = "manylinux_2_39_x86_64"
    named: bool = False
    prereleases: tuple[str, ...] = ()
    # For a page in our own hand: the host it stands for, its path, what the wheels require.
    host: str = ""
    path: str = ""
    page: str = ""
    requires: dict[str, list[str]] = field(default_factory=dict)

    def request(self) -> Request:
        return Request(
            requirements=tuple(
                Requested(requirement=parse_requirement(text), where="test")
                for text in self.requirements
            ),
            prereleases=frozenset(self.prereleases),
        )

    def target(self) -> Target:
        major, minor = self.cuda.split(".")
        capability = parse_compute_capability(self.sm)
        return Target(
            python=self.python,
            platform=self.platform,
            cuda=CudaVersion(int(major), int(minor)),
            driver_cuda=CudaVersion(int(major), int(minor)),
            capabilities=(capability,),
            tegra=self.sm == "8.7",
        )


_RECORDED = {
    "astral": Case(
        ("mamba-ssm", "torch"),
        "mamba_ssm-2.3.2.post1+cu.13.0.torch.2.11-cp312-cp312",
    ),
    "cosmos": Case(
        ("decord",), "decord-0.6.0+cu130.torch29-cp313-cp313", named=True, python="3.13"
    ),
    "flash-attn": Case(
        ("flash-attn==2.8.3", "torch"),
        "flash_attn-2.8.3+cu12torch2.7cxx11abiTRUE-cp310",
        cuda="12.8",
        python="3.10",
    ),
    "flashinfer": Case(("flashinfer-jit-cache==0.6.4",), "flashinfer_jit_cache-0.6.4+cu130-cp39"),
    "jetson": Case(
        ("torch", "torchvision"),
        "torch-2.7.0-cp310-cp310-linux_aarch64",
        cuda="12.6",
        sm="8.7",
        python="3.10",
        platform="manylinux_2_35_aarch64",
    ),
    "natten": Case(("natten", "torch"), "natten-0.21.6+torch2100cu130-cp312-cp312"),
    "nvidia": Case(("tensorrt-cu13-libs",), "tensorrt_cu13_libs-10.14.1.48.post1-py2.py3"),
    "pytorch": Case(("torch==2.11.0", "torchvision"), "torch-2.11.0+cu130-cp312-cp312"),
    "sglang": Case(("sglang-kernel==0.4.2", "torch"), "sglang_kernel-0.4.2+cu130-cp310-abi3"),
    "vllm": Case(("vllm==0.19.1",), "vllm-0.19.1+cu130-cp38-abi3"),
    "windreamer": Case(
        ("flash-attn-3", "torch"),
        "flash_attn_3-3.0.0+20260316.cu129torch2100cxx11abitrue.71bf77-cp39",
        cuda="12.9",
        named=True,
    ),
    "xformers": Case(("xformers",), "xformers-0.0.35-py39-none", named=True),
}
_BY_HAND = {
    "cupy": Case(
        ("cupy-cuda13x",),
        "cupy_cuda13x-14.0.0rc1-cp312",
        prereleases=("cupy-cuda13x",),
        host="pip.cupy.dev",
        path="/pre",
        page="publisher-cupy.html",
    ),
    "jax": Case(
        ("jax-cuda13-pjrt==0.9.1.dev20260110",),
        "jax_cuda13_pjrt-0.9.1.dev20260110-py3-none",
        host="us-python.pkg.dev",
        path="/ml-oss-artifacts-published/jax-public-nightly-artifacts-registry/simple/jax-cuda13-pjrt",
        page="publisher-jax.html",
    ),
    "llama-cpp-python": Case(
        ("llama-cpp-python",),
        "llama_cpp_python-0.3.4-cp312",
        cuda="12.8",
        host="abetlen.github.io",
        path="/llama-cpp-python/whl/cu124/llama-cpp-python",
        page="publisher-llama-cpp-python.html",
    ),
    "paddle": Case(
        ("paddlepaddle-gpu",),
        "paddlepaddle_gpu-3.2.0-cp312",
        cuda="12.8",
        host="www.paddlepaddle.org.cn",
        path="/packages/stable/cu126/paddlepaddle-gpu",
        page="publisher-paddle.html",
    ),
    "pyg": Case(
        ("torch-scatter", "torch"),
        "torch_scatter-2.1.2+pt28cu128-cp312",
        cuda="12.8",
        host="data.pyg.org",
        path="/whl/torch-2.8.0%2Bcu128.html",
        page="publisher-pyg.html",
    ),
}


@pytest.fixture(scope="module")
def default(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with required_index(tmp_path_factory.mktemp("default")) as site:
        yield site


def _resolve(case: Case, name: str, options: IndexOptions) -> Resolution:
    added = (AddedIndex(url="", name=name),) if case.named else ()
    options = IndexOptions(
        default_index=options.default_index,
        directory=options.directory,
        recorded=options.recorded,
        added=added,
    )
    with Session(options) as session:
        return session.resolve(case.request(), case.target())


def _assert_of(resolution: Resolution, name: str, case: Case) -> None:
    files = [p.file for p in resolution.packages if p.file.filename.startswith(case.wheel)]
    assert files, [p.file.filename for p in resolution.packages]
    assert files[0].index == name


@pytest.mark.parametrize("name", sorted(_RECORDED))
def test_a_publisher_resolves_a_real_project_from_its_recording(name: str, default: Site) -> None:
    case = _RECORDED[name]
    options = IndexOptions(default_index=default.url, recorded=True, directory=INDICES)
    _assert_of(_resolve(case, name, options), name, case)


def test_what_a_wheel_requires_comes_from_its_own_publishers(default: Site) -> None:
    options = IndexOptions(default_index=default.url, recorded=True, directory=INDICES)
    found = _resolve(_RECORDED["vllm"], "vllm", options)
    indexes = {package.project: package.file.index for package in found.packages}
    assert indexes["torch"] == indexes["torchvision"] == "pytorch"
    assert indexes["flashinfer-python"] == "flashinfer"
    assert indexes["numba"] == "default"
    told = [warning.message for warning in found.warnings]
    # The page that told which releases of vllm there are lists the release too.
    assert any("the default index also lists vllm (newest 0.19.1)" in text for text in told)


@pytest.mark.parametrize("name", sorted(_BY_HAND))
def test_a_publisher_without_facts_resolves_from_a_page_in_our_own_hand(
    name: str, default: Site, tmp_path: Path
) -> None:
    case = _BY_HAND[name]
    pages = {case.path: (_PAGES / case.page).read_bytes()}
    with publisher_site(tmp_path / "wheels", pages, case.requires) as site:
        moved = moved_indices(tmp_path / "indices", name, case.host, site.url)
        options = IndexOptions(default_index=default.url, recorded=True, directory=moved)
        _assert_of(_resolve(case, name, options), name, case)
        asked = [path for path in site.asked if not path.endswith(".whl")]
    # At most twelve releases of a partner, each for the CUDA releases it is built for.
    assert len(asked) <= 2 * 12


def test_every_definition_has_a_case_and_no_recording_is_left_out() -> None:
    names = {definition.name for definition in load_definitions(INDICES)}
    assert names == _RECORDED.keys() | _BY_HAND.keys()
    recorded = {n for n in names if load_recording(INDICES / "recorded", n) is not None}
    assert recorded == _RECORDED.keys()


_ACME = """
name = "acme"
dialect = "flat"
absent = [403, 404]
labels = ["local"]
partner = "torch"
projects = ["acme-kernel"]
source = "a test"

[templates]
stable = ["{url}/whl/{{cuda}}/torch{{partner-minor-digits}}.html"]
"""


def _new_publisher(tmp_path: Path, url: str) -> Path:
    directory = tmp_path / "indices"
    shutil.copytree(INDICES, directory, ignore=shutil.ignore_patterns("recorded"))
    (directory / "recorded").symlink_to(INDICES / "recorded")
    (directory / "acme.toml").write_text(_ACME.format(url=url), encoding="utf-8")
    return directory


def _page(*labels: str) -> bytes:
    names = [f"acme_kernel-1.0+{label}-cp312-cp312-linux_x86_64.whl" for label in labels]
    anchors = [f"<a href='/files/{n.replace('+', '%2B')}'>{n}</a>" for n in names]
    return "\n".join(anchors).encode()


@pytest.mark.parametrize(
    ("labels", "taken", "told"),
    [
        # Words nobody has seen before beside one that is read: the release is known.
        (["zeta9.cu130.blue", "zeta9.cu140.blue"], "zeta9.cu130.blue", ""),
        # Nothing of it is read: it may be taken, and what could not be read is said.
        (
            ["torchless.x13y0"],
            "torchless.x13y0",
            "`torchless.x13y0` in its label was not understood",
        ),
    ],
)
def test_a_new_publisher_is_one_file_and_a_label_of_no_known_shape_is_read_or_said(
    labels: list[str], taken: str, told: str, default: Site, tmp_path: Path
) -> None:
    pages = {"/whl/cu130/torch210.html": _page(*labels)}
    with publisher_site(tmp_path / "wheels", pages, {"acme-kernel": ["torch"]}) as site:
        options = IndexOptions(
            default_index=default.url, recorded=True, directory=_new_publisher(tmp_path, site.url)
        )
        case = Case(("acme-kernel", "torch==2.10.0"), f"acme_kernel-1.0+{taken}-cp312")
        resolution = _resolve(case, "acme", options)
        asked = [path for path in site.asked if path.endswith(".html")]
    _assert_of(resolution, "acme", case)
    # One release of torch is admitted, and it has a build for one CUDA folder.
    assert asked == ["/whl/cu130/torch210.html"]
    assert told in "\n".join(warning.message for warning in resolution.warnings)


def test_a_new_publisher_without_a_page_proves_nothing_while_its_partner_was_not_seen_whole(
    default: Site, tmp_path: Path
) -> None:
    with publisher_site(tmp_path / "wheels", {}) as site:
        options = IndexOptions(
            default_index=default.url, recorded=True, directory=_new_publisher(tmp_path, site.url)
        )
        case = Case(("acme-kernel",), "")
        with Session(options) as session, pytest.raises(ResolutionStoppedError) as caught:
            session.resolve(case.request(), case.target())
    assert "acme-kernel: wheels not seen" in str(caught.value)


def test_the_index_for_tegra_counts_on_tegra_only(default: Site) -> None:
    options = IndexOptions(default_index=default.url, recorded=True, directory=INDICES)
    board = _RECORDED["jetson"]
    found = _resolve(board, "jetson", options)
    assert {p.file.index for p in found.packages if p.project.startswith("torch")} == {"jetson"}
    desktop = replace(
        board, requirements=("torch==2.7.1",), sm="8.6", platform="manylinux_2_39_x86_64"
    )
    with Session(options) as session:
        source = session.source(desktop.target())
        listing = source.listing("torch", admitted=SpecifierSet(), nightly=False)
    assert {file.index for file in listing.files} == {"pytorch"}


def test_a_stale_copy_of_a_project_in_a_variant_folder_is_named_and_not_taken(
    default: Site,
) -> None:
    """sglang's folders list nightlies of sglang itself; PyTorch's an old one (sgl-project/sglang#18404)."""
    default.add("sglang", "0.5.8")
    case = Case(("sglang",), "sglang-0.5.8-py3")
    options = IndexOptions(default_index=default.url, recorded=True, directory=INDICES)
    resolution = _resolve(case, "sglang", options)
    _assert_of(resolution, "default", case)
    told = [warning.message for warning in resolution.warnings]
    assert (
        "sglang also lists sglang (cu129, cu130, nightly/cu129): not considered, "
        "it comes from the default index"
    ) in told
