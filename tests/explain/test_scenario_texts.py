"""What is said in scenarios, as prose: each text is a file under `tests/golden/scenarios`.

Rewrite them with ``pytest --update-golden`` and read the difference as a person would. A set says
its warnings, a refusal its conflict, and "could not tell" what was seen; the derivation of ``-v``
stands below a refusal.
"""

from collections.abc import Callable
from io import StringIO

import pytest

from cudalock.cli.main import report_error
from cudalock.cli.report import report_conflict, report_resolution
from cudalock.cli.terminal import Terminal
from cudalock.resolver.conflict import Conflict, NoSolutionError
from cudalock.resolver.engine import Solution
from cudalock.resolver.notes import describe
from scenario_worlds import Scenario, read_scenario, scenario_paths

_SCENARIOS = {path.stem: read_scenario(path) for path in scenario_paths()}
_TOLD = (
    "as-of-before-a-pin",
    "build-without-the-gpu",
    "compiler-too-old-for-the-gpu",
    "constraint-on-a-url",
    "cubins-carried-as-data",
    "cuda-13-set-beside-a-cu129-cache",
    "dev-is-before-final",
    "driver-too-old-for-a-major",
    "family-stops-short",
    "forward-compatibility-too-new",
    "glibc-of-the-target-under-strict",
    "honest-conflict-of-pins",
    "kernel-of-another-torch",
    "label-names-no-such-torch",
    "metadata-broken-and-needed",
    "as-of-without-a-date",
    "minor-policy",
    "name-that-is-not-the-publishers",
    "never-the-cpu-build",
    "nightly-of-a-variant-without-a-companion",
    "nightly-purged",
    "nightly-story",
    "nightly-train-of-other-days",
    "nothing-of-that-name",
    "one-name-in-every-folder",
    "page-not-whole",
    "pairing-outranks-the-label",
    "pin-that-no-index-has",
    "placeholder-in-place-of-a-nightly",
    "pre-release-pinned-by-nobody-chosen",
    "ptx-only-as-a-last-resort",
    "some-libraries-lack-the-gpu",
    "bytes-name-the-runtime",
    "library-that-nobody-brings",
    "library-without-the-gpu",
    "publisher-requires-both-owners",
    "strict-policy",
    "strict-wants-every-library",
    "symbols-that-torch-does-not-export",
    "two-wheels-own-one-file",
    "whole-wheel-without-the-gpu",
    "strict-policy-of-a-driver",
    "tegra-runs-no-desktop-code",
    "toolkit-part-forced-newer",
    "two-cudnn-pins",
    "two-majors-by-name",
    "untagged-build-of-the-right-cuda",
    "v100-and-cuda-13",
    "variant-of-unknown-features",
    "variant-only-and-not-asked-for",
    "yanked-and-pinned",
)


def _told(scenario: Scenario, *, verbose: bool = False) -> str:
    stream = StringIO()
    terminal = Terminal(environ={}, stream=stream, verbose=verbose)
    world, outcome = scenario.attempt()
    match outcome:
        case Solution():
            resolution = describe(world, outcome)
            report_resolution(terminal, resolution, written="pylock.toml", requests=0)
        case NoSolutionError():
            report_conflict(terminal, outcome.conflict, outcome.target)
        case _:
            report_error(outcome, terminal)
    return stream.getvalue().strip("\n") + "\n"


@pytest.mark.parametrize("name", _TOLD)
def test_a_scenario_reads_as_written(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"scenarios/{name}.txt", _told(_SCENARIOS[name]))


@pytest.mark.parametrize("name", ["nightly-story", "v100-and-cuda-13", "two-independent-conflicts"])
def test_a_derivation_reads_as_written(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"scenarios/{name}-verbose.txt", _told(_SCENARIOS[name], verbose=True))


def _conflict(name: str) -> Conflict:
    _, outcome = _SCENARIOS[name].attempt()
    assert isinstance(outcome, NoSolutionError)
    return outcome.conflict


_REFUSED = [name for name, scenario in _SCENARIOS.items() if scenario.refused]


@pytest.mark.parametrize("name", _REFUSED)
def test_the_derivation_names_every_fact_version_and_source_of_a_refusal(name: str) -> None:
    conflict = _conflict(name)
    told = " ".join(_told(_SCENARIOS[name], verbose=True).split())
    for described in (*conflict.facts, *(fact for facts in conflict.also for fact in facts)):
        said = [*described.sources, *(map(str, described.versions))]
        missing = [text for text in said if " ".join(text.split()) not in told]
        assert missing == []
    for summary in conflict.projects:
        for reason, count in summary.rejections:
            assert f"{count} {reason}" in told


@pytest.mark.parametrize("name", _REFUSED)
def test_a_usual_conflict_takes_some_ten_lines_of_80_columns(name: str) -> None:
    lines = _told(_SCENARIOS[name]).splitlines()
    assert all(len(line) <= 80 or " " not in line.strip() for line in lines)
    conflict = _conflict(name)
    facts = len(conflict.facts)
    if not conflict.also and facts <= 4:
        assert len(lines) <= 16, f"{facts} facts in {len(lines)} lines"
