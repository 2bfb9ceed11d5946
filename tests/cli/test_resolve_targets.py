"""Several targets in one lock or one each, and making a lock again."""

import itertools
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import cudalock
from cudalock.cli.main import main
from cudalock.lock import read_lock
from cudalock.lock.several import lock_of_target
from default_index_site import Site, default_index
from loopback import Reply

_SCHEMA = Path(cudalock.__file__).parent / "cli" / "schemas" / "resolve-targets-1.json"
_TAG = "cp312-cp312-manylinux_2_28_x86_64"

_TARGETS = """
[project]
name = "fleet"
version = "1"
dependencies = ["kernel", "pure"]

[tool.cudalock]
default-target = "blackwell"

[tool.cudalock.targets.hopper]
python = "3.12"
platform = "linux-x86_64"
driver-cuda = "12.8"
cuda = "12.8"
sm = ["9.0"]

[tool.cudalock.targets.blackwell]
python = "3.12"
platform = "linux-x86_64"
driver = "590.48.01"
cuda = "13.0"
sm = ["12.0"]
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with default_index(tmp_path / "files") as found:
        found.uploaded = "2026-01-01T00:00:00Z"
        for version in ("1.0", "2.0"):
            found.add("kernel", f"{version}+cu130", tag=_TAG, requires=["shared", "new"])
            found.add("shared", version)
            found.add("pure", version)
        found.add("kernel", "1.0+cu128", tag=_TAG, requires=["shared", "old"])
        found.add("new", "1.0")
        found.add("old", "1.0")
        yield found


class Asker:
    def __init__(self, site: Site, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.site, self.folder, self._capsys = site, folder, capsys
        self.lock = folder / "pylock.toml"
        self.write(_TARGETS)

    def write(self, text: str) -> None:
        (self.folder / "pyproject.toml").write_text(text, encoding="utf-8")

    def __call__(self, *arguments: str, form: str = "text") -> tuple[int, str, str]:
        # What an index answered a moment ago would be taken from the cache.
        cache = self.folder / f"cache-{len(self.site.asked)}"
        flags = ["--default-index", self.site.url, "--cache-dir", str(cache)]
        flags += ["--only-default-index", "--no-remedies", "--format", form]
        self._capsys.readouterr()
        code = main(["resolve", "--project", str(self.folder), *arguments, *flags])
        out, err = self._capsys.readouterr()
        return code, out, err

    def json(self, *arguments: str) -> dict[str, Any]:
        code, out, err = self(*arguments, form="json")
        assert code == 0, err
        form: dict[str, Any] = json.loads(out)
        return form

    def pins(self, file: str = "pylock.toml") -> set[tuple[str, str, str | None]]:
        return {(p.name, p.version, p.marker) for p in read_lock(self.folder / file).packages}


@pytest.fixture
def ask(site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Asker:
    (tmp_path / "project").mkdir()
    return Asker(site, tmp_path / "project", capsys)


BOTH = ("--target", "hopper", "--target", "blackwell")


def test_two_targets_make_one_lock_whose_default_needs_no_extra(ask: Asker) -> None:
    code, _, err = ask(*BOTH)
    assert code == 0, err
    lock = read_lock(ask.lock)
    assert lock.extras == ("hopper",)
    assert lock.dependency_groups == ("default",)
    assert ask.pins() == {
        ("kernel", "2.0+cu130", "'hopper' not in extras"),
        ("kernel", "1.0+cu128", "'hopper' in extras"),
        ("new", "1.0", "'hopper' not in extras"),
        ("old", "1.0", "'hopper' in extras"),
        ("shared", "2.0", None),
        ("pure", "2.0", None),
    }
    assert lock.tool["target"]["name"] == "blackwell"  # type: ignore[index, call-overload]  # TOML data
    assert lock.tool["targets"]["hopper"]["target"]["cuda"] == "12.8"  # type: ignore[index, call-overload]  # TOML data


def test_pins_that_differ_are_named_and_proved_to_have_to(ask: Asker) -> None:
    form = ask.json(*BOTH)
    jsonschema.validate(form, json.loads(_SCHEMA.read_text(encoding="utf-8")))
    [difference] = form["differences"]
    assert difference["project"] == "kernel"
    assert difference["versions"] == {"blackwell": "2.0", "hopper": "1.0"}
    assert difference["must"]
    _, _, err = ask(*BOTH)
    words = " ".join(err.split())
    assert "kernel is 2.0 for blackwell and 1.0 for hopper, and must be" in words


def test_what_could_be_newer_for_one_target_follows_the_other(ask: Asker) -> None:
    # `old` alone would take pure 2.0; the default target is bound to 1.0 by its kernel.
    ask.site.add("kernel", "3.0+cu130", tag=_TAG, requires=["shared<2", "pure<2"])
    code, _, err = ask(*BOTH)
    assert code == 0, err
    assert {pin for pin in ask.pins() if pin[0] in ("shared", "pure")} == {
        ("shared", "1.0", None),
        ("pure", "1.0", None),
    }


def test_each_targets_own_lock_comes_out_of_the_shared_one(ask: Asker) -> None:
    assert ask(*BOTH)[0] == 0
    joined = read_lock(ask.lock)
    for name in ("hopper", "blackwell"):
        alone = ask.folder / f"pylock.{name}.toml"
        assert ask("--target", name, "-o", str(alone))[0] == 0
        made = read_lock(alone)
        target = cudalock.Target(python="3.12", platform="manylinux_2_28_x86_64", name=name)
        assert lock_of_target(joined, target) == made


def test_split_writes_a_lock_a_target(ask: Asker) -> None:
    code, _, err = ask(*BOTH, "--split")
    assert code == 0, err
    assert not ask.lock.exists()
    assert {pin for pin in ask.pins("pylock.hopper.toml") if pin[0] == "kernel"} == {
        ("kernel", "1.0+cu128", None)
    }
    assert read_lock(ask.folder / "pylock.blackwell.toml").extras == ()
    assert ask(*BOTH, "--split", "-o", str(ask.lock))[0] == 2


def test_requirements_of_a_target_are_its_own(ask: Asker) -> None:
    ask.write(_TARGETS + 'requirements = ["extra-for-blackwell"]\n')
    ask.site.add("extra-for-blackwell", "1.0")
    assert ask(*BOTH)[0] == 0
    assert ("extra-for-blackwell", "1.0", "'hopper' not in extras") in ask.pins()


def test_targets_of_several_pythons_and_platforms_need_no_extra_where_the_environment_tells(
    ask: Asker,
) -> None:
    ask.write(
        _TARGETS
        + """
