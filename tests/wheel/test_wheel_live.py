"""Real wheels of the live default index, by what is in them; only in `make test-network`.

They were chosen for being small: three wheels, 5 MB in all. Where they are, the index tells that this
machine is set to use; what must be in them was measured once, and they never change.
"""

import hashlib
import os
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cudalock.cli.default_index import ask_default_index
from cudalock.cuda import ComputeCapability, CudaVersion
from cudalock.index.client import Client, open_client
from cudalock.index.simple import PageContext, parse_page
from cudalock.wheel.contents import WheelContents, inspect_wheel
from cudalock.wheel.coverage import coverage_of
from cudalock.wheel.range_source import BytesSource

pytestmark = pytest.mark.network

_TARGET = ComputeCapability(12, 0)
_DRIVER = CudaVersion(13, 1)


@dataclass(frozen=True, slots=True)
class _Remote:
    """A wheel on the index, read by range; streams are one range each."""

    client: Client
    url: str
    size: int
    where: str = "a wheel of the live index"

    def read(self, start: int, end: int) -> bytes:
        part = self.client.fetch_range(self.url, start, end)
        return part.data[start - part.start : end - part.start]

    def stream(self, start: int, end: int) -> Generator[bytes, None, None]:
        for at in range(start, end, 256 * 1024):
            yield self.read(at, min(at + 256 * 1024, end))


@pytest.fixture
def client() -> Iterator[Client]:
    with open_client(environ=os.environ) as found:
        yield found


def _find(client: Client, folder: Path, name: str, sha256: str) -> _Remote:
    project = name.split("-", maxsplit=1)[0].replace("_", "-")
    index = ask_default_index(environ=os.environ, cache_dir=folder).url.reveal()
    page = client.fetch_page(f"{index.rstrip('/')}/{project}/")
    assert page is not None
    listed = parse_page(
        page.body,
        content_type=page.content_type,
        url=page.url,
        project=project,
        context=PageContext(index="default", index_url=index),
    )
    file = next(file for file in listed.files if file.wheel.filename.startswith(name))
    assert file.sha256 in ((), (sha256,))
    total = client.fetch_range_suffix(file.url, 1).total
    return _Remote(client, file.url, total)


def _shown(contents: WheelContents) -> tuple[set[str], set[str], set[str]]:
    """Return the architectures, the PTX and what is needed, of all libraries together."""
    images = {image for library in contents.libraries for image, _ in library.code.images}
    needed = {name for library in contents.libraries for name in library.needed or ()}
    return (
        {str(image) for image in images if image.kind == "cubin"},
        {str(image) for image in images if image.kind == "ptx"},
        needed,
    )


_GLIBC = {"libc.so.6", "libgcc_s.so.1", "libm.so.6", "libpthread.so.0", "libstdc++.so.6"}
_TORCH = {"libtorch.so", "libtorch_cpu.so", "libtorch_cuda.so", "libc10.so", "libc10_cuda.so"}


@pytest.mark.parametrize(
    ("name", "sha256", "architectures", "ptx", "needed"),
    [
        (
            "torchaudio-2.11.0-cp312-cp312-manylinux_2_28_x86_64",
            "6503c0bdb29daf2e6281bb70ea2dfe2c3553b782b619eb5d73bdadd8a3f7cecf",
            {"sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"},
            {"compute_120@9.0"},
            _GLIBC | _TORCH | {"libcudart.so.13"},
        ),
        (
            "torch_c_dlpack_ext-0.1.5-cp312-cp312-manylinux_2_24_x86_64",
            "e6f9da4bb9af70e27facc777458be62e10dbbbddda7672d16138db0553c5a524",
            set(),
            set(),
            (_GLIBC - {"libpthread.so.0"})
            | _TORCH
            | {"libtorch_python.so", "ld-linux-x86-64.so.2"},
        ),
        (
            "nvidia_cuda_runtime-13.0.96-py3-none-manylinux2014_x86_64",
            "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548",
            set(),
            set(),
            {"libc.so.6", "ld-linux-x86-64.so.2", "libdl.so.2", "libpthread.so.0", "librt.so.1"},
        ),
    ],
)
def test_a_real_wheel_holds_what_was_measured(
    client: Client,
    tmp_path: Path,
    name: str,
    sha256: str,
    architectures: set[str],
    ptx: set[str],
    needed: set[str],
) -> None:
    remote = _find(client, tmp_path, name, sha256)
    data = remote.read(0, remote.size)
    assert hashlib.sha256(data).hexdigest() == sha256
    contents = inspect_wheel(BytesSource(data), depth="full")
    assert contents.complete
    assert _shown(contents) == (architectures, ptx, needed)
    assert all(library.needed_exact for library in contents.libraries)
    heads = inspect_wheel(remote, depth="needs")
    assert {path.path for path in heads.paths} == {path.path for path in contents.paths}
    for library, whole in zip(heads.libraries, contents.libraries, strict=True):
        assert library.needed == whole.needed
        verdict = coverage_of(whole, _TARGET, _DRIVER).verdict
        assert verdict == ("covered" if whole.code.containers else "no-device-code")
