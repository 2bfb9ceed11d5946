"""What `[tool.uv.sources]` and `[[tool.uv.index]]` say is obeyed, for transitive projects too."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cudalock.cli.main import main
from default_index_site import Site, default_index

_HEAD = '[project]\nname = "x"\nversion = "1"\n'


class Asker:
    """Resolves a project that depends on ``left``, which requires ``right``."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys
        self.sites: dict[str, Site] = {}

    def index(self, name: str, *, explicit: bool = True) -> str:
        return (
            f'[[tool.uv.index]]\nname = "{name}"\nurl = "{self.sites[name].url}"\n'
            f"explicit = {str(explicit).lower()}\n"
        )

    def __call__(self, text: str, *arguments: str) -> tuple[int, dict[str, Any]]:
        if not text.startswith("dependencies"):
            text = f'dependencies = ["left"]\n{text}'
        (self.folder / "pyproject.toml").write_text(_HEAD + text, encoding="utf-8")
        self._capsys.readouterr()
        flags = ["--default-index", self.sites["home"].url, "--cache-dir", str(self.folder / "c")]
        machine = ["--cpu", "--python", "3.12"]
        if "--platform" not in arguments:
            machine += ["--platform", "linux-x86_64"]
        form = ["--dry-run", "--format", "json"]
        project = ["--project", str(self.folder)]
        code = main(["resolve", *project, *machine, *arguments, *flags, *form])
        return code, json.loads(self._capsys.readouterr().out)

    def pins(self, text: str, *arguments: str) -> dict[str, str]:
        code, form = self(text, *arguments)
        assert code == 0, form
        return {package["name"]: package["version"] for package in form["packages"]}


@pytest.fixture
def ask(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Asker]:
    asker = Asker(tmp_path, capsys)
    with (
        default_index(tmp_path / "home") as home,
        default_index(tmp_path / "one") as one,
        default_index(tmp_path / "two") as two,
    ):
        for site, version in ((home, "1.0"), (one, "1.1"), (two, "1.2")):
            site.add("left", version, requires=["right"])
            site.add("right", version)
        asker.sites = {"home": home, "one": one, "two": two}
        yield asker


def test_a_source_names_the_index_of_a_project_that_only_another_wheel_requires(
    ask: Asker,
) -> None:
    text = ask.index("one") + '[tool.uv.sources]\nright = {index = "one"}\n'
    assert ask.pins(text) == {"left": "1.0", "right": "1.1"}


def test_of_a_list_of_sources_the_one_whose_marker_holds_on_the_target_counts(ask: Asker) -> None:
    text = (
        ask.index("one")
        + ask.index("two")
        + '[tool.uv.sources]\nleft = [\n  {index = "one", marker = "sys_platform == \'win32\'"},\n'
        + '  {index = "two", marker = "sys_platform == \'linux\'"},\n]\n'
    )
    assert ask.pins(text)["left"] == "1.2"
    assert ask.pins(text, "--platform", "win-amd64")["left"] == "1.1"


def test_a_source_whose_marker_holds_nowhere_leaves_the_project_alone(ask: Asker) -> None:
    text = ask.index("one") + (
        '[tool.uv.sources]\nleft = {index = "one", marker = "python_version < \'3\'"}\n'
    )
    assert ask.pins(text) == {"left": "1.0", "right": "1.0"}


def test_a_source_for_an_extra_or_a_group_counts_where_that_is_asked_for(ask: Asker) -> None:
    text = (
        'dependencies = ["left"]\n[project.optional-dependencies]\ncu128 = ["left"]\ncu130 = ["left"]\n'
        '[dependency-groups]\ndev = ["left"]\n'
        + ask.index("one")
        + ask.index("two")
        + '[tool.uv.sources]\nleft = [\n  {index = "one", extra = "cu128"},\n'
        + '  {index = "two", extra = "cu130"},\n  {index = "one", group = "dev"},\n]\n'
    )
    assert ask.pins(text)["left"] == "1.0"
    assert ask.pins(text, "--extra", "cu128")["left"] == "1.1"
    assert ask.pins(text, "--extra", "CU130")["left"] == "1.2"
    assert ask.pins(text, "--group", "dev")["left"] == "1.1"


def test_an_explicit_index_serves_nothing_that_no_source_names(ask: Asker) -> None:
    assert ask.pins(ask.index("one")) == {"left": "1.0", "right": "1.0"}


def test_an_index_that_is_not_explicit_is_asked_first_for_everything(ask: Asker) -> None:
    assert ask.pins(ask.index("one", explicit=False)) == {"left": "1.1", "right": "1.1"}
    both = ask.index("two", explicit=False) + ask.index("one", explicit=False)
    assert ask.pins(both) == {"left": "1.2", "right": "1.2"}


def test_a_source_goes_before_an_index_that_is_asked_first(ask: Asker) -> None:
    text = ask.index("one", explicit=False) + ask.index("two")
    text += '[tool.uv.sources]\nright = {index = "two"}\n'
    assert ask.pins(text) == {"left": "1.1", "right": "1.2"}


def test_a_source_may_be_the_address_of_a_wheel(ask: Asker) -> None:
    wheel = ask.sites["two"].files["left"][0]
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    base = ask.sites["two"].url.removesuffix("/simple")
    url = f"{base}/files/{wheel.name}#sha256={digest}"
    text = f'[tool.uv.sources]\nleft = {{url = "{url}"}}\n'
    assert ask.pins(text) == {"left": "1.2", "right": "1.0"}


def test_a_source_that_names_no_index_is_refused_with_those_there_are(ask: Asker) -> None:
    code, form = ask(ask.index("one") + '[tool.uv.sources]\nleft = {index = "onee"}\n')
    assert (code, form["status"]) == (2, "error")
    assert "tool.uv.sources.left" in form["error"]["where"]
    assert "one" in form["error"]["message"]
