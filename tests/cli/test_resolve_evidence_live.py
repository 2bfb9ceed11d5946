"""What the bytes of real wheels decide, on the live default index; only in `make test-network`."""

import tomllib
from pathlib import Path

import pytest

from cudalock.cli.main import main
from cudalock.index.client import Client
from cudalock.index.remote_file import RemoteFile

pytestmark = pytest.mark.network

_TARGET = (
    *("--only-default-index", "--python", "3.12", "--platform", "manylinux_2_34_x86_64"),
    *("--sm", "12.0", "--driver", "590.48.01"),
)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("cache"))


def _resolve(folder: Path, cache: str, *arguments: str) -> tuple[int, dict[str, str]]:
    lock = folder / "pylock.toml"
    code = main(["resolve", *arguments, *_TARGET, "--cache-dir", cache, "-o", str(lock)])
    if code:
        return code, {}
    found = tomllib.loads(lock.read_text(encoding="utf-8"))
    return code, {package["name"]: package["version"] for package in found["packages"]}


def _told(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().err.split())


def test_a_kernel_is_refused_by_its_libraries_and_its_symbols(
    tmp_path: Path, cache: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _ = _resolve(tmp_path, cache, "sgl-kernel==0.3.21", "torch==2.11.0")
    told = _told(capsys)
    assert code == 1
    assert "loads CUDA runtime 12 (NEEDED libcudart.so.12 in" in told
    assert "needs `c10::cuda::c10_cuda_check_implementation`" in told
    assert "which torch 2.11.0 does not export (sgl_kernel/" in told
    assert "with `sglang-kernel==0.4.5` the set resolves" in told


def test_the_newest_kernel_that_this_torch_can_load_is_taken(tmp_path: Path, cache: str) -> None:
    code, pins = _resolve(tmp_path, cache, "torch==2.11.0", "sglang-kernel")
    assert (code, pins["sglang-kernel"]) == (0, "0.4.5")


def test_cubins_for_other_gpus_are_told_of_and_refused_under_strict(
    tmp_path: Path, cache: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("flashinfer-python==0.6.4", "flashinfer-cubin==0.6.4")
    assert _resolve(tmp_path, cache, *asked)[0] == 0
    held = "flashinfer-cubin 0.6.4 holds sm_100a, sm_100f and sm_103a"
    assert f"{held} only, none of which runs on sm_120" in _told(capsys)
    assert _resolve(tmp_path, cache, *asked, "--verify-sm", "strict", "--no-remedies")[0] == 1
    assert f"{held}, nothing for sm_120" in _told(capsys)


def test_torchaudio_follows_torch_by_its_libraries(
    tmp_path: Path, cache: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, pins = _resolve(tmp_path, cache, "torch==2.10.0", "torchaudio", "--cuda", "12.8")
    assert (code, pins["torchaudio"]) == (0, "2.10.0")
    capsys.readouterr()
    assert _resolve(tmp_path, cache, "torch==2.10.0", "torchaudio")[0] == 1
    told = _told(capsys)
    assert "torch 2.10.0 is built for CUDA 12.8 and loads CUDA runtime 12" in told
    assert "with `--cuda 12.9` the set resolves" in told


def test_the_wheels_whose_facts_come_along_are_not_read(
    tmp_path: Path, cache: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch 2.14.1 with all it requires: what was not shipped is read once, and torch never."""
    opened: list[str] = []
    original = Client.open_file

    def open_file(self: Client, url: str, *, size: int | None = None) -> RemoteFile:
        opened.append(url.rpartition("/")[2])
        return original(self, url, size=size)

    monkeypatch.setattr(Client, "open_file", open_file)
    code, pins = _resolve(tmp_path, cache, "torch==2.14.1", "torchvision", "torchaudio")
    assert (code, pins["torch"]) == (0, "2.14.1")
    read = {name.partition("-")[0] for name in opened}
    assert read.isdisjoint({"torch", "torchvision", "torchaudio", "triton", "nvidia_cublas"})
