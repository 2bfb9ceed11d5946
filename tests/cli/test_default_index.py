import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from cudalock.cli.default_index import DefaultIndex, ask_default_index, find_uv
from cudalock.errors import UsageError
from cudalock.host.source_answers import CommandAnswer
from cudalock.host.this_machine import run_command

_CANARY = "canary-41c7"
_LOOPBACK = "http://127.0.0.1:9"


class Desk:
    """A user's machine: a home, a project and a cache of its own, and the real uv."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.folder = root / "work" / "project"
        self.cache = root / "cache"
        self.home.mkdir()
        self.folder.mkdir(parents=True)
        self.asked = 0

    def run(self, argv: Sequence[str], environ: Mapping[str, str]) -> CommandAnswer:
        self.asked += 1
        return run_command(argv, environ)

    def ask(self, **variables: str) -> DefaultIndex:
        environ = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.home),
            "XDG_CONFIG_DIRS": str(self.home / "etc"),
            "UV_CACHE_DIR": str(self.cache / "uv"),
            **variables,
        }
        return ask_default_index(
            environ=environ, cache_dir=self.cache / "own", run=self.run, folder=self.folder
        )

    def kept(self) -> str:
        files = [path for path in (self.cache / "own").rglob("*") if path.is_file()]
        return "".join(path.read_text() for path in files)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_our_own_variable_comes_first_and_asks_nobody(desk: Desk) -> None:
    found = desk.ask(CUDALOCK_DEFAULT_INDEX=f"{_LOOPBACK}/own", UV_DEFAULT_INDEX=f"{_LOOPBACK}/uv")
    assert found.url.reveal() == f"{_LOOPBACK}/own"
    assert found.source == "CUDALOCK_DEFAULT_INDEX"
    assert desk.asked == 0
    named = desk.ask(CUDALOCK_DEFAULT_INDEX=f"company={_LOOPBACK}/own")
    assert named.url == found.url


def test_what_uv_is_set_to_is_asked_once_until_it_changes(desk: Desk) -> None:
    settings = desk.folder.parent / "uv.toml"
    settings.write_text(f'index-url = "{_LOOPBACK}/one"\n')
    assert desk.ask().url.reveal() == f"{_LOOPBACK}/one"
    assert desk.ask().source == "uv"
    assert desk.asked == 1
    settings.write_text(f'index-url = "{_LOOPBACK}/two"\n')
    assert desk.ask().url.reveal() == f"{_LOOPBACK}/two"
    assert desk.asked == 2
    assert desk.ask(UV_DEFAULT_INDEX=f"{_LOOPBACK}/three").url.reveal() == f"{_LOOPBACK}/three"
    assert desk.asked == 3


def test_a_project_and_the_users_settings_are_what_uv_reads(desk: Desk) -> None:
    user = desk.home / ".config" / "uv" / "uv.toml"
    user.parent.mkdir(parents=True)
    user.write_text(f'[[index]]\nurl = "{_LOOPBACK}/user"\ndefault = true\n')
    assert desk.ask().url.reveal() == f"{_LOOPBACK}/user"
    (desk.folder / "pyproject.toml").write_text(
        f'[[tool.uv.index]]\nname = "x"\nurl = "{_LOOPBACK}/project"\ndefault = true\n'
    )
    assert desk.ask().url.reveal() == f"{_LOOPBACK}/project"
    assert desk.asked == 2


def test_pips_variable_counts_where_uv_has_no_setting(desk: Desk) -> None:
    pip = f"{_LOOPBACK}/pip"
    found = desk.ask(PIP_INDEX_URL=pip)
    assert (found.url.reveal(), found.source) == (pip, "PIP_INDEX_URL")
    asked = desk.asked
    assert desk.ask(PIP_INDEX_URL=f"{pip}2").url.reveal() == f"{pip}2"
    assert desk.asked == asked
    chosen = desk.ask(PIP_INDEX_URL=pip, UV_DEFAULT_INDEX=f"{_LOOPBACK}/uv")
    assert (chosen.url.reveal(), chosen.source) == (f"{_LOOPBACK}/uv", "uv")


def test_without_any_setting_the_answer_is_the_one_uv_has_built_in(desk: Desk) -> None:
    found = desk.ask()
    assert found.source == "uv"
    assert found.url.reveal().startswith("https://")


def test_an_address_with_credentials_is_never_kept(desk: Desk) -> None:
    secret = f"http://user:{_CANARY}@127.0.0.1:9/simple"
    for _ in range(2):
        found = desk.ask(UV_DEFAULT_INDEX=secret)
        assert found.url.reveal() == secret
        assert _CANARY not in repr(found)
    assert desk.asked == 2
    assert desk.ask(PIP_INDEX_URL=secret).url.reveal() == secret
    assert "own" in str(desk.cache / "own")
    assert _CANARY not in desk.kept()


def test_a_setting_that_is_no_address_names_its_variable(desk: Desk) -> None:
    for variable in ("CUDALOCK_DEFAULT_INDEX", "PIP_INDEX_URL"):
        with pytest.raises(UsageError, match="expected an http or https URL") as caught:
            desk.ask(**{variable: f"ftp://user:{_CANARY}@host"})
        assert caught.value.where == variable
        assert caught.value.flag == "--default-index"
        assert _CANARY not in str(caught.value)
    with pytest.raises(UsageError) as caught:
        desk.ask(UV_DEFAULT_INDEX=str(desk.folder))
    assert caught.value.where == "uv's settings"


def test_settings_that_uv_cannot_read_are_told_in_its_words_without_secrets(desk: Desk) -> None:
    (desk.folder / "uv.toml").write_text(f'index-url = "http://u:{_CANARY}@127.0.0.1:9/\n')
    with pytest.raises(UsageError, match=r"uv\.toml") as caught:
        desk.ask()
    assert caught.value.exit_code == 2
    assert _CANARY not in str(caught.value)


@pytest.mark.parametrize("kept", ["", "[]", "{}", "[" * 5000, '{"inputs": 1}', "\x00"])
def test_a_broken_kept_answer_is_asked_again(desk: Desk, kept: str) -> None:
    desk.ask(UV_DEFAULT_INDEX=f"{_LOOPBACK}/a")
    (path,) = (path for path in (desk.cache / "own").rglob("*") if path.is_file())
    path.write_text(kept)
    assert desk.ask(UV_DEFAULT_INDEX=f"{_LOOPBACK}/a").url.reveal() == f"{_LOOPBACK}/a"
    assert desk.asked == 2


def test_a_cache_that_cannot_be_written_costs_only_time(desk: Desk) -> None:
    desk.cache.mkdir()
    (desk.cache / "own").write_text("a file where the folder should be")
    for _ in range(2):
        desk.ask(UV_DEFAULT_INDEX=f"{_LOOPBACK}/a")
    assert desk.asked == 2


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (TimeoutError("no answer in 10 seconds"), "no answer in 10 seconds"),
        (FileNotFoundError("uv"), "cannot ask uv"),
        (CommandAnswer(returncode=0, stdout="# nothing\n", stderr=""), "set to have none"),
        (CommandAnswer(returncode=2, stdout="", stderr="error: odd"), "it says: error: odd"),
    ],
)
def test_a_uv_that_does_not_answer_is_a_usage_error_with_the_flag_that_helps(
    desk: Desk, answer: CommandAnswer | OSError, said: str
) -> None:
    def run(argv: Sequence[str], environ: Mapping[str, str]) -> CommandAnswer:
        assert environ["UV_PYTHON_DOWNLOADS"] == "never"
        if isinstance(answer, OSError):
            raise answer
        return answer

    with pytest.raises(UsageError, match=said) as caught:
        ask_default_index(
            environ={}, cache_dir=desk.cache, run=run, folder=desk.folder, uv=Path("/no/uv")
        )
    assert caught.value.flag == "--default-index"


def test_uv_is_the_one_installed_beside_this_python() -> None:
    found = find_uv({"PATH": "/nowhere"})
    assert found.is_file()
    assert found.parent == Path(sys.executable).parent


def test_uv_is_found_from_a_python_that_has_none_beside_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert find_uv({"PATH": "/nowhere"}).is_file()
