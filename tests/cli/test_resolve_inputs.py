"""What the files that people have already say: uv's tables, scripts, and addresses of wheels."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cudalock.cli.main import main
from default_index_site import Site, default_index

_PROJECT = '[project]\nname = "x"\nversion = "1"\ndependencies = ["left"]\n'


class Asker:
    def __init__(self, site: Site, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.site, self.folder, self._capsys = site, folder, capsys

    def file(self, name: str, text: str) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return str(path)

    def __call__(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        flags = ["--default-index", self.site.url, "--cache-dir", str(self.folder / "cache")]
        flags += ["--cpu", "--python", "3.12", "--platform", "linux-x86_64", "--dry-run"]
        self._capsys.readouterr()
        code = main(["resolve", *arguments, *flags, "--no-remedies", "--format", "json"])
        return code, json.loads(self._capsys.readouterr().out)

    def pins(self, *arguments: str) -> dict[str, str]:
        code, form = self(*arguments)
        assert code == 0, form
        return {package["name"]: package["version"] for package in form["packages"]}

    def project(self, text: str, *arguments: str) -> dict[str, str]:
        self.file("pyproject.toml", text)
        return self.pins("--project", str(self.folder), *arguments)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with default_index(tmp_path / "files") as found:
        for version in ("1.0", "2.0"):
            path = found.add("left", version, requires=["right"])
            found.add("right", version)
            found.times[path.name] = f"2026-0{version[0]}-01T00:00:00Z"
        found.uploaded = "2026-01-01T00:00:00Z"
        yield found


@pytest.fixture
def ask(site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Asker:
    return Asker(site, tmp_path / "work", capsys)


def test_exclude_newer_is_the_day_of_the_indices(ask: Asker) -> None:
    text = _PROJECT + '[tool.uv]\nexclude-newer = "2026-01-15T00:00:00Z"\n'
    assert ask.project(text)["left"] == "1.0"
    # Our own key, and the flag, come before uv's.
    assert ask.project(text + '[tool.cudalock]\nas-of = "2026-03-01"\n')["left"] == "2.0"
    assert ask.project(text, "--as-of", "2026-03-01")["left"] == "2.0"


@pytest.mark.parametrize("span", ["7 days", "1 week 2 days", "P7D", "PT24H"])
def test_a_span_before_now_is_not_applied_and_said(ask: Asker, span: str) -> None:
    ask.file("pyproject.toml", _PROJECT + f'[tool.uv]\nexclude-newer = "{span}"\n')
    code, form = ask("--project", str(ask.folder))
    assert code == 0
    assert any(f"`{span}` counts back from now" in w["message"] for w in form["warnings"])


def test_extras_that_the_project_says_to_conflict_are_not_taken_together(ask: Asker) -> None:
    ask.file(
        "pyproject.toml",
        _PROJECT + '[project.optional-dependencies]\ncu128 = []\nCU130 = ["right<2"]\n'
        "[tool.uv]\nconflicts = [[{extra = 'cu128'}, {extra = 'cu130'}, {group = 'dev'}]]\n",
    )
    project = ("--project", str(ask.folder))
    assert ask.pins(*project, "--extra", "cu130")["right"] == "1.0"
    code, form = ask(*project, "--extra", "cu128", "--extra", "cu130")
    assert code == 2
    assert form["error"]["message"] == (
        "expected one of what the project says to conflict, found the extra `cu128` and the extra "
        "`cu130`"
    )
    assert form["error"]["where"].endswith("tool.uv.conflicts[0]")


@pytest.mark.parametrize("conflicts", ["1", "[1]", "[[1]]", "[[{extra = 1}]]"])
def test_conflicts_of_another_form_are_a_fault(ask: Asker, conflicts: str) -> None:
    ask.file("pyproject.toml", _PROJECT + f"[tool.uv]\nconflicts = {conflicts}\n")
    code, form = ask("--project", str(ask.folder))
    assert code == 2
    assert "tool.uv.conflicts" in form["error"]["message"] + str(form["error"]["where"])


def test_older_keys_of_uv_name_indexes_and_links(ask: Asker, tmp_path: Path) -> None:
    with default_index(tmp_path / "other") as other:
        other.add("only-there", "1.0")
        links = ask.folder / "links"
        links.mkdir(parents=True)
        wheel = other.add("only-here", "1.0")
        del other.files["only-here"]
        wheel.rename(links / wheel.name)
        pins = ask.project(
            _PROJECT.replace('"left"', '"only-there", "only-here"')
            + f'[tool.uv]\nextra-index-url = ["{other.url}"]\nfind-links = ["{links}"]\n'
        )
    assert pins == {"only-there": "1.0", "only-here": "1.0"}


def test_a_script_brings_its_own_tables(ask: Asker, tmp_path: Path) -> None:
    with default_index(tmp_path / "other") as other:
        other.add("left", "9.0", requires=["right"])
        lines = [
            'requires-python = ">=3.10"',
            'dependencies = ["left"]',
            "[tool.uv]",
            'constraint-dependencies = ["right<2"]',
            "[[tool.uv.index]]",
            'name = "mine"',
            f'url = "{other.url}"',
            "explicit = true",
            "[tool.uv.sources]",
            'left = {index = "mine"}',
        ]
        script = "".join(f"# {line}\n" for line in ["/// script", *lines, "///"])
        pins = ask.pins("-r", ask.file("tool.py", script))
        assert pins == {"left": "9.0", "right": "1.0"}
        # So does another project's file.
        text = "\n".join(lines[2:])
        pins = ask.pins("-r", ask.file("other/pyproject.toml", _PROJECT + text))
        assert pins == {"left": "9.0", "right": "1.0"}


def test_a_script_for_another_python_is_refused(ask: Asker) -> None:
    script = '# /// script\n# requires-python = ">=3.13"\n# dependencies = ["left"]\n# ///\n'
    code, form = ask("-r", ask.file("tool.py", script))
    assert code == 2
    assert "expected a Python within `>=3.13`, found 3.12" in form["error"]["message"]


def test_a_projects_python_does_not_bind_what_comes_from_other_files(
    ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask.file("pyproject.toml", _PROJECT + 'requires-python = ">=3.13"\n')
    monkeypatch.chdir(ask.folder)
    assert ask.pins("-r", ask.file("r.txt", "left\n"))["left"] == "2.0"
    assert ask.pins("left")["left"] == "2.0"
    assert ask()[0] == 2


def test_a_wheels_address_alone_names_its_project(ask: Asker) -> None:
    files = ask.site.url.replace("/simple", "/files")
    wheel = f"{files}/left-1.0-py3-none-any.whl"
    # Nobody claims a hash of it, so the bytes are read, once.
    read = ("--hash-missing", "download")
    assert ask.pins("-r", ask.file("r.txt", f"{wheel}\n"), *read)["left"] == "1.0"
    assert ask.pins(f"{wheel} ; python_version > '3'", *read)["left"] == "1.0"
    assert ask.pins(f"left @ {wheel}", *read)["left"] == "1.0"


def test_a_wheel_beside_the_project_is_taken_from_its_path(ask: Asker) -> None:
    path = ask.site.add("left", "7.0", requires=["right<2"])
    ask.site.files["left"].remove(path)
    (ask.folder / "wheels").mkdir(parents=True)
    path.rename(ask.folder / "wheels" / path.name)
    source = f'[tool.uv.sources]\nleft = {{path = "wheels/{path.name}"}}\n'
    assert ask.project(_PROJECT + source) == {"left": "7.0", "right": "1.0"}
