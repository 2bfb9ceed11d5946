import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalock.cuda import CudaVersion, parse_driver_version
from cudalock.errors import UsageError
from cudalock.host import Detection, SourceAnswer, detect, detect_interpreter
from cudalock.host.source_answers import (
    CommandAnswer,
    read_driver_file,
    read_libcuda,
    read_smi,
)
from cudalock.host.this_machine import _CHILD, load_nvml, run_command
from host_boxes import BLACKWELL, Box, RecordedNvml

_PROC = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  590.48.01  Release Build"
    "  (dvs-builder@U22)  Mon Dec  8 12:59:56 UTC 2025\n"
    "GCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2~24.04)\n"
)


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def _status(detection: Detection) -> dict[str, str]:
    return {answer.source: answer.status for answer in detection.answers}


def test_a_machine_without_a_driver_has_five_absent_sources(box: Box) -> None:
    found = box.detect()
    assert not found.found
    assert set(_status(found).values()) == {"absent"}
    assert list(_status(found)) == [
        "NVML",
        "libcuda",
        "/proc/driver/nvidia/version",
        "/sys/module/nvidia/version",
        "nvidia-smi",
    ]
    assert found.disagreements == ()


def test_eight_gpus_that_every_source_agrees_on(box: Box) -> None:
    nvml = RecordedNvml(gpus=((BLACKWELL, (12, 0)),) * 8, driver=b"590.48.01")
    box.nvml = nvml
    box.cuda = "version 13010\n" + f"device 12 0 {BLACKWELL}\n" * 8
    box.smi = "".join(f"590.48.01, 12.0, {BLACKWELL}, GPU-{n}\n" for n in range(8))
    box.file("proc/driver/nvidia/version", _PROC)
    box.file("sys/module/nvidia/version", "590.48.01\n")
    found = box.detect()
    assert set(_status(found).values()) == {"answered"}
    assert found.driver == parse_driver_version("590.48.01")
    assert found.driver_cuda == CudaVersion(13, 1)
    assert found.driver_source == found.driver_cuda_source == found.gpus_source == "NVML"
    assert len(found.gpus) == 8
    assert found.gpus[7].uuid == "GPU-7"
    assert [str(capability) for capability in found.capabilities] == ["12.0"]
    assert found.disagreements == ()
    assert nvml.shut


def test_a_mixed_box_is_the_set_of_its_capabilities(box: Box) -> None:
    box.nvml = RecordedNvml(gpus=(("A100", (8, 0)), ("lost", (9, 0)), ("H100", (9, 0))))
    found = box.detect()
    assert [gpu.name for gpu in found.gpus] == ["A100", "H100"]
    assert [str(capability) for capability in found.capabilities] == ["8.0", "9.0"]


def test_a_container_without_management_tools_is_known_by_libcuda_and_the_kernel(box: Box) -> None:
    box.cuda = "version 13000\ndevice 9 0 NVIDIA H100 80GB HBM3\n"
    box.file("proc/driver/nvidia/version", _PROC)
    found = box.detect()
    assert found.driver_source == "/proc/driver/nvidia/version"
    assert found.driver_cuda == CudaVersion(13, 0)
    assert found.driver_cuda_source == "libcuda"
    assert found.gpus[0].name == "NVIDIA H100 80GB HBM3"
    # The library that programs load is older than what the kernel's driver supports.
    (sentence,) = found.disagreements
    assert sentence == (
        "libcuda reports CUDA 13.0, and driver 590.48.01 (/proc/driver/nvidia/version) is of a"
        " branch that supports 13.1"
    )


def test_the_made_up_release_of_the_first_nvml_call_is_never_used(box: Box) -> None:
    box.nvml = RecordedNvml(cuda=None)
    found = box.detect()
    assert found.answers[0].driver_cuda is None
    assert "libcuda" in found.answers[0].detail
    assert found.driver_cuda == CudaVersion(13, 1)
    assert found.driver_cuda_source == "table of driver branches"


def test_sources_that_differ_are_named_and_the_first_is_taken(box: Box) -> None:
    box.nvml = RecordedNvml(driver="610.43.02", cuda=13030)
    box.file("sys/module/nvidia/version", "610.47\n")
    box.cuda = f"version 13030\ndevice 12 0 {BLACKWELL}\ndevice 8 6 NVIDIA RTX A6000\n"
    found = box.detect()
    assert str(found.driver) == "610.43.02"
    assert found.disagreements == (
        "NVML says driver 610.43.02, /sys/module/nvidia/version says 610.47",
        "NVML says compute capabilities 12.0, libcuda says 8.6, 12.0",
    )


def test_gpus_come_from_the_first_source_that_knows_every_capability(box: Box) -> None:
    box.nvml = RecordedNvml(gpus=(("A100", None),))
    box.smi = "590.48.01, 8.0, A100, GPU-0\n"
    found = box.detect()
    assert found.gpus_source == "nvidia-smi"
    assert [str(capability) for capability in found.capabilities] == ["8.0"]
    box.smi = "590.48.01, [N/A], A100, GPU-0\n"
    assert box.detect().gpus_source == "NVML"


