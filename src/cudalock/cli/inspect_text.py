"""The page that ``cudalock inspect`` prints: what a wheel holds, at a glance, in 80 columns."""

import textwrap
from collections.abc import Iterable

from cudalock.wheel.coverage import DeviceCoverage
from cudalock.wheel.report import DeviceReport, LibraryReport, WheelReport

__all__ = ["inspect_text"]

_VERDICTS = {
    "runs": "runs: every library serves it",
    "in-part": "in part: some libraries hold nothing for it",
    "nothing": "nothing in it runs there",
    "unknown": "not known: not enough was read, or understood",
    "no-device-code": "no device code: it needs none, or compiles on the machine",
}
_TIERS = {
    "T1": "names only",
    "T2": "heads of the libraries",
    "T3": "until each library showed code for the target",
    "T4": "whole",
}


def inspect_text(filename: str, report: WheelReport, *, width: int) -> str:
    """Return the page: what the wheel holds together, then a block a library with device code."""
    read = f"{report.bytes_read / 1e6:.1f} of {report.size / 1e6:.1f} MB"
    lines = [filename, f"  read {_TIERS[report.tier]}: {read}", ""]
    lines += _row("architectures", report.architectures, width)
    lines += _row("PTX", report.ptx, width)
    lines += _row("needs", _telling(report.needed), width)
    for name, count in report.loose:
        lines += _row("files for", [f"{name}: {count}"], width)
    for library in report.libraries:
        if library.copy_of is None and (library.containers or library.architectures):
            lines += ["", library.path, *_library(library, width)]
    for device in report.devices:
        lines += ["", f"on {device.capability}: {_VERDICTS[device.verdict]}", *_device(device)]
    lines += [f"  odd: {text}" for text in report.anomalies]
    if not report.complete:
        lines += ["", "Not everything was read: what is not listed may still be there."]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _telling(sonames: Iterable[str]) -> list[str]:
    """Leave out what every Linux has: the C library and its kin."""
    plain = ("libc.", "libm.", "libdl.", "librt.", "libpthread.", "libgcc_s.", "libstdc++.", "ld-")
    return [name for name in sonames if not name.startswith(plain)]


def _library(library: LibraryReport, width: int) -> list[str]:
    lines = _row("architectures", library.architectures, width)
    lines += _row("PTX", library.ptx, width)
    lines += _row("needs", _telling(library.needed or ()), width)
    abi = {"cxx": "C++ symbols", "stable": "the stable ABI", "none": "", None: ""}
    told = abi[library.torch_abi]
    return lines + (_row("torch by", [told], width) if told else [])


def _device(device: DeviceReport) -> list[str]:
    longest = max((len(path) for path, _ in device.coverage), default=0)
    return [
        f"  {path.ljust(min(longest, 48))}  {_coverage(coverage)}"
        for path, coverage in device.coverage
    ]


def _coverage(coverage: DeviceCoverage) -> str:
    by_ptx = f", {coverage.by_ptx} by PTX" if coverage.by_ptx else ""
    told = f"{coverage.served} of {coverage.units}{by_ptx}"
    return f"{told} ({coverage.reason})" if coverage.reason else told


def _row(name: str, values: Iterable[str], width: int) -> list[str]:
    lead = f"  {name:<14}"
    text = ", ".join(values) or "none"
    return textwrap.wrap(
        text,
        width,
        initial_indent=lead,
        subsequent_indent=" " * len(lead),
        break_long_words=False,
        break_on_hyphens=False,
    )