[tool.cudalock.targets.spark]
python = "3.12"
platform = "linux-aarch64"
driver = "590.48.01"
cuda = "13.0"
sm = ["12.1"]

[tool.cudalock.targets.older]
python = "3.11"
platform = "linux-x86_64"
driver = "590.48.01"
cuda = "13.0"
sm = ["12.0"]
"""
    )
    for tag in ("cp312-cp312-manylinux_2_28_aarch64", "cp311-cp311-manylinux_2_28_x86_64"):
        ask.site.add("kernel", "2.0+cu130", tag=tag, requires=["shared", "new"])
    code, _, err = ask(*BOTH, "--target", "spark", "--target", "older")
    assert code == 0, err
    lock = read_lock(ask.lock)
    assert lock.requires_python == ">=3.11"
    assert len(lock.environments) == 3
    kernels = {p.version: p for p in lock.packages if p.name == "kernel"}
    assert sorted(w.name.split("-")[2] for w in kernels["2.0+cu130"].wheels) == [
        "cp311", "cp312", "cp312",
    ]  # fmt: skip
    assert set(lock.extras) == {"hopper", "spark", "older"}
    for python, machine, name, wheel in (
        ("3.12", "x86_64", None, "2.0+cu130-cp312-cp312-manylinux_2_28_x86_64"),
        ("3.12", "x86_64", "hopper", "1.0+cu128-cp312-cp312-manylinux_2_28_x86_64"),
        ("3.12", "aarch64", None, "2.0+cu130-cp312-cp312-manylinux_2_28_aarch64"),
        ("3.12", "aarch64", "spark", "2.0+cu130-cp312-cp312-manylinux_2_28_aarch64"),
        ("3.11", "x86_64", None, "2.0+cu130-cp311-cp311-manylinux_2_28_x86_64"),
    ):
        target = cudalock.Target(python=python, platform=f"manylinux_2_28_{machine}", name=name)
        [kernel] = [p for p in lock_of_target(lock, target).packages if p.name == "kernel"]
        assert kernel.wheels[0].name == f"kernel-{wheel}.whl"


def test_a_target_without_a_set_is_named_and_nothing_is_written(ask: Asker) -> None:
    ask.write(_TARGETS.replace('"kernel", "pure"', '"kernel==2.0"'))
    code, _, err = ask(*BOTH)
    assert code == 1
    assert "Target hopper:" in err
    assert not ask.lock.exists()


@pytest.mark.parametrize("names", [("hopper", "hopper"), ("hopper",)])
def test_one_target_named_is_one_target(ask: Asker, names: tuple[str, ...]) -> None:
    flags = [word for name in names for word in ("--target", name)]
    assert ask(*flags)[0] == 0
    assert not ask.lock.exists()
    assert (ask.folder / "pylock.hopper.toml").exists()


def test_targets_whose_names_give_one_extra_are_refused(ask: Asker) -> None:
    ask.write(_TARGETS.replace("targets.blackwell", "targets.Hopper").replace(
        'default-target = "blackwell"', ""))  # fmt: skip
    code, _, err = ask("--target", "hopper", "--target", "Hopper")
    assert code == 2
    assert "which are both `hopper`" in " ".join(err.split())


def test_replies_in_any_order_and_any_hash_seed_give_one_digest(
    ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    random_order = random.Random(7)  # noqa: S311 - an order, not a secret
    plain = Site._page

    def shuffled(self: Site, name: str) -> Reply:
        reply = plain(self, name)
        if reply.status != 200:
            return reply
        page = json.loads(reply.body)
        random_order.shuffle(page["files"])
        return Reply(200, json.dumps(page).encode(), reply.headers)

    monkeypatch.setattr(Site, "_page", shuffled)
    digests = set()
    for seed in ("0", "1", "2", "random"):
        for order in itertools.permutations(("hopper", "blackwell")):
            output = ask.folder / f"pylock.{seed}-{order[0]}.toml"
            names = [word for name in order for word in ("--target", name)]
            command = [sys.executable, "-m", "cudalock", "resolve", *names, "-o", str(output)]
            command += ["--project", str(ask.folder), "--default-index", ask.site.url]
            command += [
                "--only-default-index",
                "--cache-dir",
                str(ask.folder / f"c{seed}{order[0]}"),
            ]
            environ = {**os.environ, "PYTHONHASHSEED": seed}
            result = subprocess.run(
                command, env=environ, capture_output=True, text=True, check=False
            )
            assert result.returncode == 0, result.stderr
            digests.add(output.read_bytes())
    assert len(digests) == 1


def test_a_lock_that_is_there_is_a_preference(ask: Asker) -> None:
    assert ask(*BOTH)[0] == 0
    before, stamp = ask.lock.read_bytes(), ask.lock.stat().st_mtime_ns
    for version in ("3.0", "4.0"):
        ask.site.add("pure", version)
        ask.site.add("shared", version)
    code, _, err = ask(*BOTH)
    assert code == 0
    assert "is unchanged" in err
    assert ask.lock.read_bytes() == before
    assert ask.lock.stat().st_mtime_ns == stamp
    assert ask(*BOTH, "--locked")[0] == 0
    assert ask(*BOTH, "--upgrade", "pure")[0] == 0
    pins = {name: version for name, version, _ in ask.pins()}
    assert (pins["pure"], pins["shared"]) == ("4.0", "2.0")
    assert ask(*BOTH, "--upgrade")[0] == 0
    pins = {name: version for name, version, _ in ask.pins()}
    assert (pins["pure"], pins["shared"]) == ("4.0", "4.0")


def test_what_a_search_comes_across_does_not_change_a_lock(ask: Asker) -> None:
    # The first search reads what the newest kernel requires; the second has a pin and need not.
    ask.site.add("kernel", "3.0", tag=_TAG, requires=["nvidia-cuda-runtime-cu12"])
    code, _, err = ask("--target", "blackwell")
    assert code == 0
    assert "held back: kernel 3.0" in err
    path = ask.folder / "pylock.blackwell.toml"
    before, stamp = path.read_bytes(), path.stat().st_mtime_ns
    code, _, err = ask("--target", "blackwell")
    assert code == 0
    assert "held back" not in err
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (before, stamp)
    assert ask("--target", "blackwell", "--locked")[0] == 0


def test_whether_pins_must_differ_may_not_be_known(ask: Asker) -> None:
    # The newest kernel names no CUDA release, and what it requires cannot be read.
    path = ask.site.add("kernel", "9.0", tag=_TAG)
    ask.site.add("kernel", "9.0+cu130", tag=_TAG)
    path.write_bytes(b"no wheel")
    form = ask.json(*BOTH, "--upgrade")
    [difference] = form["differences"]
    assert difference["versions"] == {"blackwell": "9.0", "hopper": "1.0"}
    assert difference["must"] is None
    words = " ".join(ask(*BOTH)[2].split())
    assert (
        "kernel is 9.0 for blackwell and 1.0 for hopper; whether it must be could not be told"
        in words
    )


def test_pins_that_follow_others_are_told_together(ask: Asker) -> None:
    ask.site.add("kernel", "3.0+cu130", tag=_TAG, requires=["part==3.0"])
    ask.site.add("kernel", "1.5+cu128", tag=_TAG, requires=["part==1.5"])
    for version in ("3.0", "1.5"):
        ask.site.add("part", version)
    words = " ".join(ask(*BOTH)[2].split())
    assert "what follows differs, too, for blackwell and hopper: part 3.0 and 1.5" in words


def test_a_preference_gives_way_to_what_is_asked(ask: Asker) -> None:
    assert ask("--target", "blackwell")[0] == 0
    ask.site.add("pure", "3.0")
    ask.write(_TARGETS.replace('"pure"', '"pure>=3"'))
    assert ask("--target", "blackwell")[0] == 0
    pins = {name: version for name, version, _ in ask.pins("pylock.blackwell.toml")}
    assert pins["pure"] == "3.0"


def test_the_very_wheel_stays_where_the_target_stays(ask: Asker) -> None:
    assert ask("--target", "blackwell")[0] == 0
    ask.site.add("kernel", "2.0+cu130.build2", tag=_TAG)
    assert ask("--target", "blackwell", "--locked")[0] == 0
    # For another CUDA release the release stays, and its nearest build is taken.
    ask.site.add("kernel", "2.0+cu131", tag=_TAG)
    ask.site.add("kernel", "3.0+cu131", tag=_TAG)
    assert ask("--target", "blackwell", "--cuda", "13.1")[0] == 0
    pins = {name: version for name, version, _ in ask.pins("pylock.blackwell.toml")}
    assert pins["kernel"] == "2.0+cu131"


def test_a_release_that_was_yanked_since_stays_and_is_named(ask: Asker) -> None:
    # As PEP 592 has it for pins: it is never taken newly, and who has it keeps it.
    assert ask("--target", "blackwell")[0] == 0
    page = json.loads(ask.site._page("pure").body)
    for file in page["files"]:
        file["yanked"] = "broken" if "2.0" in file["filename"] else False
    ask.site.faults["pure"] = Reply(200, json.dumps(page).encode(), ask.site._page("pure").headers)
    code, _, err = ask("--target", "blackwell")
    assert code == 0
    assert "yanked" in err
    pins = {name: version for name, version, _ in ask.pins("pylock.blackwell.toml")}
    assert pins["pure"] == "2.0"
    assert ask("--target", "blackwell", "--upgrade", "pure")[0] == 0
    pins = {name: version for name, version, _ in ask.pins("pylock.blackwell.toml")}
    assert pins["pure"] == "1.0"


def test_locked_exits_1_when_the_lock_would_change_and_writes_nothing(ask: Asker) -> None:
    code, _, err = ask(*BOTH, "--locked")
    assert code == 1
    assert "expected a lock, found none" in err
    assert ask(*BOTH)[0] == 0
    before = ask.lock.read_bytes()
    ask.write(_TARGETS.replace('"pure"', '"pure<2"'))
    code, _, err = ask(*BOTH, "--locked")
    assert code == 1
    assert "~ pure 2.0 -> 1.0" in err
    assert ask.lock.read_bytes() == before


def test_a_dry_run_says_what_would_change(ask: Asker) -> None:
    assert ask(*BOTH)[0] == 0
    before = ask.lock.read_bytes()
    ask.write(_TARGETS.replace('"pure"', '"pure<2"'))
    code, _, err = ask(*BOTH, "--dry-run")
    assert code == 0
    assert "~ pure 2.0 -> 1.0" in err
    assert ask.lock.read_bytes() == before


def test_frozen_asks_nobody_and_wants_a_lock(ask: Asker) -> None:
    assert ask(*BOTH, "--frozen")[0] == 2
    assert ask(*BOTH)[0] == 0
    asked = len(ask.site.asked)
    code, _, err = ask(*BOTH, "--frozen")
    assert code == 0
    assert "Nothing was asked" in err
    assert len(ask.site.asked) == asked


def test_flags_that_contradict_each_other_are_refused(ask: Asker) -> None:
    for flags in (("--locked", "--frozen"), ("--frozen", "--upgrade"), ("--locked", "-o", "-")):
        assert ask(*BOTH, *flags)[0] == 2
    assert ask(*BOTH)[0] == 0
    code, _, err = ask(*BOTH, "--upgrade", "nobody")
    assert code == 2
    assert "expected a project of the lock, found `nobody`" in err


def test_comments_survive_making_a_lock_of_several_targets_again(ask: Asker) -> None:
    assert ask(*BOTH)[0] == 0
    text = ask.lock.read_text(encoding="utf-8")
    mark = 'name = "kernel"\nversion = "1.0+cu128"'
    assert mark in text
    ask.lock.write_text(text.replace(mark, f"# for the old boxes\n{mark}"), encoding="utf-8")
    ask.write(_TARGETS.replace('"pure"', '"pure<2"'))
    assert ask(*BOTH)[0] == 0
    assert f"# for the old boxes\n{mark}" in ask.lock.read_text(encoding="utf-8")


def test_a_broken_lock_is_told_before_anything_is_asked(ask: Asker) -> None:
    ask.lock.write_text("lock-version = 1\n", encoding="utf-8")
    assert ask(*BOTH)[0] == 2
    assert ask.site.asked == []


def test_a_source_that_is_for_one_target_only_serves_that_one(ask: Asker, tmp_path: Path) -> None:
    with default_index(tmp_path / "other") as other:
        other.add("pure", "9.0")
        ask.write(
            _TARGETS.replace(
                'platform = "linux-x86_64"\ndriver-cuda', 'platform = "linux-aarch64"\ndriver-cuda'
            )
            + f'[[tool.uv.index]]\nname = "mine"\nurl = "{other.url}"\nexplicit = true\n'
            "[tool.uv.sources]\n"
            'pure = {index = "mine", marker = "platform_machine == \'aarch64\'"}\n'
        )
        ask.site.add("kernel", "1.0+cu128", tag="cp312-cp312-manylinux_2_28_aarch64")
        code, _, err = ask(*BOTH)
    assert code == 0, err
    pures = {version: marker for name, version, marker in ask.pins() if name == "pure"}
    assert set(pures) == {"2.0", "9.0"}