@pytest.mark.parametrize(
    ("code", "status"), [(12, "absent"), (9, "absent"), (999, "failed"), (18, "failed")]
)
def test_an_nvml_that_does_not_start_is_absent_or_failed(box: Box, code: int, status: str) -> None:
    box.nvml = RecordedNvml(init=code)
    assert _status(box.detect())["NVML"] == status


def test_bindings_that_cannot_be_imported_are_an_absent_source(box: Box) -> None:
    box.nvml = ImportError("No module named 'pynvml'")
    answer = box.detect().answers[0]
    assert (answer.status, answer.detail) == ("absent", "No module named 'pynvml'")


def test_a_mig_slice_has_the_capability_of_its_parent(box: Box) -> None:
    box.cuda = "version 12080\ndevice 9 0 NVIDIA H100 80GB HBM3 MIG 1g.10gb\n"
    box.smi = "570.26, 9.0, NVIDIA H100 80GB HBM3, GPU-0\n"
    found = box.detect()
    assert found.disagreements == ()
    assert [str(capability) for capability in found.capabilities] == ["9.0"]


def test_libcuda_sees_every_gpu_whatever_the_caller_hides(box: Box) -> None:
    box.detect({"CUDA_VISIBLE_DEVICES": "0", "PATH": "/bin"})
    (argv, environ), *_ = box.asked
    assert argv[:3] == (sys.executable, "-I", "-c")
    assert environ == {"PATH": "/bin"}


def test_a_libcuda_that_says_its_release_and_then_fails_still_counts(box: Box) -> None:
    box.cuda = "version 13000\nerror 804\n"
    answer = box.detect().answers[1]
    assert answer.status == "answered"
    assert answer.driver_cuda == CudaVersion(13, 0)
    assert answer.detail == "cuInit answered 804"


def test_a_libcuda_that_hangs_or_crashes_is_a_failed_source(box: Box) -> None:
    box.cuda = TimeoutError("no answer in 10 seconds")
    answer = box.detect().answers[1]
    assert (answer.status, answer.detail) == ("failed", "no answer in 10 seconds")
    crashed = read_libcuda(CommandAnswer(returncode=-11, stdout="", stderr=""))
    assert (crashed.status, crashed.detail) == ("failed", "the child ended with -11")


def test_under_wsl_its_own_libraries_are_asked_first(box: Box) -> None:
    box.file("proc/sys/kernel/osrelease", "5.15.167.4-microsoft-standard-WSL2\n")
    box.file("usr/lib/wsl/lib/libcuda.so.1")
    box.file("usr/lib/wsl/lib/nvidia-smi")
    found = box.detect()
    assert found.wsl
    child, *queries = [argv for argv, _ in box.asked]
    assert child[4] == str(box.root / "usr/lib/wsl/lib/libcuda.so.1")
    assert [argv[0] for argv in queries] == [
        "nvidia-smi",
        str(box.root / "usr/lib/wsl/lib/nvidia-smi"),
    ]


def test_a_stub_of_nvml_under_wsl_does_not_stop_the_ordinary_search(box: Box) -> None:
    box.file("usr/lib/wsl/lib/libnvidia-ml.so.1", "not a library")
    assert callable(load_nvml(box.root).nvmlInit)


def test_a_jetson_is_not_judged_by_the_branches_of_other_drivers(box: Box) -> None:
    box.file("etc/nv_tegra_release", "# R36 (release), REVISION: 4.0, GCID: 37537400\n")
    box.file("sys/module/nvidia/version", "540.4.0\n")
    assert box.detect().driver_cuda_source == "/etc/nv_tegra_release"
    box.cuda = "version 12060\ndevice 8 7 Orin\n"
    found = box.detect()
    assert found.tegra
    assert found.driver_cuda == CudaVersion(12, 6)
    assert found.disagreements == ()


def test_a_driver_older_than_every_branch_is_found_without_a_cuda(box: Box) -> None:
    box.file("sys/module/nvidia/version", "304.137\n")
    found = box.detect()
    assert found.found
    assert found.driver_cuda is None


def test_condas_variable_says_what_the_driver_supports(box: Box) -> None:
    box.nvml = RecordedNvml()
    found = box.detect({"CONDA_OVERRIDE_CUDA": "12.8"})
    assert found.driver is None
    assert found.driver_cuda == CudaVersion(12, 8)
    assert found.driver_cuda_source == "CONDA_OVERRIDE_CUDA"
    assert found.disagreements == ("CONDA_OVERRIDE_CUDA says CUDA 12.8, NVML says 13.1",)
    assert [str(capability) for capability in found.capabilities] == ["12.0"]
    agreed = box.detect({"CONDA_OVERRIDE_CUDA": "13.1"})
    assert str(agreed.driver) == "590.48.01"
    assert agreed.disagreements == ()


def test_condas_variable_makes_up_for_a_machine_without_a_driver(box: Box) -> None:
    found = box.detect({"CONDA_OVERRIDE_CUDA": "12.8"})
    assert found.found
    assert found.disagreements == ()


