"""Reading what the sources of a machine answered: command output and files, as text.

Pure, and total: any text at all gives a `SourceAnswer`. The asking is `detect`'s.
"""

import re
from dataclasses import dataclass

from cudalock.cuda import (
    ComputeCapability,
    CudaVersion,
    DriverVersion,
    cuda_from_number,
    l4t_cuda,
    parse_compute_capability,
    parse_driver_version,
)
from cudalock.errors import UsageError
from cudalock.host.detection import Gpu, SourceAnswer

__all__ = [
    "MOST_GPUS",
    "SMI",
    "CommandAnswer",
    "read_capability",
    "read_driver",
    "read_driver_file",
    "read_l4t",
    "read_libcuda",
    "read_smi",
    "words",
]

MOST_GPUS = 256
SMI = "nvidia-smi"
_DRIVER_IN_TEXT = re.compile(r"(?<![\w.])([1-9][0-9]{2,3}\.[0-9]{1,3}(?:\.[0-9]{1,3})?)(?![\w.])")

_L4T = re.compile(r"# R([0-9]{1,3}) \(release\), REVISION: ([0-9]{1,3})(?:\.[0-9]{1,3})?(?![0-9.])")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandAnswer:
    """What a command gave back; the texts are cut at 1 MiB."""

    returncode: int
    stdout: str
    stderr: str


def read_libcuda(answer: CommandAnswer) -> SourceAnswer:
    """Read the lines that the child process prints: a fact a line, as far as it got."""
    cuda: CudaVersion | None = None
    gpus: list[Gpu] = []
    trouble = "" if answer.returncode == 0 else f"the child ended with {answer.returncode}"
    for line in answer.stdout.splitlines():
        match line.split(" ", 3):
            case ["absent"]:
                return SourceAnswer(
                    source="libcuda", status="absent", detail="the library is not installed"
                )
            case ["version", number] if number.isdecimal() and len(number) < 7:
                cuda = cuda_from_number(int(number))
            case ["error", code]:
                trouble = f"cuInit answered {code[:20]}"
            case ["device", major, minor, name] if len(gpus) < MOST_GPUS:
                gpus.append(Gpu(name=name[:200], capability=read_capability(f"{major}.{minor}")))
            case _:
                pass
    answered = cuda is not None or bool(gpus)
    return SourceAnswer(
        source="libcuda",
        status="answered" if answered else "failed",
        detail=trouble,
        driver_cuda=cuda,
        gpus=tuple(gpus),
    )


def read_driver_file(text: str | None, *, source: str) -> SourceAnswer:
    """Read a file of the kernel driver; ``None`` is one that could not be read."""
    if text is None:
        return SourceAnswer(source=source, status="failed", detail="the file cannot be read")
    # The file under /proc has a line for the driver and one for the compiler that built it.
    found = _DRIVER_IN_TEXT.search(text.partition("\n")[0][:1000])
    driver = None if found is None else read_driver(found[1])
    if driver is None:
        return SourceAnswer(source=source, status="failed", detail="no driver version in it")
    return SourceAnswer(source=source, status="answered", driver=driver)


def read_l4t(text: str | None, *, source: str) -> SourceAnswer:
    """Read the release of a Jetson's system: ``# R36 (release), REVISION: 4.0, GCID: …``."""
    found = None if text is None else _L4T.search(text[:1000])
    if found is None:
        return SourceAnswer(source=source, status="failed", detail="no release of L4T in it")
    major, minor = int(found[1]), int(found[2])
    return SourceAnswer(
        source=source,
        status="answered",
        detail=f"L4T {major}.{minor}",
        driver_cuda=l4t_cuda(major, minor),
    )


def read_smi(answer: CommandAnswer, *, has_capability: bool) -> SourceAnswer:
    """Read a line a GPU; the name may hold commas, the fields around it do not."""
    if answer.returncode != 0:
        said = words((answer.stdout.strip() or answer.stderr.strip()).partition("\n")[0])
        detail = f"ended with {answer.returncode}: {said}"
        return SourceAnswer(source=SMI, status="failed", detail=detail)
    driver: DriverVersion | None = None
    gpus: list[Gpu] = []
    for line in answer.stdout.splitlines()[:MOST_GPUS]:
        head, _, rest = line.partition(",")
        driver = driver or read_driver(head)
        capability, rest = (rest.partition(",")[::2]) if has_capability else ("", rest)
        name, _, uuid = rest.rpartition(",")
        if name.strip():
            gpus.append(
                Gpu(
                    name=name.strip()[:200],
                    capability=read_capability(capability),
                    uuid=uuid.strip()[:100] or None,
                )
            )
    if driver is None:
        detail = f"no driver version in `{words(answer.stdout[:160])}`"
        return SourceAnswer(source=SMI, status="failed", detail=detail)
    return SourceAnswer(source=SMI, status="answered", driver=driver, gpus=tuple(gpus))


def read_driver(text: str) -> DriverVersion | None:
    """Read a driver version, or nothing."""
    try:
        return parse_driver_version(text.strip())
    except UsageError:
        return None


def read_capability(text: str) -> ComputeCapability | None:
    """Read a compute capability, or nothing (`[N/A]` on some boards)."""
    try:
        return parse_compute_capability(text.strip())
    except UsageError:
        return None


def words(value: object) -> str:
    """Word a foreign message in one short printable line."""
    text = str(value) or type(value).__name__
    return "".join(c for c in text if c.isprintable())[:160]
