"""What this machine has: its driver, the CUDA that supports, its GPUs, and its Python.

The one module of the room that asks the machine. Sources, in the order they are trusted:

1. NVML, the management library (its v2 call for CUDA only: the first version of that call
   answers with a made-up release where ``libcuda`` is missing);
2. ``libcuda``, in a child process, because initialising CUDA may hang, crash or fork badly;
3. the files the kernel driver shows under ``/proc`` and ``/sys``;
4. ``nvidia-smi`` with ``--query-gpu``. Its banner is for people and has changed its words;
5. on a Jetson, the release of its system (L4T).

What follows from the answers is `detection`'s business. Everything the machine is asked through
is an argument, so that recorded answers of other machines can be read.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from cudalock.cuda import CudaVersion, cuda_from_number, parse_cuda_version
from cudalock.errors import UsageError
from cudalock.host.detection import OVERRIDE, Detection, Gpu, SourceAnswer, weigh
from cudalock.host.interpreter import Interpreter
from cudalock.host.source_answers import (
    MOST_GPUS,
    SMI,
    CommandAnswer,
    read_capability,
    read_driver,
    read_driver_file,
    read_l4t,
    read_libcuda,
    read_smi,
    words,
)

__all__ = ["CommandAnswer", "Run", "detect", "detect_interpreter", "load_nvml", "run_command"]

_LARGEST_FILE = 1 << 16
_LARGEST_OUTPUT = 1 << 20
_SECONDS = 10.0
_WSL_LIBRARIES = "usr/lib/wsl/lib"
_L4T_FILE = "etc/nv_tegra_release"

# Codes of nvml.h: the library or the driver is not there, as opposed to there and unwell.
_NVML_ABSENT = {9: "the driver is not loaded", 12: "the library is not installed"}

# Printed one fact a line, so that what was said before a crash still counts. The numbers are
# those of cuda.h: attributes 75 and 76 are the compute capability.
_CHILD = """
import ctypes, sys
for name in sys.argv[1:]:
    try:
        cuda = ctypes.CDLL(name)
        break
    except OSError:
        pass
else:
    print("absent", flush=True)
    sys.exit(0)
number = ctypes.c_int(0)
if cuda.cuDriverGetVersion(ctypes.byref(number)) == 0:
    print("version", number.value, flush=True)
code = cuda.cuInit(0)
if code:
    print("error", code, flush=True)
    sys.exit(0)
count = ctypes.c_int(0)
cuda.cuDeviceGetCount(ctypes.byref(count))
for index in range(min(count.value, 256)):
    device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    name = ctypes.create_string_buffer(256)
    if cuda.cuDeviceGet(ctypes.byref(device), index):
        continue
    cuda.cuDeviceGetAttribute(ctypes.byref(major), 75, device)
    cuda.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
    cuda.cuDeviceGetName(name, 255, device)
    text = name.value.decode("utf-8", "replace").encode("ascii", "replace").decode()
    print("device", major.value, minor.value, text, flush=True)
