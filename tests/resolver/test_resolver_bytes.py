"""What is said of a set by the bytes of its wheels: proofs by rule, clashes of paths, missing symbols."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from packaging.version import Version

from contents_builder import make_contents
from cudalock.resolver.byte_demands import missing_in, release_demands, symbol_demands
from cudalock.resolver.engine import Solution
from cudalock.resolver.notes import describe
from cudalock.resolver.path_clashes import PathClash, path_clashes
from cudalock.resolver.resolution import Proof, Resolution
from cudalock.wheel.wheel_facts import ExportTable, WheelFacts, symbol_digest
from scenario_worlds import Scenario

_LINUX = "cp312-cp312-manylinux_2_28_x86_64"
_A, _B = "_ZN3c101aEv", "_ZN3c101bEv"
_KNOWLEDGE = """
[[entry]]
kind = "shared-library"
project = "runtime"
value = { names = ["libcudart"], numbers = "cuda" }
source = "made up"
date = "2026-12-01"

[[entry]]
kind = "runtime-library"
project = "runtime"
value = 13
source = "made up"
date = "2026-12-01"

[[entry]]
kind = "compiles"
project = "jit"
source = "made up"
date = "2026-12-01"

[[entry]]
kind = "pairing"
project = "paired"
versions = "==1.0"
value = { torch = "2.11" }
source = "METADATA of a server"
date = "2026-12-01"
"""


def _resolve(
    wheels: Sequence[tuple[str, Mapping[str, Any] | None]],
    *,
    requires: Mapping[str, Sequence[str]] | None = None,
    asked: Sequence[str] | None = None,
    exports: Mapping[str, Sequence[str]] | None = None,
    more: Mapping[str, Any] | None = None,
) -> tuple[Scenario, Resolution, list[PathClash]]:
    tables: list[dict[str, Any]] = []
    for number, (name, contents) in enumerate(wheels, 1):
        project = name.partition("-")[0]
        table: dict[str, Any] = {"file": f"{name}-{_LINUX}.whl", "sha256": [f"{number:02x}"]}
        table["requires"] = list((requires or {}).get(project, ()))
        table["extras"] = ["all"]
        if contents is not None:
            table["bytes"] = contents
        tables.append(table)
    scenario = Scenario(
        name="bytes",
        table={
            "requirements": list(asked or [name.partition("-")[0] for name, _ in wheels]),
            "wheels": tables,
            "knowledge": _KNOWLEDGE,
            "target": {"driver": "590.48.01", "cuda": "13.0", "sm": ["12.0"]},
            "exports": {"torch": dict(exports or {})},
            "expect": {},
            **(more or {}),
        },
    )
    world, outcome = scenario.attempt()
    assert isinstance(outcome, Solution), outcome
    return scenario, describe(world, outcome), list(path_clashes(world, outcome))


def _library(path: str = "left/_C.so", **more: object) -> dict[str, Any]:
    return {"libraries": [{"path": path, **more}]}


def _proofs(resolution: Resolution, project: str) -> dict[str, tuple[str, str]]:
    (package,) = (each for each in resolution.packages if each.project == project)
    found: tuple[Proof, ...] = package.proofs
    return {proof.rule: (proof.state, proof.text) for proof in found}


def _states(resolution: Resolution, project: str) -> dict[str, str]:
    return {rule: state for rule, (state, _) in _proofs(resolution, project).items()}


def test_what_the_bytes_tell_is_proven() -> None:
    contents = _library(needed=["libcudart.so.13"], code=["sm_120", "sm_90 sm_120"])
    _, found, _ = _resolve([("left-1.0", contents), ("runtime-13.0", {})])
    assert _proofs(found, "left") == {
        "cuda-runtime": (
            "proven",
            f"NEEDED libcudart.so.13 (left/_C.so in left-1.0-{_LINUX}.whl)",
        ),
        "gpu 12.0": ("proven", f"left/_C.so 2 of 2 (read from left-1.0-{_LINUX}.whl)"),
    }


def test_a_label_is_assumed_and_what_was_not_read_is_unknown() -> None:
    _, found, _ = _resolve([("left-1.0+cu130", None)])
    assert _states(found, "left") == {"cuda-runtime": "assumed", "gpu 12.0": "unknown"}
    _, found, _ = _resolve([("left-1.0", None)])
    assert _proofs(found, "left") == {
        "cuda-runtime": ("unknown", "not read: the scenario says nothing of its bytes")
    }
    _, found, _ = _resolve([("left-1.0", {"tier": "T2", **_library(code=["sm_120"])})])
    assert _states(found, "left") == {"cuda-runtime": "unknown", "gpu 12.0": "proven"}
    _, found, _ = _resolve([("left-1.0", {"tier": "T2", **_library()})])
    assert _proofs(found, "left") == {
        "cuda-runtime": ("unknown", "nothing in what was read tells"),
        "gpu 12.0": ("unknown", f"left/_C.so unknown (read from left-1.0-{_LINUX}.whl)"),
    }


def test_a_wheel_without_cuda_has_nothing_to_prove_but_that() -> None:
    _, found, _ = _resolve([("left-1.0", _library(needed=["libc.so.6"]))])
    assert _proofs(found, "left") == {"gpu 12.0": ("proven", "no device code in it")}


def test_device_code_that_does_not_count_is_not_called_none() -> None:
    brought = {
        "libraries": [
            {"path": "left/_C.so", "needed": ["libcudart.so.13"]},
            {"path": "left/libcudart.so.13", "code": ["sm_50"]},
        ]
    }
    runtime = _library("lib/libcudart.so.13", soname="libcudart.so.13", code=["sm_50"])
    _, found, _ = _resolve(
        [("left-1.0", brought), ("runtime-13.0", runtime), ("jit-1.0", _library(code=["sm_50"]))]
    )
    nothing = ("proven", "no device code of its own in it")
    assert _proofs(found, "left")["gpu 12.0"] == nothing
    assert _proofs(found, "jit")["gpu 12.0"] == nothing
    # What a library of CUDA itself runs on is its toolkit's business: nothing is claimed.
    assert "gpu 12.0" not in _proofs(found, "runtime")


def test_many_libraries_are_counted_and_a_few_named() -> None:
    contents = {"libraries": [{"path": f"l/{n}.so", "code": ["sm_120"]} for n in range(8)]}
    _, found, _ = _resolve([("left-1.0", contents)])
    _, text = _proofs(found, "left")["gpu 12.0"]
    assert text.startswith("l/0.so 1 of 1, ")
    assert ", l/5.so 1 of 1, 2 more (read from " in text


# Symbols of torch


@pytest.mark.parametrize(
    ("contents", "state"),
    [
        (_library(torch=[_A]), "proven"),
        ({"tier": "T2", **_library(torch=[_A])}, "proven"),
        # Names that nobody saw may be missing.
        (_library(torch=[_A], inexact=True), "assumed"),
        (_library(torch=[]), None),
    ],
)
def test_a_library_that_misses_nothing_is_proven_if_all_its_symbols_are_known(
    contents: Mapping[str, Any], state: str | None
) -> None:
    _, found, _ = _resolve([("left-1.0", contents), ("torch-2.11.0", {})], exports={"2.11.0": [_A]})
    assert _states(found, "left").get("libtorch") == state
    assert "libtorch" not in _states(found, "torch")


def test_a_pairing_is_assumed_where_the_symbols_do_not_tell() -> None:
    _, found, _ = _resolve(
        [("paired-1.0", None), ("torch-2.11.0", {})], exports={"2.11.0": [_A], "2.9.1": []}
    )
    assert _proofs(found, "paired")["libtorch"] == (
        "assumed",
        "is built for torch 2.11 (METADATA of a server)",
    )


def _table(release: str, *names: str, partial: bool = False) -> ExportTable:
    digests = b"".join(sorted(map(symbol_digest, names)))
    return ExportTable(
        project="torch",
        release=Version(release),
        source="torch.whl",
        digests=digests,
        partial=partial,
    )


@pytest.mark.parametrize(
    ("libraries", "missing"),
    [
        ([], ()),
        ([{"path": "a.so"}], ()),
        ([{"path": "a.so", "torch": [_A]}], ()),
        ([{"path": "a.so", "torch": [_A, _B]}], (("a.so", _B),)),
        # It may be in the library beside it, whose symbols are not all known.
        ([{"path": "a.so", "torch": [_B]}, {"path": "b.so", "inexact": True}], None),
        # Of builds of one library one that fits is enough.
        ([{"path": "a_cu12.so", "torch": [_B]}, {"path": "a_cu13.so", "torch": [_A]}], ()),
        (
            [{"path": "a_cu12.so", "torch": [_B, "_Zx"]}, {"path": "a_cu13.so", "torch": [_B]}],
            (("a_cu13.so", _B),),
        ),
        # Builds for releases of torch may do without any.
        ([{"path": "a_torch28.so", "torch": [_B]}, {"path": "a_torch29.so", "torch": [_B]}], None),
        (
            [{"path": "a_torch28.so", "torch": [_B]}, {"path": "b.so", "torch": [_B]}],
            (("b.so", _B),),
        ),
    ],
)
def test_what_is_missing_in_a_release_is_told_library_by_library(
    libraries: Sequence[Mapping[str, Any]], missing: tuple[tuple[str, str], ...] | None
) -> None:
    assert missing_in(make_contents({"libraries": libraries}), _table("2.11.0", _A)) == missing


def test_a_release_is_told_by_number_and_not_by_its_spelling() -> None:
    tables = [_table("2.11"), _table("2.10.0")]
    (demand,) = release_demands("torch", Version("2.11.0+cu130"), tables)
    assert demand.package == "<libtorch 2.11>"
    assert release_demands("torch", Version("2.12.0"), tables) == []
    assert release_demands("other", Version("2.11.0"), tables) == []


def test_what_speaks_against_a_release_shows_the_plainest_symbol_and_counts_the_rest() -> None:
    contents = make_contents(_library(torch=["_ZN3c105ErrorD1Ev", _B, "torch_x"]))
    facts = WheelFacts(filename="left.whl", contents=contents)
    tables = [_table("2.11.0", "torch_x"), _table("2.9.1", partial=True)]
    demands = symbol_demands("left", facts, tables)
    assert demands[Version("2.9.1")] is None
    demand = demands[Version("2.11.0")]
    assert demand is not None
    assert demand.values == {"another"}
    assert demand.fact.detail == ("needs `c10::b` and 1 more, which torch 2.11.0 does not export")
    assert demand.fact.source == "left/_C.so in left.whl"
    # Torch's own libraries are not held against torch.
    assert symbol_demands("torch", facts, tables) == {}


# Paths


def _owning(number: int, *paths: str) -> dict[str, Any]:
    return {"libraries": [{"path": path, "bytes": number} for path in paths]}


def test_one_path_with_the_same_bytes_is_no_clash() -> None:
    _, _, clashes = _resolve(
        [("left-1.0", _owning(1, "x/a.so")), ("right-1.0", _owning(1, "x/a.so"))]
    )
    assert clashes == []


def test_what_one_wheel_requires_together_is_told_and_locked() -> None:
    paths = ("x/a.so", "x/b.so")
    _, found, clashes = _resolve(
        [("left-1.0", _owning(1, *paths)), ("right-1.0", _owning(2, *paths)), ("both-1.0", {})],
        requires={"both": ["left", "right"]},
    )
    assert clashes == [PathClash(projects=("left", "right"), paths=paths, together="both")]
    (warning,) = (each for each in found.warnings if each.code == "path-clash")
    assert warning.facts == paths
    assert "left and right install different bytes as x/a.so and 1 more" in warning.message


def test_what_an_extra_requires_together_is_told_as_well() -> None:
    _, _, clashes = _resolve(
        [("left-1.0", _owning(1, "x/a.so")), ("right-1.0", _owning(2, "x/a.so")), ("both-1.0", {})],
        requires={"both": ["left ; extra == 'all'", "right ; extra == 'all'"]},
        asked=["both[all]"],
    )
    assert [clash.together for clash in clashes] == ["both"]


def test_scripts_and_wheels_that_were_not_read_clash_with_nothing() -> None:
    _, _, clashes = _resolve(
        [
            ("left-1.0", _owning(1, "left-1.0.data/scripts/a.so")),
            ("right-1.0", _owning(2, "right-1.0.data/scripts/a.so")),
            ("unread-1.0", None),
        ]
    )
    assert clashes == []


def test_a_target_without_cuda_is_told_nothing_of_bytes() -> None:
    contents = _library(needed=["libcudart.so.13"])
    _, found, _ = _resolve([("left-1.0", contents)], more={"target": {"cpu": True}})
    assert found.warnings == ()
    assert _proofs(found, "left") == {"cuda-runtime": ("unknown", "not read")}
    _, found, _ = _resolve([("left-1.0", contents)], more={"verify-sm": "off"})
    assert _proofs(found, "left") == {"cuda-runtime": ("unknown", "not read")}
