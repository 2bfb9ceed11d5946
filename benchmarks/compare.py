"""Times `cudalock resolve` against `uv pip compile`, pair by pair, on the replay index.

Both write a lock with hashes for the same Python and platform, from the same recorded pages, as
whole processes. In each pair one tool follows the other at once, taking turns to go first; what is
compared is the median of the pairs' ratios, since a shared machine's absolute times wander.
Cold is an empty cache; warm is the same command again with a new output file. Peak memory is the
largest process of the command. "Same pins" counts the versions that both chose: where it is less
than either's packages, the tools did not do quite the same work. A run in which the index had to
record something is repeated.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_TOP = Path(__file__).resolve().parent.parent
_BIN = Path(sys.executable).parent
_PYTHON = "3.12"
_PLATFORM = "manylinux_2_28_x86_64"
# Enough for what two tools guess differently from one run to the next.
_MOST_REPEATS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What to lock, and the CUDA release that admits what uv chooses, which knows of none."""

    requirements: tuple[str, ...]
    cuda: str


def _work(requirements: str, cuda: str) -> Work:
    return Work(requirements=tuple(requirements.split()), cuda=cuda)


WORKS = {
    "W1": _work("torch torchvision torchaudio", "13.5"),
    "W2": _work("sglang", "12.8"),
    "W3": _work("vllm", "13.0"),
    "W4": _work(
        "sglang flashinfer-python transformers accelerate ray pandas scikit-learn jupyterlab"
        " fastapi",
        "12.8",
    ),
    "W5a": _work("sglang vllm", "13.0"),
    "W5d": _work(
        "click>=7.0 click-loglevel~=0.2 dandi>=0.24.0 psutil~=5.9 pyyaml selenium", "13.0"
    ),
    "W5f": _work("boto3>=1.26 urllib3<1.26 botocore>=1.29 s3fs aiobotocore", "13.0"),
}
"""By the names that results are quoted with."""


class BenchmarkError(Exception):
    """A run did not give what is to be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of one tool: seconds, mebibytes, and what the index was asked."""

    wall: float
    cpu: float
    peak: float
    counts: dict[str, int]
    pins: frozenset[tuple[str, str]]

    @property
    def requests(self) -> int:
        """Every request, those answered with "unchanged" too."""
        return sum(self.counts.get(kind, 0) for kind in ("pages", "metadata", "heads", "ranges"))