"""


# Runs a command with its arguments and environment. Raises `FileNotFoundError` when there is no
# such command, `TimeoutError` when it did not end in time, another `OSError` when it cannot run.
Run = Callable[[Sequence[str], Mapping[str, str]], CommandAnswer]


def run_command(
    argv: Sequence[str], environ: Mapping[str, str], *, seconds: float = _SECONDS
) -> CommandAnswer:
    """Run a command without a shell, with no input, for at most ``seconds``.

    The command is looked up on the ``PATH`` of ``environ`` and never in the current folder.

    Raises:
        OSError: as `Run` says.

    """
    import shutil  # noqa: PLC0415 - a target that is given runs nothing and does not pay for it.
    import subprocess  # noqa: PLC0415 - as above.

    program = argv[0]
    if not os.path.dirname(program):  # noqa: PTH120 - a name without a folder is not a path yet.
        path = environ.get("PATH", os.defpath)
        folders = [folder for folder in path.split(os.pathsep) if Path(folder).is_absolute()]
        found = shutil.which(program, path=os.pathsep.join(folders))
        # On Windows `which` looks into the current folder first, whatever the path says.
        if found is None or not Path(found).is_absolute():
            raise FileNotFoundError(program)
        program = found
    try:
        done = subprocess.run(  # noqa: S603 - a list of arguments, no shell, an absolute program.
            [program, *argv[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=dict(environ),
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"no answer in {seconds:.0f} seconds") from error
    return CommandAnswer(
        returncode=done.returncode,
        stdout=done.stdout[:_LARGEST_OUTPUT].decode("utf-8", "replace"),
        stderr=done.stderr[:_LARGEST_OUTPUT].decode("utf-8", "replace"),
    )


def load_nvml(root: Path) -> Any:  # noqa: ANN401 - a module without types.
    """Import the bindings of NVML; under WSL, make them find the library that works there.

    A distribution inside WSL may hold a stub of the library; the one that talks to the Windows
    driver lies in its own folder. A library once loaded is the one its name means from then on.
    """
    wsl = root / _WSL_LIBRARIES / "libnvidia-ml.so.1"
    if wsl.exists():
        import contextlib  # noqa: PLC0415 - needed under WSL only.
        import ctypes  # noqa: PLC0415 - as above.

        # If it cannot be loaded, the ordinary search still follows and reports what it finds.
        with contextlib.suppress(OSError):
            ctypes.CDLL(str(wsl))
    import pynvml  # noqa: PLC0415 - only a detection pays for this import.

    return pynvml


def detect(
    environ: Mapping[str, str],
    *,
    root: Path = Path("/"),
    run: Run = run_command,
    nvml: Callable[[Path], Any] = load_nvml,
) -> Detection:
    """Ask every source of this machine; on one with GPUs it takes about a second.

    A source that is missing or broken is an answer too, so this raises nothing for it.

    Raises:
        UsageError: ``CONDA_OVERRIDE_CUDA`` in ``environ`` is no CUDA release.

    """
    override = _read_override(environ)
    release = _read_file(root / "proc/sys/kernel/osrelease") or ""
    wsl = "microsoft" in release.lower() or (root / _WSL_LIBRARIES).is_dir()
    answers = [
        _ask_nvml(nvml, root),
        _ask_libcuda(run, environ, root),
        _ask_file("/proc/driver/nvidia/version", root),
        _ask_file("/sys/module/nvidia/version", root),
        _ask_smi(run, environ, root),
    ]
    tegra = (root / _L4T_FILE).exists()
    if tegra:
        # Only a Jetson has it, so elsewhere its absence tells nothing.
        answers.append(read_l4t(_read_file(root / _L4T_FILE), source=f"/{_L4T_FILE}"))
    mask = environ.get("CUDA_VISIBLE_DEVICES")
    return weigh(answers, override=override, tegra=tegra, wsl=wsl, mask=mask)


def detect_interpreter() -> Interpreter:
    """Describe the Python that runs this."""
    import platform  # noqa: PLC0415 - a target that is given does not pay for these.
    import sysconfig  # noqa: PLC0415 - as above.

    from packaging.tags import platform_tags  # noqa: PLC0415 - as above.

    tags = list(platform_tags())
    # The bare `linux_` tag, which comes first, says nothing about the C library.
    told = [tag for tag in tags if not tag.startswith("linux_")]
    return Interpreter(
        # A Python built from a checkout calls itself "3.14.0a1+", which no standard knows.
        version=platform.python_version().rstrip("+"),
        implementation=sys.implementation.name,
        platform=(told or tags)[0],
        free_threaded=bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    )


def _read_override(environ: Mapping[str, str]) -> CudaVersion | Literal["none"] | None:
    """Read conda's variable: a release, or empty for a machine without CUDA."""
    text = environ.get(OVERRIDE)
    if text is None:
        return None
    if not text.strip():
        return "none"
    try:
        return parse_cuda_version(text)
    except UsageError as error:
        raise UsageError(error.message, where=OVERRIDE, flag="--driver-cuda") from error


def _read_file(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST_FILE).decode("utf-8", "replace")
    except OSError:
        return None


