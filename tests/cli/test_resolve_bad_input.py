"""Bad input: one clear message that names the place, the right exit code, an untouched lock."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cudalock.cli.main import main
from default_index_site import Site, default_index
from loopback import Reply, serve

_CPU = ["--cpu", "--only-default-index", "--python", "3.12", "--platform", "linux-x86_64"]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with default_index(tmp_path / "files") as found:
        found.add("left", "1.0")
        yield found


@pytest.fixture
def lock(tmp_path: Path, site: Site) -> Path:
    """Return a lock that stands and must not be touched."""
    path = tmp_path / "pylock.toml"
    assert _run(site, tmp_path, "left", "-o", str(path)) == 0
    return path


def _run(site: Site, tmp_path: Path, *arguments: str) -> int:
    flags = ["--default-index", site.url, "--cache-dir", str(tmp_path / "cache")]
    return main(["resolve", *arguments, *_CPU, *flags])


def _refused(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str]:
    before = (lock.read_bytes(), lock.stat().st_mtime_ns)
    capsys.readouterr()
    code = _run(site, tmp_path, *arguments, "-o", str(lock))
    captured = capsys.readouterr()
    assert (lock.read_bytes(), lock.stat().st_mtime_ns) == before
    assert "Traceback" not in captured.err
    assert captured.out == ""
    # Long lines are wrapped for a terminal; what is said is what counts here.
    return code, " ".join(captured.err.split())


def test_a_pyproject_that_is_no_toml(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pyproject.toml").write_text("[project\n", encoding="utf-8")
    code, told = _refused(site, tmp_path, lock, capsys, "--project", str(tmp_path))
    assert code == 2
    assert "pyproject.toml" in told


def test_a_pyproject_whose_faults_are_all_told(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "x"\nversion = "1"\ndependencies = ["left ==="]\n'
        '[tool.cudalock.targets.box]\ncuda = "thirteen"\nsmm = ["12.0"]\n',
        encoding="utf-8",
    )
    code, told = _refused(site, tmp_path, lock, capsys, "--project", str(tmp_path))
    assert code == 2
    assert "project.dependencies[0]" in told
    assert "tool.cudalock.targets.box" in told
    assert "smm" in told


def test_a_target_whose_python_the_project_rules_out(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "x"\nversion = "1"\nrequires-python = ">=3.13"\ndependencies = ["left"]\n',
        encoding="utf-8",
    )
    code, told = _refused(site, tmp_path, lock, capsys, "--project", str(tmp_path))
    assert code == 2
    assert "project.requires-python" in told


def test_a_target_nobody_named(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.cudalock.targets.blackwell]\ncuda = "13.0"\n', encoding="utf-8"
    )
    arguments = ("left", "--project", str(tmp_path), "--target", "blackwel")
    code, told = _refused(site, tmp_path, lock, capsys, *arguments)
    assert code == 2
    assert "`blackwel`" in told
    assert "blackwell" in told


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--driver", "590.48.01", "--driver-cuda", "12.8"], "590.48.01"),
        (["--cuda", "13"], "`13`"),
        (["--sm", "banana"], "`banana`"),
        (["--gpu", "rtx-9999"], "rtx-9999"),
    ],
)
def test_a_target_that_contradicts_itself_or_cannot_be_read(
    site: Site,
    tmp_path: Path,
    lock: Path,
    capsys: pytest.CaptureFixture[str],
    flags: list[str],
    named: str,
) -> None:
    before = lock.read_bytes()
    index = ["--default-index", site.url, "--cache-dir", str(tmp_path / "cache")]
    code = main(["resolve", "left", *flags, *index, "--only-default-index", "-o", str(lock)])
    assert code == 2
    assert named in capsys.readouterr().err
    assert lock.read_bytes() == before


def test_a_flag_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["resolve", "left", "--cudda", "13.0"]) == 2
    assert "--cudda" in capsys.readouterr().err


def test_a_requirements_file_that_is_not_there(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = _refused(site, tmp_path, lock, capsys, "-r", str(tmp_path / "none.txt"))
    assert code == 2
    assert "none.txt" in told


def test_a_hash_of_the_wrong_length_in_a_requirements_file(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text("# a comment\nleft==1.0 --hash=sha256:abcd\n", encoding="utf-8")
    code, told = _refused(site, tmp_path, lock, capsys, "-r", str(file))
    assert code == 2
    assert "requirements.txt:2" in told


def test_a_hash_of_the_wrong_length_in_a_lock(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.add("left", "2.0")
    text = lock.read_text(encoding="utf-8")
    start = text.index('sha256 = "') + len('sha256 = "')
    lock.write_text(text[: start + 10] + text[start + 64 :], encoding="utf-8")
    code, told = _refused(site, tmp_path, lock, capsys, "left>=1")
    assert code == 2
    assert "packages[0].wheels[0].hashes.sha256" in told


def test_a_lock_that_is_broken(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock.write_text('lock-version = "1.0"\n[[packages\n', encoding="utf-8")
    code, told = _refused(site, tmp_path, lock, capsys, "left")
    assert code == 2
    assert "pylock.toml" in told


def test_a_page_that_is_no_page(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    html = {"Content-Type": "text/html"}
    site.faults["right"] = Reply(200, b"<html><body>Sign in</body></html>", html)
    code, told = _refused(site, tmp_path, lock, capsys, "right")
    assert code == 3
    assert f"{site.url}/right/" in told


def test_an_index_that_answers_500(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.faults["right"] = Reply(500, b"no", {"Retry-After": "0"})
    code, told = _refused(site, tmp_path, lock, capsys, "right")
    assert code == 3
    assert f"{site.url}/right/" in told
    assert "500" in told


def test_an_index_that_nobody_reaches_names_the_flag_that_leaves_it_out(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve(lambda _: Reply(404)) as gone:
        address = gone.url.rstrip("/")
    code, told = _refused(site, tmp_path, lock, capsys, "left", "--index", f"mine={address}/simple")
    assert code == 3
    assert address in told
    assert "--exclude-index mine" in told


def test_a_project_that_no_index_has(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = _refused(site, tmp_path, lock, capsys, "sglang-kernl")
    assert code == 1
    assert "no index lists such a wheel" in told
    assert "`sglang-kernel`" in told


def test_near_names_come_from_the_cache_and_the_recordings_too(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.add("uncommonly-named", "1.0")
    assert _run(site, tmp_path, "uncommonly-named", "--dry-run") == 0
    code, told = _refused(site, tmp_path, lock, capsys, "uncommonly-nmaed")
    assert code == 1
    assert "`uncommonly-named`" in told
    code, told = _refused(site, tmp_path, lock, capsys, "sgl-deep-gem", "--recorded")
    assert code == 1
    assert "`sgl-deep-gemm`" in told


def test_a_wheel_by_address_whose_name_lies(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = site.url.replace("/simple", "/files/left-1.0-py3-none-any.whl")
    code, told = _refused(site, tmp_path, lock, capsys, f"right @ {address}")
    assert code == 3
    assert "left-1.0-py3-none-any.whl" in told


def test_metadata_that_lies_about_its_project(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = site.add("right", "1.0")
    honest = path.read_bytes()
    other = site.add("wrong", "1.0").read_bytes()
    assert honest != other
    path.write_bytes(other)
    code, told = _refused(site, tmp_path, lock, capsys, "right")
    assert code == 3
    assert "right-1.0-py3-none-any.whl" in told


def test_a_malformed_hash_on_a_page_is_a_rejection_and_matters_only_where_it_is_needed(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.bad_hashes.add(site.add("right", "2.0").name)
    code, told = _refused(site, tmp_path, lock, capsys, "right")
    assert code == 3
    assert f"{site.url}/right/" in told
    assert "right-2.0-py3-none-any.whl" in told


def test_a_hash_that_no_index_lists_says_what_computing_it_costs(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = site.add("right", "1.0")
    page = f'<!DOCTYPE html><html><body><a href="/files/{path.name}">{path.name}</a></body></html>'
    site.faults["right"] = Reply(200, page.encode(), {"Content-Type": "text/html"})
    code, told = _refused(site, tmp_path, lock, capsys, "right")
    assert code == 3
    assert "a download of one wheel" in told
    assert "--hash-missing download" in told
    assert _run(site, tmp_path, "right", "-o", str(lock), "--hash-missing", "download") == 0
    assert 'hash = "computed"' in lock.read_text(encoding="utf-8")


def test_two_claimed_hashes_for_one_address_are_settled_by_the_bytes(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = site.add("right", "1.0")
    links = "".join(
        f'<a href="/files/{path.name}#sha256={digit * 64}">{path.name}</a><br>' for digit in "ab"
    )
    site.faults["right"] = Reply(200, links.encode(), {"Content-Type": "text/html"})
    code, told = _refused(site, tmp_path, lock, capsys, "right")
    assert code == 3
    assert "the index lists 2 for this address" in told


def test_credentials_appear_nowhere(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = "canary-of-a-password"
    url = site.url.replace("http://", f"http://someone:{secret}@")
    lock, cache = tmp_path / "pylock.toml", tmp_path / "cache"
    flags = ["--default-index", url, "--cache-dir", str(cache), "-o", str(lock)]
    for project in ("left", "nowhere"):
        main(["resolve", project, *_CPU, *flags])
    captured = capsys.readouterr()
    assert secret not in captured.out + captured.err
    assert secret not in lock.read_text(encoding="utf-8")
    kept = [path for path in cache.rglob("*") if path.is_file()]
    assert kept
    assert not [path for path in kept if secret.encode() in path.read_bytes()]


def test_nothing_from_an_index_controls_the_terminal(
    site: Site, tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = b'<html><body>\x1b[31m<a href="x">\x1b]0;owned\x07</a></body></html>'
    site.faults["right"] = Reply(200, page, {"Content-Type": "text/html"})
    code, told = _refused(site, tmp_path, lock, capsys, "right")
    assert code == 3
    assert "\x1b" not in told


def test_an_interrupt_is_quiet(tmp_path: Path) -> None:
    def hang(_: object) -> Reply:
        time.sleep(5)
        return Reply(404)

    with serve(hang) as server:
        address = f"{server.url.rstrip('/')}/simple"
        flags = ["--default-index", address, "--cache-dir", str(tmp_path / "cache")]
        command = [sys.executable, "-m", "cudalock", "resolve", "left", *_CPU, *flags]
        environ = {**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        started = subprocess.Popen(
            command, cwd=tmp_path, env=environ, stderr=subprocess.PIPE, text=True
        )
        while not server.asked:
            assert started.poll() is None
            time.sleep(0.02)
        started.send_signal(signal.SIGINT)
        _, told = started.communicate(timeout=20)
    assert started.returncode == 130
    assert told == "interrupted\n"
    assert not (tmp_path / "pylock.toml").exists()
