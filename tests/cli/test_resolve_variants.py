"""Wheel variants end to end: what is locked with and without ``--variants``, and what is said."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cudalock.cli.main import main
from default_index_site import Site, default_index

_BOX = ["--python", "3.12", "--platform", "linux-x86_64", "--driver-cuda", "13.1", "--sm", "12.0"]
_VARIANTS = {
    "cu130_sm120": {"nvidia": {"cuda_version_lower_bound": ["13.0"], "sm_arch": ["120_real"]}},
    "cu130_sm90": {"nvidia": {"cuda_version_lower_bound": ["13.0"], "sm_arch": ["90_real"]}},
    "null": {},
}
_DOCUMENT = {
    "$schema": "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
    "default-priorities": {"namespace": ["nvidia"]},
    "variants": _VARIANTS,
}


def publish(site: Site, version: str, *labels: str, document: object = _DOCUMENT) -> None:
    """Put a release of `left` on the index; "" is its ordinary wheel."""
    for label in labels:
        tag = "cp312-cp312-manylinux_2_28_x86_64"
        site.add("left", version, tag=f"{tag}-{label}" if label else tag)
    path = site.folder / f"left-{version}-variants.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    site.files["left"].append(path)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with default_index(tmp_path / "files") as found:
        yield found


class Asker:
    def __init__(self, site: Site, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.site, self.folder, self._capsys = site, folder, capsys
        self.lock_file = folder / "pylock.toml"

    def __call__(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        flags = ["--default-index", self.site.url, "--cache-dir", str(self.folder / "cache")]
        flags += (
            ["--project", str(self.folder)] if (self.folder / "pyproject.toml").exists() else []
        )
        code = main(
            ["resolve", *arguments, *_BOX, *flags, "-o", str(self.lock_file), "--format", "json"]
        )
        return code, json.loads(self._capsys.readouterr().out)

    def locked(self) -> dict[str, Any]:
        [package] = tomllib.loads(self.lock_file.read_text(encoding="utf-8"))["packages"]
        found: dict[str, Any] = package
        return found


@pytest.fixture
def ask(site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Asker:
    return Asker(site, tmp_path, capsys)


def warnings(form: dict[str, Any]) -> dict[str, str]:
    return {warning["code"]: warning["message"] for warning in form["warnings"]}


def test_by_default_the_ordinary_wheel_is_locked_with_the_metadata_of_the_variants(
    ask: Asker,
) -> None:
    publish(ask.site, "1.0", "cu130_sm120", "cu130_sm90", "null", "")
    code, form = ask("left")
    assert code == 0
    assert ask.locked()["wheels"][0]["name"].endswith("x86_64.whl")
    assert ask.locked()["variants-json"] == _DOCUMENT
    said = warnings(form)["variant-passed-over"]
    assert "its wheel variant cu130_sm120 suits the target, and `--variants` takes it" in said
    assert "pip 26.3 refuses" in said


def test_variants_are_locked_when_asked_for_and_the_lock_says_what_it_needs(ask: Asker) -> None:
    publish(ask.site, "1.0", "cu130_sm120", "cu130_sm90", "null", "")
    code, form = ask("left", "--variants")
    assert code == 0
    name = "left-1.0-cp312-cp312-manylinux_2_28_x86_64-cu130_sm120.whl"
    locked = ask.locked()
    assert [wheel["name"] for wheel in locked["wheels"]] == [name]
    assert locked["variants-json"] == _DOCUMENT
    evidence = locked["tool"]["cudalock"][name]
    assert (evidence["variant"], evidence["cuda"], evidence["runtime"]) == (
        "cu130_sm120",
        "13.0",
        13,
    )
    assert "needs an installer that knows wheel variants" in warnings(form)["variant-locked"]
    [wheel] = form["packages"][0]["wheels"]
    assert wheel["variant"]["architectures"] == ["sm_120"]
    assert {seen["kind"] for seen in wheel["variant"]["evidence"]} == {"variant"}
    assert form["needs_driver"] is not None


def test_the_project_may_ask_for_variants_itself(ask: Asker) -> None:
    publish(ask.site, "1.0", "cu130_sm120", "")
    (ask.folder / "pyproject.toml").write_text("[tool.cudalock]\nvariants = true\n")
    assert ask("left")[0] == 0
    assert ask.locked()["wheels"][0]["name"].endswith("-cu130_sm120.whl")


def test_the_same_question_gives_the_same_bytes(ask: Asker) -> None:
    publish(ask.site, "1.0", "null", "cu130_sm90", "cu130_sm120", "")
    ask("left")
    first = ask.lock_file.read_bytes()
    ask.lock_file.unlink()
    ask.site.files["left"].reverse()
    ask("left", "--cache-dir", str(ask.folder / "other"))
    assert ask.lock_file.read_bytes() == first


def test_a_release_of_variants_only_is_refused_with_the_flag_as_a_tried_remedy(ask: Asker) -> None:
    publish(ask.site, "1.0", "cu130_sm120", "cu130_sm90")
    code, form = ask("left")
    assert code == 1
    assert "wheel variants, which few installers take from a lock" in json.dumps(form["conflict"])
    [remedy] = form["conflict"]["remedies"]
    assert remedy["changes"] == ["--variants"]
    assert "--variants" in remedy["command"].split()
    assert ask("left", "--variants")[0] == 0


def test_a_newer_release_of_variants_only_is_told(ask: Asker) -> None:
    publish(ask.site, "1.0", "")
    publish(ask.site, "2.0", "cu130_sm120")
    code, form = ask("left")
    assert code == 0
    assert ask.locked()["version"] == "1.0"
    assert "left 2.0 is published as wheel variants only" in warnings(form)["variant-passed-over"]
    assert "variant-passed-over" not in warnings(ask("left<2")[1])


def test_metadata_that_cannot_be_used_is_told_and_stops_nothing(ask: Asker) -> None:
    publish(ask.site, "1.0", "cu130_sm120", "", document={"$schema": "https://e.org/v9.json"})
    code, form = ask("left")
    assert code == 0
    assert "variants-json" not in ask.locked()
    assert "found `https://e.org/v9.json`" in warnings(form)["variants-unread"]
    # With the flag its variants are unknown, and the ordinary wheel is there.
    code, form = ask("left", "--variants")
    assert code == 0
    assert ask.locked()["wheels"][0]["name"].endswith("x86_64.whl")
    assert "variants-unread" in warnings(form)


def test_a_no_that_rests_on_unread_variants_is_could_not_tell(ask: Asker) -> None:
    publish(ask.site, "1.0", "cu130_sm120", document=[])
    code, form = ask("left", "--variants")
    assert code == 3
    assert "nobody can tell whether it suits" in form["error"]["message"]


def test_a_variant_by_its_address_says_why_it_is_not_taken(ask: Asker) -> None:
    publish(ask.site, "1.0", "cu130_sm120")
    name = "left-1.0-cp312-cp312-manylinux_2_28_x86_64-cu130_sm120.whl"
    url = f"{ask.site.url.removesuffix('/simple')}/files/{name}"
    code, form = ask(f"left @ {url}")
    assert code == 3
    assert "a wheel variant, which few installers take" in form["error"]["message"]
    code, form = ask(f"left @ {url}", "--variants")
    assert code == 3
    assert "no left-1.0-variants.json is listed beside it" in form["error"]["message"]


def test_requirements_that_use_markers_of_variants_are_not_guessed_at(ask: Asker) -> None:
    requires = ['right ; "nvidia" in variant_namespaces']
    ask.site.add("left", "1.0", requires=requires)
    code, form = ask("left")
    assert code == 3, form