def _ask_nvml(load: Callable[[Path], Any], root: Path) -> SourceAnswer:
    source = "NVML"
    try:
        nvml = load(root)
    except Exception as error:  # noqa: BLE001 - bindings that cannot be imported are an answer.
        return SourceAnswer(source=source, status="absent", detail=words(error))
    try:
        nvml.nvmlInit()
    except Exception as error:  # noqa: BLE001 - NVML's errors are made when its bindings load.
        code = getattr(error, "value", None)
        absent = _NVML_ABSENT.get(code) if isinstance(code, int) else None
        status: Literal["absent", "failed"] = "absent" if absent else "failed"
        return SourceAnswer(source=source, status=status, detail=absent or words(error))
    try:
        gpus = [
            gpu
            for index in range(min(_nvml_value(nvml.nvmlDeviceGetCount) or 0, MOST_GPUS))
            if (gpu := _nvml_gpu(nvml, index)) is not None
        ]
        number = _nvml_value(nvml.nvmlSystemGetCudaDriverVersion_v2)
        driver = read_driver(_text(_nvml_value(nvml.nvmlSystemGetDriverVersion)))
    finally:
        _nvml_value(nvml.nvmlShutdown)
    return SourceAnswer(
        source=source,
        status="answered",
        detail="" if number is not None else "libcuda, which tells the CUDA release, was not found",
        driver=driver,
        driver_cuda=cuda_from_number(number) if isinstance(number, int) else None,
        gpus=tuple(gpus),
    )


def _nvml_value(call: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - as NVML answers.
    """Ask one thing; what one GPU cannot tell must not lose what the others do."""
    try:
        return call(*arguments)
    except Exception:  # noqa: BLE001 - NVML's errors are made when its bindings load.
        return None


def _nvml_gpu(nvml: Any, index: int) -> Gpu | None:  # noqa: ANN401 - a module without types.
    handle = _nvml_value(nvml.nvmlDeviceGetHandleByIndex, index)
    if handle is None:
        return None
    pair = _nvml_value(nvml.nvmlDeviceGetCudaComputeCapability, handle)
    capability = None
    if isinstance(pair, list | tuple) and len(pair) == 2:
        capability = read_capability(f"{pair[0]}.{pair[1]}")
    return Gpu(
        name=_text(_nvml_value(nvml.nvmlDeviceGetName, handle)) or "unknown",
        capability=capability,
        uuid=_text(_nvml_value(nvml.nvmlDeviceGetUUID, handle)) or None,
    )


def _ask_libcuda(run: Run, environ: Mapping[str, str], root: Path) -> SourceAnswer:
    wsl = root / _WSL_LIBRARIES / "libcuda.so.1"
    names = [str(wsl)] if wsl.exists() else []
    names += ["nvcuda.dll"] if sys.platform == "win32" else ["libcuda.so.1"]
    # A program that was told to use one GPU would otherwise hide the others, and a target is
    # every GPU in the box.
    child_environ = {key: value for key, value in environ.items() if key != "CUDA_VISIBLE_DEVICES"}
    try:
        answer = run((sys.executable, "-I", "-c", _CHILD, *names), child_environ)
    except OSError as error:
        return SourceAnswer(source="libcuda", status="failed", detail=words(error))
    return read_libcuda(answer)


def _ask_file(name: str, root: Path) -> SourceAnswer:
    path = root / name.removeprefix("/")
    if not path.exists():
        return SourceAnswer(source=name, status="absent", detail="no such file")
    return read_driver_file(_read_file(path), source=name)


def _ask_smi(run: Run, environ: Mapping[str, str], root: Path) -> SourceAnswer:
    programs = [SMI]
    wsl = root / _WSL_LIBRARIES / "nvidia-smi"
    if wsl.exists():
        programs.append(str(wsl))
    for program in programs:
        try:
            return _query_smi(program, run, environ)
        except FileNotFoundError:
            continue
        except OSError as error:
            return SourceAnswer(source=SMI, status="failed", detail=words(error))
    return SourceAnswer(source=SMI, status="absent", detail="no such command")


def _query_smi(program: str, run: Run, environ: Mapping[str, str]) -> SourceAnswer:
    def query(fields: str) -> CommandAnswer:
        return run((program, f"--query-gpu={fields}", "--format=csv,noheader"), environ)

    answer = query("driver_version,compute_cap,name,uuid")
    if answer.returncode == 0:
        return read_smi(answer, has_capability=True)
    # Drivers before R510 do not know `compute_cap`, and then answer nothing at all.
    return read_smi(query("driver_version,name,uuid"), has_capability=False)


def _text(value: object) -> str:
    """NVML's bindings give text or bytes, by their version."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""
