"""Wheel variants among candidates: read when asked for, told of always, ordered as PEP 825 says."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from cudalock.cuda import (
    CudaVersion,
    floor_driver,
    parse_compute_capability,
    parse_cuda_version,
    parse_driver_version,
    toolkit_driver,
)
from cudalock.errors import IndexAccessError
from cudalock.host import Target
from cudalock.resolver.notes import describe
from cudalock.resolver.request import Request, Requested
from cudalock.resolver.resolution import Resolution, needed_driver, solve
from cudalock.resolver.source import MemorySource
from cudalock.resolver.variants import read_variants
from cudalock.resolver.world import World
from cudalock.wheel import CoreMetadata, Knowledge, ListedFile, parse_wheel_file
from cudalock.wheel.evidence import Observation, Variant, conclude, observe_file
from cudalock.wheel.variant_match import judge_variant, variant_code, variant_order
from cudalock.wheel.variants import VariantsMetadata, VariantsUnread, read_variants_table

_TAG = "cp312-cp312-manylinux_2_28_x86_64"


def metadata(variants: Mapping[str, object], *namespaces: str) -> VariantsMetadata:
    table = {
        "$schema": "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
        "default-priorities": {"namespace": list(namespaces or ("nvidia",))},
        "variants": variants,
    }
    return read_variants_table(table, where="left-variants.json")


def listed(label: str, variants: VariantsMetadata | None, version: str = "3.0") -> ListedFile:
    wheel = parse_wheel_file(f"left-{version}-{_TAG}{f'-{label}' if label else ''}.whl")
    return ListedFile(
        wheel=wheel,
        url=f"https://default.test/{wheel.filename}",
        index="default",
        index_url="https://default.test/",
        sha256=("a" * 64,),
        metadata=CoreMetadata(project="left", version=wheel.version),
        variants=variants,
    )


def world(
    files: Sequence[ListedFile],
    *,
    asks: str = "left",
    variants: bool = True,
    source: MemorySource | None = None,
    **target: Any,  # noqa: ANN401 - the fields of a target
) -> World:
    fields: dict[str, Any] = {
        "python": "3.12",
        "platform": "manylinux_2_28_x86_64",
        "driver_cuda": parse_cuda_version("13.1"),
        "cuda": parse_cuda_version("13.1"),
        "capabilities": (parse_compute_capability("12.0"),),
        **target,
    }
    return World(
        request=Request(
            requirements=(Requested(requirement=Requirement(asks), where="argument"),),
            variants=variants,
        ),
        target=Target(**fields),
        source=source or MemorySource(files),
        knowledge=Knowledge(),
    )


def resolved(where: World) -> Resolution:
    return describe(where, solve(where))


def order(where: World) -> list[str]:
    return [c.file.wheel.variant_label or "" for c in where.options("left").candidates]


def nvidia(bound: str, *sm: str) -> dict[str, object]:
    found: dict[str, object] = {"cuda_version_lower_bound": [bound]}
    return {"nvidia": {**found, "sm_arch": list(sm)} if sm else found}


def test_variants_stand_before_the_null_variant_and_that_before_ordinary_wheels() -> None:
    variants = {
        "cu13": nvidia("13"),
        "cu130": nvidia("13.0"),
        "cu130_sm120": nvidia("13.0", "120_real"),
        "cu131": nvidia("13.1"),
        "null": {},
    }
    found = metadata(variants)
    files = [listed(label, found) for label in ("", *variants)]
    expected = ["cu131", "cu130_sm120", "cu130", "cu13", "null", ""]
    for seed in range(5):
        random.Random(seed).shuffle(files)  # noqa: S311 - an order, no secret
        assert order(world(files)) == expected


def test_a_newer_release_comes_before_any_variant() -> None:
    found = metadata({"cu130": nvidia("13.0")})
    files = [listed("cu130", found), listed("", None, "3.1")]
    assert order(world(files)) == ["", "cu130"]


def test_an_ordinary_wheel_whose_label_says_its_cuda_comes_before_a_null_variant() -> None:
    found = metadata({"cu131": nvidia("13.1")})
    files = [listed("null", found), listed("", None, "3.0+cu130"), listed("cu131", found)]
    versions = [str(c.version) for c in world(files).options("left").candidates]
    assert order(world(files)) == ["cu131", "", "null"]
    assert versions == ["3.0", "3.0+cu130", "3.0"]


def test_priorities_of_the_publisher_count_among_the_variants_of_a_version() -> None:
    variants = {
        "cu131": nvidia("13.1"),
        "v1_cu130": {**nvidia("13.0"), "x86_64": {"level": ["v1"]}},
    }
    files = [listed(label, metadata(variants, "x86_64", "nvidia")) for label in variants]
    assert order(world(files)) == ["v1_cu130", "cu131"]
    files = [listed(label, metadata(variants, "nvidia", "x86_64")) for label in variants]
    assert order(world(files)) == ["cu131", "v1_cu130"]


def test_strict_takes_no_variant_of_a_newer_cuda_than_the_set() -> None:
    variants = {"cu131": nvidia("13.1"), "cu130": nvidia("13.0")}
    files = [listed(label, metadata(variants)) for label in variants]
    where = world(files, cuda=parse_cuda_version("13.0"))
    [package] = resolved(where).packages
    assert package.file.wheel.variant_label == "cu130"
    assert package.variants is not None


def test_an_unknown_driver_makes_the_bound_something_the_lock_needs() -> None:
    files = [listed("cu132", metadata({"cu132": nvidia("13.2")}))]
    cuda = parse_cuda_version("13.0")
    found = resolved(world(files, driver_cuda=None, cuda=cuda, cuda_compat="minor"))
    assert found.driver == toolkit_driver(CudaVersion(13, 2))
    assert found.driver != floor_driver(13)


def test_a_bound_of_a_major_alone_needs_the_floor_of_the_major() -> None:
    file = listed("cu13", metadata({"cu13": nvidia("13")}))
    variant = conclude(observe_file(file, Knowledge()), native=True)
    assert (variant.cuda, variant.runtime) == (None, 13)
    target = world([file]).target
    assert needed_driver(target, [variant]) == floor_driver(13)


def test_a_toolkit_in_the_requirements_and_an_older_bound_do_not_disagree() -> None:
    bound = Observation(
        kind="variant", text="v", source="w", major=13, cuda=parse_cuda_version("13.0")
    )
    required = replace(bound, kind="requires-dist", cuda=parse_cuda_version("13.1"))
    variant = conclude((bound, required), native=True)
    assert variant.cuda == parse_cuda_version("13.1")
    assert not variant.disagreement
    assert conclude((bound, replace(required, major=12)), native=True).disagreement
    assert isinstance(variant, Variant)


def test_a_variant_that_fits_by_ptx_alone_is_a_last_resort() -> None:
    variants = {"ptx": {"nvidia": {"sm_arch": ["90_virtual"]}}, "null": {}}
    files = [listed(label, metadata(variants)) for label in variants]
    [package] = resolved(world(files)).packages
    assert package.file.wheel.variant_label == "null"
    found = resolved(world(files[:1]))
    assert found.packages[0].file.wheel.variant_label == "ptx"
    assert "ptx-only" in {warning.code for warning in found.warnings}


def test_metadata_is_not_asked_for_by_who_did_not_ask_for_variants() -> None:
    asked: list[str] = []

    class Source(MemorySource):
        def variants(self, files: Sequence[ListedFile]) -> list[VariantsMetadata | VariantsUnread]:
            asked.extend(file.filename for file in files)
            return super().variants(files)

    files = [listed("cu130", metadata({"cu130": nvidia("13.0")}), v) for v in ("1.0", "2.0")]
    files += [listed("", None, v) for v in ("1.0", "2.0")]
    where = world(files, variants=False, source=Source(files))
    solution = solve(where)
    assert asked == []
    describe(where, solution)
    # Then only of what was chosen, to tell of it.
    assert asked == [f"left-2.0-{_TAG}-cu130.whl"]


class _Down(MemorySource):
    def variants(self, files: Sequence[ListedFile]) -> list[VariantsMetadata | VariantsUnread]:
        raise IndexAccessError("no answer came in time", where=files[0].url)


def test_an_index_that_does_not_answer_stops_only_who_asked_for_variants() -> None:
    files = [listed("cu130", None), listed("", None)]
    found = resolved(world(files, variants=False, source=_Down(files)))
    assert [package.file.wheel.variant_label for package in found.packages] == [None]
    [told] = [w.message for w in found.warnings if w.code == "variants-unread"]
    assert "no answer came in time" in told
    with pytest.raises(IndexAccessError):
        solve(world(files, source=_Down(files)))


def test_a_label_that_the_metadata_lacks_is_unknown_and_told() -> None:
    found = metadata({"cu130": nvidia("13.0", "90_real")})
    files = [listed("cu130", found), listed("other", found), listed("", None)]
    where = world(files)
    resolution = resolved(where)
    assert resolution.packages[0].file.wheel.variant_label is None
    [told] = [w.message for w in resolution.warnings if w.code == "variant-passed-over"]
    assert "no wheel variant of left 3.0 is known to suit the target" in told
    assert "cu130 holds sm_90, nothing for sm_120" in told
    assert "other is not in left-variants.json" in told


def test_the_null_variant_suits_even_where_its_metadata_cannot_be_had() -> None:
    files = [listed("null", None), listed("cu130", None), listed("", None)]
    where = world(files)
    assert order(where) == ["null", ""]
    [(_, kind, count)] = where.options("left").ruled_out
    assert (kind, count) == ("variant-unknown: no metadata of its variants was given", 1)


def test_a_driver_known_by_its_own_version_counts_too() -> None:
    files = [listed("cu131", metadata({"cu131": nvidia("13.1")}))]
    driver = parse_driver_version("580.65.06")
    [candidate] = world(files, driver=driver, driver_cuda=None).options("left").candidates
    assert {violation.package for violation in candidate.violations} == {"<driver>"}
    minor = world(files, driver=driver, driver_cuda=None, cuda_compat="minor")
    [candidate] = minor.options("left").candidates
    [violation] = candidate.violations
    assert violation.fact.detail == "asks for a driver of CUDA 13.1 or newer"
    assert violation.pin.detail == "the target has driver 580.65.06"


def test_a_variant_that_is_left_as_a_last_resort_is_told_of_beside_the_ordinary_wheel() -> None:
    found = metadata({"ptx": {"nvidia": {"sm_arch": ["90_virtual"]}}})
    resolution = resolved(world([listed("ptx", found), listed("", None)], variants=False))
    [told] = [w.message for w in resolution.warnings if w.code == "variant-passed-over"]
    assert "no wheel variant of left 3.0 is known to suit the target" in told
    assert "ptx: it holds compute_90" in told


def test_a_variant_for_another_machine_is_a_plain_no() -> None:
    found = metadata({"arm": {"aarch64": {"version": ["8a"]}}}, "aarch64")
    ruled_out = world([listed("arm", found)]).options("left").ruled_out
    assert ruled_out == ((Version("3.0"), "variant-unfit", 1),)


def test_only_what_the_user_admits_is_read() -> None:
    found = metadata({"cu130": nvidia("13.0")})
    files = [listed("cu130", found, f"{number}.0") for number in range(1, 301)]
    [package] = resolved(world(files, asks="left<3")).packages
    assert package.version == Version("2.0")


def test_only_the_newest_versions_of_very_many_are_read() -> None:
    asked: list[ListedFile] = []

    class Source(MemorySource):
        def variants(self, files: Sequence[ListedFile]) -> list[VariantsMetadata | VariantsUnread]:
            asked.extend(files)
            return super().variants(files)

    found = metadata({"cu130": nvidia("13.0")})
    files = [listed("cu130", found, f"{number}.0") for number in range(1, 301)]
    answers = read_variants(Source(files), files)
    assert len(answers) == 300
    assert {file.wheel.version.major for file in asked} == set(range(173, 301))
    cut = [a for a in answers.values() if isinstance(a, VariantsUnread)]
    assert {answer.reason for answer in cut} == {"only the newest 128 versions were read"}


def test_very_many_wheels_of_one_label_cost_one_look_at_what_it_stands_for() -> None:
    values = [f"{number}_real" for number in range(100, 1000)]
    found = metadata({"many": nvidia("13.0", *values), "null": {}})
    judge_variant.cache_clear()
    variant_order.cache_clear()
    variant_code.cache_clear()
    wheels = [listed("many", found)]
    files = [
        replace(
            wheels[0],
            url=f"https://default.test/{build}",
            wheel=parse_wheel_file(f"left-3.0-{build}-{_TAG}-many.whl"),
        )
        for build in range(400)
    ]
    assert len(world(files).options("left").candidates) == 400
    for cached in (judge_variant, variant_order, variant_code):
        assert cached.cache_info().misses == 1