@contextmanager
def _serving() -> Iterator[str]:
    """Run the replay index in a process of its own; give its address."""
    command = [sys.executable, "-m", "benchmarks.replay"]
    with subprocess.Popen(
        command, cwd=_TOP, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        if server.stdout is None or server.stdin is None:
            raise BenchmarkError("expected pipes to the replay index")
        yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        server.stdin.close()


def _take_counts(address: str) -> dict[str, int]:
    # The address is our own server's on loopback.
    with urllib.request.urlopen(f"{address}/-/counts") as answer:  # noqa: S310 - see above
        counts = json.loads(answer.read())
    return {str(kind): int(count) for kind, count in counts.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    """What is locked, from which index, and where caches are kept."""

    work: str
    address: str
    index: str
    folder: Path

    def cache(self, tool: str) -> Path:
        """Give the tool's cache folder."""
        return self.folder / f"{tool}-cache"


def _command(tool: str, setting: _Setting, output: Path) -> list[str]:
    cache = str(setting.cache(tool))
    work = WORKS[setting.work]
    if tool == "cudalock":
        return [
            str(_BIN / "cudalock"), "resolve", *work.requirements,
            "--cuda", work.cuda, "--python", _PYTHON, "--platform", _PLATFORM,
            "--only-default-index", "--default-index", setting.index,
            "--cache-dir", cache, "-o", str(output),
        ]  # fmt: skip
    given = setting.folder / "requirements.in"
    given.write_text("\n".join(work.requirements) + "\n", encoding="utf-8")
    return [
        str(_BIN / "uv"), "pip", "compile", str(given), "--quiet", "--no-config",
        "--python", sys.executable, "--no-python-downloads", "--python-version", _PYTHON,
        "--python-platform", "x86_64-manylinux_2_28", "--only-binary", ":all:",
        "--default-index", setting.index, "--cache-dir", cache,
        "--format", "pylock.toml", "-o", str(output),
    ]  # fmt: skip


def _run_once(tool: str, setting: _Setting) -> Run:
    """Run the command with an output file of its own: an earlier one would guide the tools."""
    with tempfile.TemporaryDirectory(dir=setting.folder) as place:
        output = Path(place) / "pylock.toml"
        command = _command(tool, setting, output)
        said = Path(place) / "said"
        environment = {"PATH": os.defpath, "HOME": str(setting.folder), "LANG": "C.UTF-8"}
        _take_counts(setting.address)
        with said.open("wb") as stream:
            start = time.perf_counter()
            process = subprocess.Popen(command, env=environment, stdout=stream, stderr=stream)
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            words = said.read_text(errors="replace").strip()[-600:]
            raise BenchmarkError(f"{tool}: exit {process.returncode}: {words}")
        packages = tomllib.loads(output.read_text(encoding="utf-8"))["packages"]
    return Run(
        wall=wall,
        cpu=usage.ru_utime + usage.ru_stime,
        peak=usage.ru_maxrss / 1024,
        counts=_take_counts(setting.address),
        pins=frozenset((pin["name"], pin.get("version", "")) for pin in packages),
    )


def _run(tool: str, setting: _Setting, *, cold: bool) -> Run:
    """Run until nothing had to be recorded."""
    for _ in range(_MOST_REPEATS):
        if cold:
            shutil.rmtree(setting.cache(tool), ignore_errors=True)
        run = _run_once(tool, setting)
        recorded = run.counts.get("recorded", 0)
        if not recorded:
            return run
        print(f"  {setting.work}: recorded {recorded} for {tool}, again", file=sys.stderr)
    raise BenchmarkError(f"{tool}: asks for something new each time")


def _compare(work: str, address: str, index: str, pairs: int) -> dict[str, dict[str, list[Run]]]:
    """Give the runs of each phase and tool; the runs of one pair have one position."""
    runs: dict[str, dict[str, list[Run]]] = {
        phase: {"uv": [], "cudalock": []} for phase in ("cold", "warm")
    }
    with tempfile.TemporaryDirectory(prefix="cudalock-bench-") as folder:
        setting = _Setting(work=work, address=address, index=index, folder=Path(folder))
        for phase, tools in runs.items():
            for number in range(pairs):
                order = ("uv", "cudalock") if number % 2 == 0 else ("cudalock", "uv")
                for tool in order:
                    tools[tool].append(_run(tool, setting, cold=phase == "cold"))
    return runs


def _median(values: Iterator[float]) -> float:
    return statistics.median(values)


def _row(label: str, phase: str, tools: dict[str, list[Run]]) -> str:
    uv, ours = tools["uv"], tools["cudalock"]
    both = list(zip(ours, uv, strict=True))
    ratios = (
        f"{_median(one.wall / other.wall for one, other in both):7.2f}x"
        f"{_median(one.cpu / other.cpu for one, other in both):6.2f}x"
    )
    same = f"{len(uv[-1].pins & ours[-1].pins):5d} "
    return "|".join([f"{label:<14}{phase:<6}", _cells(uv), _cells(ours), same + ratios])


def _cells(runs: list[Run]) -> str:
    return (
        f"{_median(run.wall for run in runs):7.3f}{_median(run.cpu for run in runs):7.3f}"
        f"{_median(run.peak for run in runs):6.0f}{_median(run.requests for run in runs):6.0f}"
        f"{_median(run.counts.get('bytes', 0) / 2**20 for run in runs):7.1f}"
        f"{len(runs[-1].pins):5d} "
    )


def _print_head() -> None:
    side = f"{'wall':>7}{'cpu':>7}{'MiB':>6}{'reqs':>6}{'MB in':>7}{'pkgs':>5} "
    print(f"{'':<20}|{'uv':^38}|{'cudalock':^38}|same {'cudalock / uv':>16}")
    print(f"{'work':<14}{'phase':<6}|{side}|{side}|pins  {'wall':>7} {'cpu':>6}")


def main() -> int:
    """Compare on the works asked for; the exit code is 1 when one could not be compared."""
    parser = argparse.ArgumentParser(description="Time cudalock against uv on recorded pages.")
    parser.add_argument("works", nargs="*", default=["W1", "W2"], help=" ".join(WORKS))
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--manner", nargs="+", choices=["real", "bare"], default=["real"])
    parser.add_argument("--latency", nargs="+", type=int, default=[25], help="milliseconds")
    options = parser.parse_args()
    if unknown := [work for work in options.works if work not in WORKS]:
        parser.error(f"expected some of {' '.join(WORKS)}, found {' '.join(unknown)}")
    failed = False
    _print_head()
    with _serving() as address:
        for work in options.works:
            for manner in options.manner:
                for latency in options.latency:
                    try:
                        index = f"{address}/{manner}/{latency}/simple"
                        runs = _compare(work, address, index, options.pairs)
                    except BenchmarkError as error:
                        failed = True
                        print(f"{work} {manner} {latency} ms: {error}", file=sys.stderr)
                        continue
                    for phase, tools in runs.items():
                        print(_row(f"{work} {manner} {latency}", phase, tools), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
