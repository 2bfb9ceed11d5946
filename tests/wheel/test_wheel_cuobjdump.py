"""Our readers against NVIDIA's own, on real wheels of the live default index; only in `make test-network`.

`cuobjdump` comes in a small wheel (NVIDIA's licence: it is run here, and never part of cudalock). It names a
cubin after the code inside, where the mark of an `f` architecture is lost: there the header is right.
"""

import io
import os
import re
import stat
import subprocess
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from cudalock.api import find_wheel
from cudalock.cli.default_index import ask_default_index
from cudalock.cuda import CudaVersion
from cudalock.host import Target
from cudalock.session import IndexOptions, Session
from cudalock.wheel.contents import inspect_wheel
from cudalock.wheel.fatbin import DeviceCode
from cudalock.wheel.range_source import BytesSource

pytestmark = pytest.mark.network

_TARGET = Target(
    python="3.12", platform="manylinux_2_34_x86_64", cuda=CudaVersion(13, 2), cuda_compat="minor"
)
_LISTED = re.compile(r"\.sm_([0-9]+)([af]?)\.(cubin|ptx)$", re.MULTILINE)
_LIMIT = 64 * 1024 * 1024


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    cache = tmp_path_factory.mktemp("cache")
    index = ask_default_index(environ=os.environ, cache_dir=cache).url.reveal()
    with Session(IndexOptions(default_index=index, only_default=True)) as found:
        yield found


@pytest.fixture(scope="module")
def cuobjdump(session: Session, tmp_path_factory: pytest.TempPathFactory) -> Path:
    archive = zipfile.ZipFile(io.BytesIO(_download(session, "nvidia-cuda-cuobjdump>=13")))
    (name,) = [name for name in archive.namelist() if name.endswith("/bin/cuobjdump")]
    path = tmp_path_factory.mktemp("tool") / "cuobjdump"
    path.write_bytes(archive.read(name))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def _download(session: Session, requirement: str) -> bytes:
    file = find_wheel(session, requirement, _TARGET)
    data = session.client.fetch_whole(file.url, limit=_LIMIT)
    assert data is not None
    return data


@pytest.mark.parametrize(
    "requirement",
    ["torchaudio==2.11.0", "torchvision==0.26.0", "torchao==0.18.0", "torchcodec==0.17.0"],
)
def test_it_lists_what_we_read(
    requirement: str, session: Session, cuobjdump: Path, tmp_path: Path
) -> None:
    data = _download(session, requirement)
    compared = 0
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for library in inspect_wheel(BytesSource(data), depth="full").libraries:
            if not library.code.containers:
                continue
            path = tmp_path / "library.so"
            path.write_bytes(archive.read(library.path))
            assert _counted(library.code) == _listed(cuobjdump, path), library.path
            compared += 1
    assert compared


def _counted(code: DeviceCode) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for image, count in code.images:
        suffix = image.architecture.suffix.replace("f", "")
        found[image.kind, f"{image.architecture.number}{suffix}"] += count
    return found


def _listed(cuobjdump: Path, library: Path) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for option in ("--list-elf", "--list-ptx"):
        run = subprocess.run(
            [str(cuobjdump), option, str(library)], capture_output=True, text=True, check=False
        )
        for number, suffix, kind in _LISTED.findall(run.stdout):
            found[kind, f"{number}{suffix.replace('f', '')}"] += 1
    return found
