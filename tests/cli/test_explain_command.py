"""`cudalock explain`: a page of help, or the list of all, in three formats and without a network."""

import json
from pathlib import Path

import jsonschema
import pytest

import cudalock
from cudalock.cli.main import main
from cudalock.explain.rules import RULES

_SCHEMA = Path(cudalock.__file__).parent / "cli" / "schemas" / "explain-1.json"


def test_the_page_of_a_rule_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "unknown-cuda"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("CUDA203: wheels whose CUDA is not known\n\n")
    assert "\n\nWhat to do\n\n- `cudalock inspect NAME==VERSION`" in told
    assert told.endswith("Also found as: unknown-cuda.\n")


def test_without_a_code_all_rules_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in told] == [rule.code for rule in RULES]


@pytest.mark.parametrize("asked", [[], ["CUDA301"]])
def test_pages_are_data_where_data_is_asked_for(
    asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", *asked, "--format", "json"]) == 0
    form = json.loads(capsys.readouterr().out)
    jsonschema.validate(form, json.loads(_SCHEMA.read_text(encoding="utf-8")))
    assert len(form["rules"]) == (1 if asked else len(RULES))


def test_markdown_is_the_page_itself_and_the_list_a_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["explain", "CUDA301", "--format", "markdown"]) == 0
    assert capsys.readouterr().out.startswith("# CUDA301: built for one release of its partner\n")
    assert main(["explain", "--format", "markdown"]) == 0
    assert "| CUDA301 | pairing | built for one release of its partner |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "meant"), [("unknown-cudas", "`unknown-cuda`"), ("CUDA2033", "`CUDA203`")]
)
def test_what_is_no_rule_is_asked_wrongly_and_the_nearest_are_named(
    asked: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", asked]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert f"found `{asked}`" in told
    assert meant in told
