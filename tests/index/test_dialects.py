"""Every publisher's way of writing a page, quirk by quirk, on the pages of `tests/pages/`.

Each page says at its end where its quirks were seen. What is served around a page (statuses,
redirects, folders, hosts) is in `test_dialects_served.py`.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalock.cuda import parse_local_label
from cudalock.errors import CudalockError
from cudalock.index.simple import NotAPageError, PageContext, ProjectPage, parse_page
from cudalock.wheel.evidence import conclude, observe_file
from cudalock.wheel.knowledge import Knowledge
from cudalock.wheel.listing import ListedFile

PAGES = Path(__file__).parent.parent / "pages"
A, B, C, D, E = (pair * 32 for pair in ("a1", "b2", "c3", "d4", "e5"))
HTML = "text/html"
JSON = "application/vnd.pypi.simple.v1+json"


def read(name: str, project: str | None, url: str, *, folder: str | None = "cu130") -> ProjectPage:
    kind = JSON if name.endswith(".json") else None if name.endswith(".xml") else HTML
    context = PageContext(index="publisher", index_url=url, folder=folder)
    body = (PAGES / name).read_bytes()
    return parse_page(body, content_type=kind, url=url, project=project, context=context)


def read_text(text: str, project: str | None = "left", *, kind: str | None = HTML) -> ProjectPage:
    url = "https://index.example.org/whl/cu130/left/"
    context = PageContext(index="publisher", index_url=url, folder="cu130")
    return parse_page(text.encode(), content_type=kind, url=url, project=project, context=context)


def json_text(*files: Mapping[str, object], **more: object) -> str:
    named = [
        {"filename": "left-1.0-py3-none-any.whl", "url": "left-1.0-py3-none-any.whl", **file}
        for file in files
    ]
    return json.dumps({"meta": {"api-version": "1.1"}, "name": "left", "files": named, **more})


def urls(page: ProjectPage) -> list[str]:
    return [file.url for file in page.files]


def kinds(page: ProjectPage) -> list[str]:
    return [rejection.kind for rejection in page.rejections]


def cuda_of(file: ListedFile) -> str | None:
    variant = conclude(observe_file(file, Knowledge()), native=True)
    return None if variant.cuda is None else str(variant.cuda)


@pytest.mark.parametrize("path", sorted(PAGES.iterdir()), ids=lambda path: path.name)
def test_a_page_says_where_its_quirks_were_seen(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        assert (PAGES / f"{path.name}.md").is_file()
    elif path.suffix == ".html":
        comments = [c for c in re.findall(r"<!--(.*?)-->", text, re.DOTALL) if "TIMESTAMP" not in c]
        assert any(len(comment) > 40 for comment in comments)


# PyTorch


def test_pytorch_a_plus_sign_is_encoded_in_the_address_and_read_once() -> None:
    page = read("pytorch-stable.html", "torch", "https://download.example.org/whl/cu130/torch/")
    first = page.files[0]
    assert first.url.endswith("/torch-2.10.0%2Bcu130-cp312-cp312-manylinux_2_28_x86_64.whl")
    assert first.filename == "torch-2.10.0+cu130-cp312-cp312-manylinux_2_28_x86_64.whl"
    assert str(first.wheel.version) == "2.10.0+cu130"


def test_pytorch_links_from_the_root_of_the_host_leave_the_folder_of_the_page() -> None:
    page = read("pytorch-stable.html", "torch", "https://download.example.org/deep/er/torch/")
    assert (
        "https://download.example.org/whl/cu130/torch-2.9.1%2Bcu130-cp312-cp312-win_amd64.whl"
        in (urls(page))
    )


def test_pytorch_the_hash_of_metadata_in_place_of_the_wheels_is_no_claim_and_is_kept() -> None:
    page = read("pytorch-stable.html", "torch", "https://download.example.org/whl/cu130/torch/")
    confused = page.files[-1]
    assert (confused.sha256, confused.core_metadata) == ((), B)
    assert [(a.sha256, a.why) for a in confused.aside] == [(B, "it is the hash of its METADATA")]


def test_pytorch_such_a_hash_is_none_however_the_listings_of_its_address_are_ordered() -> None:
    name = "left-1.0-py3-none-any.whl"
    early = (
        f'<a href="{name}#sha256={A}">x</a><a href="{name}" data-core-metadata="sha256={A}">x</a>'
    )
    late = (
        f'<a href="{name}" data-core-metadata="sha256={A}">x</a><a href="{name}#sha256={A}">x</a>'
    )
    for text in (early, late):
        (file,) = read_text(text).files
        assert (file.sha256, [a.sha256 for a in file.aside]) == ((), [A])
    (file,) = read_text(early + f'<a href="{name}#sha256={B}">x</a>').files
    assert (file.sha256, [a.sha256 for a in file.aside]) == ((B,), [A])


def test_pytorch_a_stale_wheel_without_a_label_is_not_of_the_folder_it_leaked_into() -> None:
    page = read("pytorch-stable.html", "torch", "https://download.example.org/whl/cu130/torch/")
    stale = next(file for file in page.files if file.wheel.version.local is None)
    assert stale.folder == "cu130"
    variant = conclude(observe_file(stale, Knowledge()), native=True)
    assert (variant.state, variant.cuda, variant.runtime) == ("unknown", None, None)
    assert [(o.kind, o.text) for o in variant.evidence] == [("path", "listed in cu130")]


def test_pytorch_a_nightly_page_has_sidecars_and_upload_times_and_no_hash() -> None:
    url = "https://download.example.org/whl/nightly/cu130/torch/"
    linux, windows = read("pytorch-nightly.html", "torch", url).files
    assert (linux.sha256, linux.aside, linux.core_metadata) == ((), (), B)
    assert (linux.upload_time, windows.upload_time) == ("2026-02-22T09:41:07Z", None)
    assert (windows.sha256, windows.core_metadata) == ((), None)


def test_pytorch_the_time_of_a_page_in_its_last_line_is_no_part_of_what_it_says() -> None:
    body = (PAGES / "pytorch-nightly.html").read_bytes()
    assert not body.endswith(b"\n")
    text = body.decode()
    assert read_text(text.replace("1771753267", "1771839667"), "torch") == read_text(text, "torch")


def test_pytorch_triton_lies_above_the_folder_and_names_no_cuda() -> None:
    url = "https://download.example.org/whl/nightly/cu130/triton/"
    page = read("pytorch-nightly-triton.html", "triton", url)
    assert [str(file.wheel.version) for file in page.files] == [
        "3.6.0+git9844da95",
        "3.9.0+gitaad2a60d",
    ]
    assert {urlsplit(file.url).path.rpartition("/")[0] for file in page.files} == {"/whl/nightly"}
    assert [cuda_of(file) for file in page.files] == [None, None]


def test_pytorch_a_dependency_may_lie_anywhere() -> None:
    url = "https://download.example.org/whl/nightly/cu130/nvidia-cublas/"
    page = read("pytorch-dependency.html", "nvidia-cublas", url)
    assert [urlsplit(u).hostname for u in urls(page)] == [
        "pypi.nvidia.com",
        "download.example.org",
        "download.example.org",
    ]
    assert urls(page)[1].startswith("https://download.example.org/whl/nightly/nvidia_cublas-")
    assert urls(page)[2].startswith(url)
    assert [file.sha256 for file in page.files] == [(A,), (), (B,)]


@pytest.mark.parametrize(
    "name", ["pytorch-root.html", "sglang-root.html", "flashinfer-root.html", "vllm-root.html"]
)
def test_a_list_of_projects_is_the_page_of_no_project(name: str) -> None:
    # vLLM's list says that it is an index's, and that alone must not make it an empty page.
    with pytest.raises(NotAPageError) as caught:
        read(name, "vllm", "https://wheels.example.org/nightly/vllm/")
    assert caught.value.exit_code == 3
    assert "a list of folders" in str(caught.value)


def test_an_empty_page_may_lead_back_to_its_list() -> None:
    text = (
        '<title>Links for left</title><h1>Links for left</h1><a href="../">up</a><a href="#x">x</a>'
    )
    assert read_text(text).files == ()


def test_links_to_folders_beside_files_are_counted_and_nothing_more() -> None:
    page = read("nested-junk.html", "left", "https://index.example.org/left/")
    assert urls(page) == ["https://index.example.org/left/left-1.0-py3-none-any.whl"]
    assert page.files[0].sha256 == (A,)
    assert kinds(page) == ["not-a-wheel", "not-a-wheel"]


# sglang


def test_sglang_a_literal_plus_sign_stays_in_the_address() -> None:
    page = read("sglang-cu129.html", "sgl-kernel", "https://docs.example.ai/whl/cu129/sgl-kernel/")
    assert urls(page)[1].endswith(
        "/v0.3.10/sgl_kernel-0.3.10+cu128-cp310-abi3-manylinux2014_x86_64.whl"
    )
    assert str(page.files[1].wheel.version) == "0.3.10+cu128"


def test_sglang_bare_lines_without_any_frame_are_a_page() -> None:
    assert not (PAGES / "sglang-five-hashes.html").read_text().startswith("<!DOCTYPE")
    page = read(
        "sglang-five-hashes.html", "sgl-kernel", "https://docs.example.ai/whl/cu130/sgl-kernel/"
    )
    assert (len(page.files), page.rejections) == (1, ())


def test_sglang_five_hashes_of_one_address_are_all_kept_in_the_order_listed() -> None:
    (file,) = read(
        "sglang-five-hashes.html", "sgl-kernel", "https://docs.example.ai/whl/cu130/sgl-kernel/"
    ).files
    assert file.sha256 == (A, B, C, D, E)
    assert file.aside == ()


def test_sglang_a_heading_without_html_or_body_is_a_page() -> None:
    url = "https://docs.example.ai/whl/rocm700/sgl-kernel/"
    (file,) = read("sglang-rocm.html", "sgl-kernel", url).files
    assert parse_local_label(file.wheel.version.local).vendor == "rocm"


def test_sglang_a_folder_holds_builds_of_its_release_of_another_and_of_none() -> None:
    url = "https://docs.example.ai/whl/cu129/sgl-kernel/"
    page = read("sglang-cu129.html", "sgl-kernel", url, folder="cu129")
    assert [cuda_of(file) for file in page.files] == [None, "12.8", "12.9"]


def test_sglang_one_link_may_lack_its_hash() -> None:
    page = read("sglang.html", "sgl-kernel", "https://docs.example.ai/whl/cu128/sgl-kernel/")
    assert [len(file.sha256) for file in page.files] == [2, 0]


# flashinfer


def test_flashinfer_the_order_of_a_page_says_nothing() -> None:
    url = "https://flashinfer.example.ai/whl/cu130/flashinfer-jit-cache/"
    page = read("flashinfer.html", "flashinfer-jit-cache", url)
    assert max(file.wheel.version for file in page.files) == page.files[0].wheel.version
    assert str(page.files[0].wheel.version) == "0.6.10+cu130"


def test_flashinfer_an_architecture_in_a_projects_name_makes_another_project() -> None:
    url = "https://flashinfer.example.ai/whl/cu130/flashinfer-jit-cache-sm120f/"
    page = read("flashinfer.html", "flashinfer-jit-cache-sm120f", url)
    assert [file.wheel.project for file in page.files] == ["flashinfer-jit-cache-sm120f"]
    assert kinds(page) == ["other-project", "other-project"]


def test_flashinfer_the_layout_of_2024_names_torch_in_folder_and_label() -> None:
    url = "https://flashinfer.example.ai/whl/cu121/torch2.2/flashinfer/"
    (file,) = read("flashinfer-2024.html", "flashinfer", url, folder="cu121").files
    assert cuda_of(file) == "12.1"
    assert parse_local_label(file.wheel.version.local).torch == (2, 2)


# vLLM


@pytest.mark.parametrize("folder", ["0.19.1/cu130", "nightly/cu130", "0.19.1/deep"])
def test_vllm_links_climb_out_of_the_index(folder: str) -> None:
    page = read("vllm.html", "vllm", f"https://wheels.example.org/{folder}/vllm/")
    assert urls(page)[0] == (
        "https://wheels.example.org/b1388b1fbf5aaef47937fabe98931211684666a6/"
        "vllm-0.19.1%2Bcu130-cp38-abi3-manylinux_2_35_aarch64.whl"
    )
    # What a lock records is the index that was asked, wherever the wheel lies.
    assert page.files[0].index_url == f"https://wheels.example.org/{folder}/vllm/"


def test_vllm_links_that_climb_beyond_the_root_stay_on_the_host() -> None:
    page = read("vllm.html", "vllm", "https://wheels.example.org/vllm/")
    assert {urlsplit(u).hostname for u in urls(page)} == {"wheels.example.org"}
    assert all("/../" not in u for u in urls(page))


def test_vllm_no_hash_no_sidecar_no_python_is_said() -> None:
    page = read("vllm.html", "vllm", "https://wheels.example.org/0.19.1/cu130/vllm/")
    for file in page.files:
        assert (file.sha256, file.core_metadata, file.requires_python, file.size) == (
            (),
            None,
            None,
            None,
        )


def test_vllm_the_variant_is_the_last_part_of_a_development_label() -> None:
    page = read("vllm.html", "vllm", "https://wheels.example.org/nightly/cu130/vllm/")
    assert [cuda_of(file) for file in page.files] == ["13.0", "13.0"]


def test_vllm_the_old_nightly_gives_every_build_one_name() -> None:
    page = read("vllm-old.html", "vllm", "https://wheels.example.org/nightly/vllm/")
    assert urls(page) == [
        "https://wheels.example.org/nightly/vllm-1.0.0.dev-cp38-abi3-manylinux1_x86_64.whl"
    ]
    assert str(page.files[0].wheel.version) == "1.0.0.dev0"


@pytest.mark.parametrize("name", ["s3-folder.xml", "listing.xml"])
@pytest.mark.parametrize("kind", [None, "application/xml", "text/html", "text/xml"])
def test_a_listing_of_an_object_store_is_an_error_and_never_an_empty_page(
    name: str, kind: str | None
) -> None:
    body = (PAGES / name).read_bytes()
    context = PageContext(index="publisher", index_url="https://w.example.org")
    for text in (body, body[body.index(b"<ListBucketResult") :]):
        with pytest.raises(NotAPageError):
            parse_page(
                text,
                content_type=kind,
                url="https://w.example.org/nightly/vllm/",
                project="vllm",
                context=context,
            )


# Astral, NVIDIA, Jetson, natten, cosmos, windreamer, llama.cpp's, PyG, Paddle


def test_astral_labels_with_dots_are_read() -> None:
    url = "https://wheels.example.sh/simple/cu130/flash-attn/"
    page = read("astral.html", "flash-attn", url)
    (file,) = page.files
    assert file.sha256 == (A,)
    assert file.requires_python == ">=3.9"
    assert cuda_of(file) == "13.0"
    assert parse_local_label(file.wheel.version.local).torch == (2, 11)
    (engine,) = read("astral.html", "transformer-engine-cu13", url).files
    assert cuda_of(engine) == "13.0"


def test_nvidia_hashed_wheels_lie_beside_the_page() -> None:
    url = "https://pypi.nvidia.com/nvidia-cublas-cu12/"
    page = read("nvidia.html", "nvidia-cublas-cu12", url)
    assert urls(page) == [f"{url}nvidia_cublas_cu12-12.8.4.1-py3-none-manylinux_2_27_x86_64.whl"]
    assert kinds(page) == ["not-a-wheel"]


def test_jetson_a_plus_sign_of_the_path_survives() -> None:
    page = read("devpi.html", "torch", "https://devpi.example.dev/jp6/cu126/+simple/torch/")
    assert urls(page) == [
        "https://devpi.example.dev/jp6/cu126/+f/6ef/f643c0a7acda9/torch-2.7.0-cp310-cp310-linux_aarch64.whl"
    ]
    assert cuda_of(page.files[0]) is None


@pytest.mark.parametrize(
    ("href", "path"),
    [
        ("../../+f/aa/left-1.0-py3-none-any.whl", "/whl/+f/aa/left-1.0-py3-none-any.whl"),
        ("/a+b/left-1.0-py3-none-any.whl", "/a+b/left-1.0-py3-none-any.whl"),
        ("/a%2Bb/left-1.0-py3-none-any.whl", "/a%2Bb/left-1.0-py3-none-any.whl"),
        (
            "./left-1.0%2Bcu130-py3-none-any.whl",
            "/whl/cu130/left/left-1.0%2Bcu130-py3-none-any.whl",
        ),
        ("left-1.0+cu130-py3-none-any.whl", "/whl/cu130/left/left-1.0+cu130-py3-none-any.whl"),
        ("left-1.0%2bcu130-py3-none-any.whl", "/whl/cu130/left/left-1.0%2bcu130-py3-none-any.whl"),
    ],
)
def test_an_address_is_kept_as_it_is_written(href: str, path: str) -> None:
    (file,) = read_text(f'<a href="{href}">x</a>').files
    assert urlsplit(file.url).path == path


def test_natten_the_text_of_a_link_may_be_a_path_and_is_not_the_name() -> None:
    url = "https://whl.example.org/index.html"
    page = read("natten-root.html", "natten", url, folder=None)
    assert [file.filename for file in page.files] == [
        "natten-0.21.1+torch2100cu130-cp312-cp312-linux_x86_64.whl",
        "natten-0.21.1+torch290cu128-cp312-cp312-linux_x86_64.whl",
    ]
    assert urls(page)[0].startswith("https://whl.example.org/cu130/torch2.10.0/natten-")
    assert [cuda_of(file) for file in page.files] == ["13.0", "12.8"]


def test_cosmos_single_quotes_and_labels_that_name_the_architecture() -> None:
    url = "https://cosmos.example.io/docs/v1.5.0/cu130_torch210/simple/cosmos-nvfp4/"
    page = read("cosmos-sm.html", "cosmos_nvfp4", url, folder=None)
    labels = [parse_local_label(file.wheel.version.local) for file in page.files]
    assert [str(label.cuda) for label in labels] == ["13.0", "13.0"]
    assert [label.torch for label in labels] == [(2, 10), (2, 10)]
    assert [file.sha256 for file in page.files] == [(A,), ()]


def test_windreamer_a_version_of_another_kind_of_api_is_not_that_of_the_simple_api() -> None:
    text = (PAGES / "windreamer.html").read_text(encoding="utf-8")
    assert '<meta name="api-version" value="2" />' in text
    page = read("windreamer.html", "flash-attn-3", "https://wheels.example.io/cu129_torch2100/")
    assert len(page.files) == 1
    assert cuda_of(page.files[0]) == "13.0"


@pytest.mark.parametrize(("version", "read_it"), [("1.0", True), ("1.9", True), ("2.0", False)])
def test_a_newer_major_of_the_simple_api_is_an_error(version: str, read_it: bool) -> None:
    meta = f'<meta name="pypi:repository-version" content="{version}">'
    html = meta + '<a href="left-1.0-py3-none-any.whl">x</a>'
    data = json_text({}, meta={"api-version": version})
    for text, kind in ((html, HTML), (data, JSON)):
        if read_it:
            assert len(read_text(text, kind=kind).files) == 1
        else:
            with pytest.raises(NotAPageError, match=r"of the API, where 1\.x is read"):
                read_text(text, kind=kind)


def test_llama_cpp_instruction_sets_and_vendors_share_a_page() -> None:
    url = "https://llama.example.io/AVX2/cu121/llama-cpp-python/"
    page = read("jllllll.html", "llama-cpp-python", url, folder=None)
    labels = [parse_local_label(file.wheel.version.local) for file in page.files]
    assert [(label.vendor, str(label.cuda or "")) for label in labels] == [
        ("cuda", "12.1"),
        ("cuda", "11.7"),
        ("cuda", "11.7"),
        ("rocm", ""),
        ("cpu", ""),
    ]


@pytest.mark.parametrize(
    ("name", "project", "folder"),
    [
        ("abetlen.html", "llama-cpp-python", "cu124"),
        ("paddle.html", "paddlepaddle-gpu", "cu129"),
    ],
)
def test_a_cuda_that_only_the_folder_names_is_shown_and_decides_nothing(
    name: str, project: str, folder: str
) -> None:
    (file,) = read(name, project, f"https://w.example.io/{folder}/{project}/", folder=folder).files
    variant = conclude(observe_file(file, Knowledge()), native=True)
    assert (variant.state, variant.runtime) == ("unknown", None)
    assert [o.kind for o in variant.evidence] == ["path"]


def test_pyg_a_flat_page_whose_own_name_has_a_plus_sign() -> None:
    for plus in ("+", "%2B"):
        url = f"https://data.example.org/whl/torch-2.8.0{plus}cu128.html"
        page = read("pyg.html", "torch-scatter", url, folder=None)
        (found,) = urls(page)
        folder, _, name = found.rpartition("/")
        assert folder == "https://data.example.org/whl/torch-2.8.0%2Bcu128"
        assert name == "torch_scatter-2.1.2%2Bpt28cu128-cp312-cp312-linux_x86_64.whl"
        assert kinds(page) == ["other-project"]
        assert cuda_of(page.files[0]) == "12.8"


def test_the_old_flat_page_of_pytorch_has_folders_in_links_and_texts() -> None:
    url = "https://download.example.org/whl/torch_stable.html"
    page = read("torch-stable-flat.html", "torch", url, folder=None)
    assert urls(page) == [
        "https://download.example.org/whl/cu92/torch-1.2.0%2Bcu92-cp27-cp27m-manylinux1_x86_64.whl",
        "https://download.example.org/whl/cu100/torch-1.0.0-cp27-cp27m-linux_x86_64.whl",
    ]
    # A folder inside a link is not that of the page: it is no evidence.
    assert page.files[1].folder is None


# The default index, and what the standards added


def test_json_without_a_content_type_is_read_as_json() -> None:
    body = (PAGES / "default.json").read_bytes()
    context = PageContext(index="default", index_url="https://index.example.org/simple")
    for kind in (None, "", "binary/octet-stream", "text/plain"):
        page = parse_page(
            body,
            content_type=kind,
            url="https://index.example.org/simple/left-pad/",
            project="left-pad",
            context=context,
        )
        assert len(page.files) == 3


def test_both_forms_of_an_upload_time_and_a_list_of_versions_out_of_order() -> None:
    text = (PAGES / "default.json").read_text(encoding="utf-8")
    url = "https://index.example.org/simple/left-pad/"
    page = read("default.json", "left-pad", url)
    times = [file.upload_time for file in page.files]
    assert times == ["2026-01-02T03:04:53.503430Z", "2026-01-02T03:04:47Z", None]
    reordered = text.replace('["2.0", "1.0"]', '["1.0", "9.0", "2.0"]')
    assert reordered != text
    assert read_text(reordered, "left-pad", kind=JSON) == read_text(text, "left-pad", kind=JSON)


def test_a_size_that_no_file_has_is_refused() -> None:
    assert read_text(json_text({"size": 2**63 - 1}), kind=JSON).files[0].size == 2**63 - 1
    with pytest.raises(NotAPageError, match="wrong type"):
        read_text(json_text({"size": 2**63}), kind=JSON)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"core-metadata": {"sha256": A}}, A),
        ({"dist-info-metadata": {"sha256": A}}, A),
        ({"data-dist-info-metadata": {"sha256": A}}, A),
        ({"core-metadata": {"sha256": A}, "dist-info-metadata": {"sha256": A}}, A),
        ({"core-metadata": {"sha256": A}, "dist-info-metadata": {"sha256": B}}, A),
        ({"core-metadata": False, "dist-info-metadata": {"sha256": B}}, False),
        ({"core-metadata": None, "dist-info-metadata": {"sha256": B}}, B),
        ({"core-metadata": {}}, True),
        ({"core-metadata": {"sha512": A + A}}, True),
        ({}, None),
    ],
)
def test_the_newer_name_of_a_sidecar_holds_over_the_older(
    keys: dict[str, object], expected: str | bool | None
) -> None:
    assert read_text(json_text(keys), kind=JSON).files[0].core_metadata == expected


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        (f'data-core-metadata="sha256={A}" data-dist-info-metadata="sha256={B}"', A),
        (f'data-core-metadata="false" data-dist-info-metadata="sha256={B}"', False),
        (f'data-dist-info-metadata="sha256={B}"', B),
    ],
)
def test_so_it_does_in_html(attributes: str, expected: str | bool) -> None:
    text = f'<a href="left-1.0-py3-none-any.whl" {attributes}>x</a>'
    assert read_text(text).files[0].core_metadata == expected


def test_two_hashes_of_one_sidecar_leave_that_there_is_one() -> None:
    name = "left-1.0-py3-none-any.whl"
    links = [f'<a href="{name}" data-core-metadata="sha256={claim}">x</a>' for claim in (A, B, C)]
    for count in (2, 3):
        assert read_text("".join(links[:count])).files[0].core_metadata is True
    assert read_text(links[0] + links[1] + links[0]).files[0].core_metadata is True
    assert read_text(links[0] + links[0]).files[0].core_metadata == A


@pytest.mark.parametrize("status", ["archived", "deprecated", "under-review"])
def test_a_status_of_a_project_is_said_and_its_files_are_offered(status: str) -> None:
    more = {"project-status": {"status": status, "reason": "use right"}}
    page = read_text(json_text({}, **more), kind=JSON)
    assert page.status == f"publisher marks left as {status}: use right"
    assert len(page.files) == 1
    assert read_text(json_text({}, **{"project-status": {"status": status}}), kind=JSON).status == (
        f"publisher marks left as {status}"
    )


def test_a_status_in_html_is_read_alike() -> None:
    page = read("status.html", "left", "https://index.example.org/left/")
    assert page.status == "publisher marks left as archived: moved to right"
    assert len(page.files) == 1
    assert read_text('<a href="left-1.0-py3-none-any.whl">x</a>').status is None


def test_a_project_in_quarantine_offers_nothing_and_says_why() -> None:
    more = {"project-status": {"status": "quarantined", "reason": "malware\x1b[31m"}}
    page = read_text(json_text({}, **more), kind=JSON)
    assert (page.files, kinds(page)) == ((), ["quarantined"])
    assert "quarantine (PEP 792): malware" in page.rejections[0].reason
    assert page.rejections[0].reason.isprintable()


@pytest.mark.parametrize(
    ("said", "expected"),
    [(True, True), ("broken", "broken"), (False, False), (None, False), ("", False)],
)
def test_yanked_in_json_is_a_reason_or_a_word(said: object, expected: str | bool) -> None:
    assert read_text(json_text({"yanked": said}), kind=JSON).files[0].yanked == expected


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ("data-yanked", True),
        ('data-yanked=""', True),
        ("data-yanked='a &lt; b'", "a < b"),
        ("", False),
    ],
)
def test_yanked_in_html_is_there_with_or_without_a_reason(
    attribute: str, expected: str | bool
) -> None:
    text = f'<a href="left-1.0-py3-none-any.whl" {attribute}>x</a>'
    assert read_text(text).files[0].yanked == expected


@pytest.mark.parametrize("spelled", ["Left_Pad", "left.pad", "LEFT-PAD", "left__pad"])
def test_names_are_compared_in_their_normal_form(spelled: str) -> None:
    file = {"filename": "Left_Pad-1.0-py3-none-any.whl", "url": "Left_Pad-1.0-py3-none-any.whl"}
    text = json_text(file, name="left.Pad")
    assert len(read_text(text, spelled, kind=JSON).files) == 1
    html = '<a href="Left.Pad-1.0-py3-none-any.whl">LEFT.pad</a>'
    assert [file.wheel.project for file in read_text(html, spelled).files] == ["left-pad"]


# Two files of one name


def test_each_address_has_its_own_hash_however_alike_the_names_are() -> None:
    name = "torchvision-0.24.0-cp312-cp312-manylinux_2_28_aarch64.whl"
    folders = ("cu126", "cu128", "cu129", "cu130")
    text = "".join(
        f'<a href="/whl/{folder}/{name}#sha256={digest}">{name}</a>'
        for folder, digest in zip(folders, (A, B, C, D), strict=True)
    )
    page = read_text(text, "torchvision")
    assert [(urlsplit(f.url).path.split("/")[2], f.sha256) for f in page.files] == [
        ("cu126", (A,)),
        ("cu128", (B,)),
        ("cu129", (C,)),
        ("cu130", (D,)),
    ]


# Anything at all


_SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=8), st.sampled_from([A, B, "1.0"])
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)
_FILES = st.dictionaries(
    st.sampled_from(
        [
            *("filename", "url", "hashes", "size", "yanked", "upload-time", "core-metadata"),
            *("requires-python", "dist-info-metadata", "data-dist-info-metadata"),
        ]
    ),
    st.one_of(
        _VALUES,
        st.sampled_from(["left-1.0-py3-none-any.whl", "../left-1.0+cu130-py3-none-any.whl"]),
        st.dictionaries(st.sampled_from(["sha256", "md5"]), st.sampled_from([A, "x", B.upper()])),
    ),
)


@given(
    st.dictionaries(
        st.sampled_from(["meta", "name", "versions", "project-status", "alternate-locations"]),
        _VALUES,
    ),
    st.lists(_FILES, max_size=4) | _VALUES,
)
def test_any_json_raises_only_our_errors_and_leads_to_the_web(
    members: dict[str, object], files: object
) -> None:
    text = json.dumps({**members, "files": files})
    try:
        page = read_text(text, kind=JSON)
    except CudalockError as error:
        assert str(error).isprintable()
        return
    for file in page.files:
        assert urlsplit(file.url).scheme in ("http", "https")
        assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in file.sha256)
    for rejection in page.rejections:
        assert (rejection.reason + rejection.filename).isprintable()


@given(st.text(max_size=300), st.sampled_from([None, "left"]))
def test_any_flat_page_raises_only_our_errors(text: str, project: str | None) -> None:
    for body in (text, f'<a href="{text}">{text}</a>', f"<a href='{text}.whl'>x</a>"):
        try:
            page = read_text(body, project)
        except CudalockError as error:
            assert str(error).isprintable()
            continue
        assert all(rejection.reason.isprintable() for rejection in page.rejections)
