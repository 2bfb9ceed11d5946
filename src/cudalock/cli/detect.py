"""``cudalock detect``: each source on this machine, and its answer."""

import json
import sys
from argparse import Namespace
from collections.abc import Mapping

from cudalock.cli.terminal import Terminal, printable
from cudalock.host import Detection, Interpreter, SourceAnswer, detect, detect_interpreter

__all__ = ["run_detect"]

_SCHEMA = "cudalock/detect/1"


def run_detect(args: Namespace, environ: Mapping[str, str], terminal: Terminal) -> int:
    """Ask this machine: 0 a driver was found, 1 there is none, 3 a source failed to answer."""
    with terminal.status("asking NVML, libcuda, /proc, /sys and nvidia-smi"):
        detection = detect(environ)
        interpreter = detect_interpreter()
    if args.format == "json":
        sys.stdout.write(json.dumps(_as_json(detection, interpreter), indent=2) + "\n")
    else:
        sys.stdout.write(printable(_as_text(detection, interpreter)))
    for disagreement in detection.disagreements:
        terminal.warn(disagreement)
    if not detection.found:
        terminal.say(
            "No NVIDIA driver was found here. To lock for another machine, name it: --driver, "
            "--driver-cuda or --cuda, with --sm or --gpu; or --cpu for none."
        )
    return {"found": 0, "none": 1, "unknown": 3}[_status(detection)]


def _as_text(detection: Detection, interpreter: Interpreter) -> str:
    rows = [
        ("driver", _value(detection.driver), detection.driver_source or ""),
        ("driver CUDA", _value(detection.driver_cuda), detection.driver_cuda_source or ""),
        (
            "compute capability",
            ", ".join(str(c) for c in detection.capabilities) or "unknown",
            detection.gpus_source or "",
        ),
        ("Python", f"{interpreter.version} ({interpreter.implementation})", "this interpreter"),
        ("platform", interpreter.platform, "this interpreter"),
    ]
    lines = [_row(*row) for row in rows]
    lines += [f"  {gpu.name or 'a GPU'}" for gpu in detection.gpus]
    lines += ["", "Sources, the strongest first:"]
    lines += [f"  {answer.source:<32} {_answer(answer)}" for answer in detection.answers]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _value(value: object) -> str:
    return "unknown" if value is None else str(value)


def _row(name: str, value: str, source: str) -> str:
    told = f"({source})" if source and value != "unknown" else ""
    return f"{name:<20} {value:<28} {told}"


def _answer(answer: SourceAnswer) -> str:
    if answer.status != "answered":
        return f"{answer.status}: {answer.detail}" if answer.detail else answer.status
    parts = []
    if answer.driver is not None:
        parts.append(f"driver {answer.driver}")
    if answer.driver_cuda is not None:
        parts.append(f"CUDA {answer.driver_cuda}")
    if answer.gpus:
        parts.append(f"{len(answer.gpus)} GPU" + ("s" if len(answer.gpus) > 1 else ""))
    return ", ".join(parts) or answer.detail or "answered"


def _status(detection: Detection) -> str:
    if detection.found:
        return "found"
    failed = any(answer.status == "failed" for answer in detection.answers)
    return "unknown" if failed else "none"


def _as_json(detection: Detection, interpreter: Interpreter) -> dict[str, object]:
    return {
        "schema": _SCHEMA,
        "status": _status(detection),
        "driver": None if detection.driver is None else str(detection.driver),
        "driver_source": detection.driver_source,
        "driver_cuda": None if detection.driver_cuda is None else str(detection.driver_cuda),
        "driver_cuda_source": detection.driver_cuda_source,
        "gpus": [
            {
                "name": gpu.name,
                "capability": None if gpu.capability is None else str(gpu.capability),
                "uuid": gpu.uuid,
            }
            for gpu in detection.gpus
        ],
        "python": interpreter.version,
        "platform": interpreter.platform,
        "disagreements": list(detection.disagreements),
        "sources": [
            {
                "source": answer.source,
                "status": answer.status,
                "detail": answer.detail,
                "driver": None if answer.driver is None else str(answer.driver),
                "driver_cuda": None if answer.driver_cuda is None else str(answer.driver_cuda),
                "gpus": len(answer.gpus),
            }
            for answer in detection.answers
        ],
    }