def test_an_empty_conda_variable_is_a_machine_without_cuda(box: Box) -> None:
    box.nvml = RecordedNvml()
    found = box.detect({"CONDA_OVERRIDE_CUDA": ""})
    assert not found.found
    assert found.gpus == ()
    assert found.answers[0].status == "answered"


def test_a_conda_variable_that_is_no_release_is_a_usage_error(box: Box) -> None:
    with pytest.raises(UsageError) as caught:
        box.detect({"CONDA_OVERRIDE_CUDA": "banana"})
    assert caught.value.where == "CONDA_OVERRIDE_CUDA"


@pytest.mark.parametrize(
    ("text", "driver"),
    [
        (_PROC, "590.48.01"),
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 2024\n",
            "535.183.01",
        ),
        ("470.57\n", "470.57"),
        ("NVRM version: none\nGCC version:  gcc version 13.3.0\n", None),
        ("", None),
        (None, None),
    ],
)
def test_the_files_of_the_kernel_driver(text: str | None, driver: str | None) -> None:
    answer = read_driver_file(text, source="file")
    assert answer.status == ("failed" if driver is None else "answered")
    assert answer.driver == (None if driver is None else parse_driver_version(driver))


def test_a_driver_file_that_cannot_be_read_is_a_failed_source(box: Box) -> None:
    # A folder in the place of the file cannot be read by anyone, not even by root.
    (box.root / "sys/module/nvidia/version").mkdir(parents=True)
    assert _status(box.detect())["/sys/module/nvidia/version"] == "failed"


def test_smi_is_asked_again_without_what_older_drivers_do_not_know(box: Box) -> None:
    def run(argv: Sequence[str], environ: Mapping[str, str]) -> CommandAnswer:
        box.asked.append((tuple(argv), dict(environ)))
        if argv[0] == sys.executable:
            return CommandAnswer(returncode=0, stdout="absent\n", stderr="")
        if "compute_cap" in argv[1]:
            said = 'Field "compute_cap" is not a valid field to query.\n'
            return CommandAnswer(returncode=2, stdout=said, stderr="")
        return CommandAnswer(returncode=0, stdout="470.57.02, Tesla T4, GPU-1\n", stderr="")

    found = detect({}, root=box.root, run=run, nvml=box.load)
    assert str(found.driver) == "470.57.02"
    assert found.gpus[0].name == "Tesla T4"
    assert found.gpus[0].uuid == "GPU-1"
    assert found.capabilities == ()


def test_smi_that_fails_says_its_first_line(box: Box) -> None:
    box.smi = CommandAnswer(returncode=9, stdout="NVIDIA-SMI has failed because\nmore\n", stderr="")
    answer = box.detect().answers[-1]
    assert (answer.status, answer.detail) == (
        "failed",
        "ended with 9: NVIDIA-SMI has failed because",
    )
    box.smi = PermissionError(13, "Permission denied")
    assert _status(box.detect())["nvidia-smi"] == "failed"


def test_the_banner_is_no_answer() -> None:
    banner = "| NVIDIA-SMI 610.43.02   KMD Version: 610.47   CUDA UMD Version: 13.3 |\n"
    answer = read_smi(CommandAnswer(returncode=0, stdout=banner, stderr=""), has_capability=True)
    assert answer.status == "failed"
    assert answer.driver_cuda is None


@given(st.text(), st.booleans(), st.integers(min_value=-20, max_value=3))
def test_any_output_at_all_is_an_answer(text: str, flag: bool, code: int) -> None:
    said = CommandAnswer(returncode=code, stdout=text, stderr=text)
    for answer in (
        read_smi(said, has_capability=flag),
        read_libcuda(said),
        read_driver_file(text, source="file"),
    ):
        assert isinstance(answer, SourceAnswer)
        assert answer.detail.isprintable()


def test_a_command_runs_without_input_and_with_the_given_environment() -> None:
    script = "import os, sys; print(os.environ['A'], repr(sys.stdin.read())); sys.exit(3)"
    answer = run_command([sys.executable, "-I", "-c", script], {"A": "1"})
    assert (answer.returncode, answer.stdout.strip()) == (3, "1 ''")


def test_a_command_is_not_looked_for_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\necho hello\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for path in ("", ".", os.pathsep):
        with pytest.raises(FileNotFoundError):
            run_command(["tool"], {"PATH": path})
    assert run_command(["tool"], {"PATH": str(tmp_path)}).stdout == "hello\n"


def test_a_command_that_hangs_is_ended() -> None:
    begin = time.monotonic()
    with pytest.raises(TimeoutError):
        run_command([sys.executable, "-c", "import time; time.sleep(60)"], {}, seconds=0.2)
    assert time.monotonic() - begin < 30


def test_the_child_says_that_a_machine_has_no_libcuda() -> None:
    answer = run_command([sys.executable, "-I", "-c", _CHILD, "no-such-library.so.1"], {})
    assert read_libcuda(answer).status == "absent"


def test_the_interpreter_that_runs_this_is_described() -> None:
    here = detect_interpreter()
    assert here.version.startswith(f"{sys.version_info.major}.{sys.version_info.minor}.")
    assert here.implementation == sys.implementation.name
    assert not here.platform.startswith("linux_")
