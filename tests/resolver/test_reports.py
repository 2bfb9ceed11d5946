"""The public reports that cudalock is measured by: each is a scenario, or a test that names it.

A scenario names its report in ``source``. What was decided is counted, and shown with -s.
"""

from collections import Counter
from pathlib import Path

import pytest

from scenario_worlds import Scenario, read_scenario, scenario_paths

_TESTS = Path(__file__).resolve().parent.parent

# What the solver decides, by the first thread of each report.
_SOLVED = (
    "sgl-project/sglang#29425",
    "unslothai/unsloth#6955",
    "talmolab/sleap-nn#479",
    "bmaltais/kohya_ss#3605",
    "ROCm/TheRock#7183",
    "MeteoSwiss/evalml#165",
    "astral-sh/uv#17050",
    "sgl-project/sglang#30562",
    "kvcache-ai/sglang#33",
    "pytorch/ao#2919",
    "Dao-AILab/flash-attention#1783",
    "facebookresearch/xformers#752",
    "astral-sh/uv#10119",
    "PrimeIntellect-ai/prime-rl#3425",
    "flashinfer-ai/flashinfer#4781",
    "vllm-project/vllm#49804",
    "lightseekorg/tokenspeed#284",
    "flashinfer-ai/flashinfer#3294",
    "flashinfer-ai/flashinfer#3675",
    "flashinfer-ai/flashinfer#4363",
    "HybridRobotics/berkeley-humanoid-lite#49",
    "astral-sh/uv#14742",
    "OpenRAL/openral#167",
    "jax-ml/jax#40487",
    "vllm-project/vllm#26592",
    "triton-lang/triton#8539",
    "pytorch/pytorch#162531",
    "visualbruno/ComfyUI-Trellis2#131",
    "gpustack/gpustack#5459",
    "sgl-project/sglang#22833",
    "Jim137/qkan#29",
    "bghira/SimpleTuner#2812",
    "apple/axlearn#858",
    "ma-gilles/recovar#64",
    "pytorch/pytorch#172926",
    "openai/openai-cookbook#2330",
    "pytorch/pytorch#87075",
    "pytorch/pytorch#168953",
    "sgl-project/sglang#18404",
    "astral-sh/uv#16784",
    "vllm-project/vllm#28201",
    "prefix-dev/pixi#3193",
    "pytorch/pytorch#126551",
    "pytorch/pytorch#91539",
    "pyg-team/pytorch_geometric#10142",
    "vllm-project/vllm#48592",
    # These turn on what a wheel's libraries need, or on the paths it owns.
    "pytorch/pytorch#146679",
    "pollen-robotics/microduck_rl#38",
    "marin-community/marin#7344",
)
# What other rooms decide: hashes, the lock's form, detection, a target that nobody gave.
_TOLD_BY_OTHERS = {
    "pytorch/pytorch#164347": "test_session_hashes.py",
    "hushh-labs/hushh-research#6584": "lock/test_lock_write.py",
    "unslothai/unsloth#10985": "cli/test_resolve_flags.py",
    "astral-sh/uv#12994": "cli/test_resolve_flags.py",
    "nikopueringer/CorridorKey#112": "host/test_host_precedence.py",
}
_SCENARIOS = [read_scenario(path) for path in scenario_paths()]


def _of(report: str) -> list[Scenario]:
    named = [(s, s.table.get("source", "").replace(",", " ").split()) for s in _SCENARIOS]
    return [scenario for scenario, words in named if report in words]


@pytest.mark.parametrize("report", _SOLVED)
def test_a_report_is_a_scenario(report: str) -> None:
    assert _of(report)


@pytest.mark.parametrize(("report", "path"), _TOLD_BY_OTHERS.items())
def test_a_report_for_another_room_is_named_by_its_test(report: str, path: str) -> None:
    assert report in (_TESTS / path).read_text(encoding="utf-8")


def test_what_comes_of_the_reports() -> None:
    counts = Counter[str]()
    for report in _SOLVED:
        scenarios = _of(report)
        counts["lock"] += any(s.pins is not None for s in scenarios)
        counts["refuse"] += any(s.refused for s in scenarios)
        counts["warn"] += any(s.warns for s in scenarios)
        counts["offer a remedy"] += any(s.remedies for s in scenarios)
    counts["are shown by a test of another room"] = len(_TOLD_BY_OTHERS)
    total = len(_SOLVED) + len(_TOLD_BY_OTHERS)
    told = ", ".join(f"{count} {what}" for what, count in counts.items())
    print(f"\nof {total} reports (one may do several): {told}")  # noqa: T201 - shown with -s
    assert total == 54
