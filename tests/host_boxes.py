"""Machines that are recorded, in place of the one a test runs on: what each source would answer."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cudalock.host import Detection, detect
from cudalock.host.source_answers import CommandAnswer

__all__ = ["BLACKWELL", "Box", "NvmlError", "RecordedNvml", "box_paths", "detect_box"]

BLACKWELL = "NVIDIA RTX PRO 6000 Blackwell Workstation Edition"


class NvmlError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(f"code {value}")
        self.value = value


class RecordedNvml:
    """NVML of a recorded machine; ``None`` in place of a value is a call that fails."""

    def __init__(
        self,
        *,
        init: int = 0,
        driver: str | bytes | None = "590.48.01",
        cuda: int | None = 13010,
        gpus: Sequence[tuple[str, tuple[int, int] | None]] = ((BLACKWELL, (12, 0)),),
    ) -> None:
        self._init = init
        self._driver = driver
        self._cuda = cuda
        self._gpus = gpus
        self.shut = False

    def _value(self, value: Any) -> Any:  # noqa: ANN401 - whatever was recorded.
        if value is None:
            raise NvmlError(13)
        return value

    def nvmlInit(self) -> None:  # noqa: N802 - NVML's name.
        if self._init:
            raise NvmlError(self._init)

    def nvmlShutdown(self) -> None:  # noqa: N802 - NVML's name.
        self.shut = True

    def nvmlSystemGetDriverVersion(self) -> Any:  # noqa: ANN401, N802 - NVML's name.
        return self._value(self._driver)

    def nvmlSystemGetCudaDriverVersion_v2(self) -> Any:  # noqa: ANN401, N802 - NVML's name.
        return self._value(self._cuda)

    def nvmlSystemGetCudaDriverVersion(self) -> int:  # noqa: N802 - NVML's name.
        # The first version of the call makes up an answer where libcuda is missing.
        return 12000

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802 - NVML's name.
        return len(self._gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802 - NVML's name.
        if self._gpus[index][0] == "lost":
            raise NvmlError(15)
        return index

    def nvmlDeviceGetName(self, handle: int) -> bytes:  # noqa: N802 - NVML's name.
        return self._gpus[handle][0].encode()

    def nvmlDeviceGetUUID(self, handle: int) -> str:  # noqa: N802 - NVML's name.
        return f"GPU-{handle}"

    def nvmlDeviceGetCudaComputeCapability(self, handle: int) -> Any:  # noqa: ANN401, N802 - as above.
        return self._value(self._gpus[handle][1])


class Box:
    """A recorded machine: its files under a root, and what its commands printed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.nvml: RecordedNvml | Exception = NvmlError(12)
        self.cuda: str | OSError = "absent\n"
        self.smi: str | CommandAnswer | OSError = FileNotFoundError("nvidia-smi")
        self.asked: list[tuple[tuple[str, ...], dict[str, str]]] = []

    def file(self, name: str, text: str = "") -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, argv: Sequence[str], environ: Mapping[str, str]) -> CommandAnswer:
        self.asked.append((tuple(argv), dict(environ)))
        said = self.cuda if argv[0] == sys.executable else self.smi
        if isinstance(said, OSError):
            raise said
        if isinstance(said, CommandAnswer):
            return said
        return CommandAnswer(returncode=0, stdout=said, stderr="")

    def load(self, root: Path) -> Any:  # noqa: ANN401 - stands for a module.
        assert root == self.root
        if isinstance(self.nvml, Exception):
            raise self.nvml
        return self.nvml

    def detect(self, environ: Mapping[str, str] | None = None) -> Detection:
        return detect(environ or {}, root=self.root, run=self.run, nvml=self.load)


def box_paths() -> list[Path]:
    """List the recorded machines by name."""
    return sorted((Path(__file__).parent / "host" / "boxes").glob("*.toml"))


def detect_box(table: Mapping[str, Any], root: Path) -> Detection:
    """Detect a machine whose answers stand in a table (keys: see `host/test_host_boxes.py`)."""
    box = Box(root)
    for name, text in table.get("files", {}).items():
        box.file(name, text)
    nvml = table.get("nvml")
    if nvml is not None:
        gpus = [(name, (major, minor)) for name, major, minor in nvml["gpus"]]
        box.nvml = RecordedNvml(driver=nvml["driver"], cuda=nvml.get("cuda"), gpus=gpus)
    box.cuda = table.get("libcuda", box.cuda)
    if "smi" in table:
        box.smi = table["smi"].lstrip("\n")
    return box.detect(table.get("environ", {}))
