"""Reports for GitHub, SARIF and Markdown: what they say, and that nothing in them acts."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from markdown_it import MarkdownIt

from cudalock.cli.github_form import format_github
from cudalock.cli.json_form import format_json
from cudalock.cli.main import main
from cudalock.cli.markdown_form import escape_markdown, format_markdown
from cudalock.cli.outcome import (
    Finding,
    Outcome,
    Place,
    ToldRemedy,
    error_outcome,
    find_place,
    locked_outcome,
    read_text,
    refused_outcome,
)
from cudalock.cli.sarif_form import sarif_form
from cudalock.cli.terminal import Terminal, without_commands
from cudalock.errors import IndexAccessError, UsageError
from cudalock.explain.rules import rule_of
from cudalock.resolver.conflict import NoSolutionError, UnprovedError
from cudalock.resolver.notes import describe
from cudalock.resolver.resolution import solve
from default_index_site import Site, default_index
from scenario_worlds import read_scenario, scenario_paths

_PATHS = {path.stem: path for path in scenario_paths()}
_LINUX = ("--python", "3.12", "--platform", "linux-x86_64", "--cpu")

# The part of SARIF 2.1.0 that our logs use, with every property that the standard requires there.
_SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "$schema": {"type": "string", "format": "uri"},
        "runs": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/run"}},
    },
    "additionalProperties": False,
    "$defs": {
        "text": {
            "type": "object",
            "required": ["text"],
            "properties": {
                "text": {"type": "string", "minLength": 1},
                "markdown": {"type": "string"},
            },
            "additionalProperties": False,
        },
        "run": {
            "type": "object",
            "required": ["tool", "results"],
            "properties": {
                "tool": {
                    "type": "object",
                    "required": ["driver"],
                    "properties": {
                        "driver": {
                            "type": "object",
                            "required": ["name"],
                            "properties": {
                                "name": {"type": "string"},
                                "version": {"type": "string"},
                                "rules": {
                                    "type": "array",
                                    "uniqueItems": True,
                                    "items": {"$ref": "#/$defs/rule"},
                                },
                            },
                            "additionalProperties": False,
                        }
                    },
                    "additionalProperties": False,
                },
                "invocations": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["executionSuccessful"],
                        "properties": {"executionSuccessful": {"type": "boolean"}},
                        "additionalProperties": False,
                    },
                },
                "results": {"type": "array", "items": {"$ref": "#/$defs/result"}},
            },
            "additionalProperties": False,
        },
        "rule": {
            "type": "object",
            "required": ["id"],
            "properties": {
                "id": {"type": "string"},
                "name": {"type": "string", "pattern": "^[A-Za-z0-9]+$"},
                "shortDescription": {"$ref": "#/$defs/text"},
                "fullDescription": {"$ref": "#/$defs/text"},
                "help": {"$ref": "#/$defs/text"},
            },
            "additionalProperties": False,
        },
        "result": {
            "type": "object",
            "required": ["message"],
            "properties": {
                "message": {"$ref": "#/$defs/text"},
                "level": {"enum": ["none", "note", "warning", "error"]},
                "ruleId": {"type": "string"},
                "ruleIndex": {"type": "integer", "minimum": 0},
                "locations": {"type": "array", "items": {"$ref": "#/$defs/location"}},
                "relatedLocations": {"type": "array", "items": {"$ref": "#/$defs/location"}},
            },
            "additionalProperties": False,
        },
        "location": {
            "type": "object",
            "required": ["physicalLocation"],
            "properties": {
                "physicalLocation": {
                    "type": "object",
                    "required": ["artifactLocation"],
                    "properties": {
                        "artifactLocation": {
                            "type": "object",
                            "properties": {"uri": {"type": "string", "format": "uri-reference"}},
                            "additionalProperties": False,
                        },
                        "region": {
                            "type": "object",
                            "properties": {"startLine": {"type": "integer", "minimum": 1}},
                            "additionalProperties": False,
                        },
                    },
                    "additionalProperties": False,
                }
            },
            "additionalProperties": False,
        },
    },
}

# What an index, a wheel or a file might hold to act on whoever reads the report.
_HOSTILE = [
    "\x1b[31mred\x1b[0m",
    "\x9b31m and \u202eright to left",
    "a\n::error file=x::owned",
    "a\r\n::set-env name=PATH::x",
    "::stop-commands::x",
    "##[add-mask]x",
    "100%0A::error::x",
    "<script>alert(1)</script> &lt;b&gt;",
    "[link](https://evil.test) ![image](https://evil.test/x.png)",
    "https://evil.test and www.evil.test",
    "@everyone and owner/repo#1 and #2",
    "*bold* _it_ ~~no~~ **x** | cell | $x$",
    "`code` ``double`` ``` fence",
    "odd ` tick",
    "# heading",
    "- item",
    "1. item",
    "    indented",
    "{0} and {x}",
]


def _outcome(text: str) -> Outcome:
    place = Place(file=f"req,uire:{text}.txt", line=3)
    finding = Finding(level="error", message=text, rule=rule_of("pairing"), places=(place, place))
    note = Finding(level="warning", message=text)
    remedy = ToldRemedy(command=f"cudalock resolve '{text}'", changes=(text,), note=text)
    return Outcome(
        status="refused",
        target=text,
        findings=(finding, note),
        remedies=(remedy,),
        packages=((text, text, text, text),),
        lock=text,
    )


def _unescaped(text: str) -> str:
    """Read a message of a workflow command as the runner does."""
    for code, sign in (("%3A", ":"), ("%2C", ","), ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
        text = text.replace(code, sign)
    return text


@pytest.mark.parametrize("text", _HOSTILE)
def test_a_hostile_text_is_no_workflow_command_of_its_own(text: str) -> None:
    lines = format_github(_outcome(text)).splitlines()
    assert len(lines) == 3
    for line in lines:
        assert line.isprintable()
        read = re.fullmatch(r"::(error|warning|notice) ((?:\w+=[^,:]*,?)+)::(.*)", line)
        assert read is not None
        assert "\n" not in read[2]
    properties = dict(p.split("=", 1) for p in lines[0].split(" ", 1)[1].split("::")[0].split(","))
    assert set(properties) == {"file", "line", "title"}
    assert properties["line"] == "3"
    # What the runner reads is what was meant, but for what could control a terminal.
    message = lines[0].split("::", 2)[2]
    if text.isprintable():
        assert _unescaped(message).startswith(text)
        assert _unescaped(properties["file"]) == f"req,uire:{text}.txt"


@pytest.mark.parametrize("text", _HOSTILE)
def test_a_hostile_text_does_nothing_in_sarif(text: str) -> None:
    told = format_json(sarif_form(_outcome(text)))
    assert all(line.isprintable() for line in told.split("\n"))
    assert "##[" not in told
    log = json.loads(told)
    jsonschema.validate(log, _SARIF)
    message = log["runs"][0]["results"][1]["message"]["text"]
    assert not re.search(r"(?<!\\)\[[^\[\]]*\]\(", message)
    assert message.replace("{{", "").replace("}}", "").count("{") == 0


@pytest.mark.parametrize("text", _HOSTILE)
def test_a_hostile_text_is_nothing_but_text_in_markdown(text: str) -> None:
    told = format_markdown(_outcome(text))
    assert all(c == "\n" or c.isprintable() for c in told)
    assert not re.search(r"^\s*::|(?<!#)##\[", told, re.MULTILINE)
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(told)
    blocks = [token.type for token in tokens if token.type.endswith("_open")]
    harmless = {"heading_open", "paragraph_open", "bullet_list_open", "list_item_open", "th_open"}
    table = {"table_open", "thead_open", "tbody_open", "tr_open", "td_open"}
    assert set(blocks) <= harmless | table
    assert (blocks.count("heading_open"), blocks.count("list_item_open")) == (1, 1)
    assert blocks.count("td_open") == 4
    assert [token.type for token in tokens].count("fence") == 1
    inside = [child for token in tokens for child in token.children or ()]
    marks = {"text", "softbreak", "hardbreak", "code_inline", "strong_open", "strong_close"}
    assert {child.type for child in inside if child.type != "html_inline"} <= marks
    assert [child.type for child in inside].count("strong_open") == 2
    assert {child.content for child in inside if child.type == "html_inline"} <= {"<!-- -->"}
    # Mentions, issues and bare addresses are looked for in the text, outside of code.
    for child in inside:
        if child.type == "text":
            assert not re.search(r"@\w|#\d", child.content)
    code = re.compile(
        r"^(`{3,})console\n.*?\n\1$|(?<![\\`])`[^`\n]+`(?!`)", re.DOTALL | re.MULTILINE
    )
    assert not re.search(r"://|www\.", code.sub("", told))


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("`torch==2.9.1` is of a_b", "`torch==2.9.1` is of a\\_b"),
        ("a#1 and @me", "a#<!-- -->1 and @<!-- -->me"),
        ("- not a list", "\\- not a list"),
        ("1) not a list", "1\\) not a list"),
        ("a `b", "a \\`b"),
        ("``a``", "\\`\\`a\\`\\`"),
    ],
)
def test_markdown_is_escaped_where_it_means_something(text: str, escaped: str) -> None:
    assert escape_markdown(text) == escaped


def test_what_goes_to_a_log_of_actions_holds_no_command() -> None:
    assert without_commands("a\n  ::error::x\nb ##[add-mask]x") == (
        "a\n  \\x3a:error::x\nb #\\x23[add-mask]x"
    )


def test_the_terminal_defuses_commands_in_actions_only(capsys: pytest.CaptureFixture[str]) -> None:
    for environ in ({}, {"GITHUB_ACTIONS": "true"}):
        Terminal(environ=environ).say("::notice::x")
    assert capsys.readouterr().err == "::notice::x\n\\x3a:notice::x\n"


def test_at_most_ten_annotations_are_made_and_the_worst_come_first() -> None:
    notes = [Finding(level="note", message=f"note {n}") for n in range(9)]
    warnings = [Finding(level="warning", message=f"warning {n}") for n in range(4)]
    error = Finding(level="error", message="no", rule=rule_of("no-solution"))
    remedy = ToldRemedy(command="cudalock resolve a", changes=("a",))
    outcome = Outcome(status="refused", findings=(*notes, *warnings, error), remedies=(remedy,))
    lines = format_github(outcome).splitlines()
    kinds = [line.split(" ")[0].strip(":") for line in lines[:10]]
    assert kinds == ["error", "notice", *["warning"] * 4, *["notice"] * 4]
    assert "cudalock hint" in lines[1]
    assert lines[10:] == ["and 5 more, which the log above tells"]


@pytest.mark.parametrize("name", sorted(_PATHS))
def test_every_scenario_makes_all_three_reports(name: str) -> None:
    world = read_scenario(_PATHS[name]).world()
    try:
        outcome = locked_outcome(describe(world, solve(world)), "pylock.toml", ["said of it"])
        status = "locked"
    except NoSolutionError as error:
        outcome = refused_outcome(error.conflict, error.target, [])
        status = "refused"
        assert len([f for f in outcome.findings if f.level == "error"]) == 1 + len(
            error.conflict.also
        )
    except UnprovedError as error:
        outcome = error_outcome(error, world.target)
        status = "unknown"
    assert outcome.status == status
    assert all(finding.rule is not None for finding in outcome.findings)
    log = sarif_form(outcome)
    jsonschema.validate(log, _SARIF)
    assert all(line.startswith("::") for line in format_github(outcome).splitlines()[:10])
    assert format_markdown(outcome).startswith("### cudalock: ")


def test_a_refusal_reads_well_in_markdown() -> None:
    world = read_scenario(_PATHS["kernel-of-another-torch"]).world()
    with pytest.raises(NoSolutionError) as caught:
        solve(world)
    remedy = ToldRemedy(command="cudalock resolve torch==2.9.1", changes=("torch==2.9.1",))
    told = format_markdown(refused_outcome(caught.value.conflict, world.target, [remedy]))
    assert told == (
        "### cudalock: no set of wheels fits\n\n"
        "The target is driver 590.48.01 (CUDA 13.1), wheels of CUDA 13.0 or older (strict), compute"
        " capability 12.0, Python 3.12, manylinux\\_2\\_28\\_x86\\_64.\n\n"
        "**CUDA301** pairing\n\n"
        "Because sgl-kernel 0.3.21+cu130 is built for torch 2.9 (METADATA of sglang 0.5.9 pins"
        " sgl-kernel==0.3.21 and torch==2.9.1)  \n"
        "and torch 2.11.0+cu130 is of torch 2.11 (its version)  \n"
        "and you require `sgl-kernel==0.3.21` (argument)  \n"
        "and you require `torch==2.11.0` (argument),  \n"
        "no set of wheels does all of this.\n\n"
        "Hint: with `torch==2.9.1` the set resolves\n\n"
        "```console\ncudalock resolve torch==2.9.1\n```\n"
    )


_PROJECT = '[project]\nname = "x"\ndependencies = [\n  "left==2",\n  "right",\n]\n'


@pytest.mark.parametrize(
    ("where", "file", "line"),
    [
        ("requirements.txt:3", "requirements.txt", 3),
        ("sub dir/requirements-dev.txt:12", "sub dir/requirements-dev.txt", 12),
        ("pyproject.toml: project.dependencies[1]", "pyproject.toml", 5),
        ("pyproject.toml: project.dependencies[7]", "pyproject.toml", None),
        ("pyproject.toml: tool.nothing", "pyproject.toml", None),
        ("pyproject.toml: project.dependencies", "pyproject.toml", None),
        ("other.toml: project.dependencies[1]", "other.toml", None),
    ],
)
def test_a_place_is_the_file_and_line_where_that_is_known(
    where: str, file: str, line: int | None
) -> None:
    texts = {"pyproject.toml": _PROJECT}
    assert find_place(where, texts.get) == Place(file=file, line=line)


@pytest.mark.parametrize("where", ["command line", "argument", "--cuda 13.0", "CUDALOCK_CUDA"])
def test_what_is_in_no_file_has_no_place(where: str) -> None:
    assert find_place(where, lambda _: _PROJECT) is None


def test_of_a_value_that_stands_twice_no_line_is_known() -> None:
    text = '[project]\ndependencies = ["left"]\noptional-dependencies.x = ["left"]\n'
    text = text.replace("\n", "\n\n")
    found = find_place("pyproject.toml: project.dependencies[0]", lambda _: text)
    assert found == Place(file="pyproject.toml", line=None)


def test_an_error_names_its_place_and_its_flag() -> None:
    error = IndexAccessError("expected an answer", where="requirements.txt:3", flag="--offline")
    outcome = error_outcome(error, None)
    assert outcome.status == "unknown"
    assert outcome.findings[0].places == (Place(file="requirements.txt", line=3),)
    assert outcome.findings[0].message.endswith("The flag that decides this: --offline")
    assert error_outcome(UsageError("no"), None).status == "error"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with default_index(tmp_path / "files") as found:
        found.add("left", "1")
        found.add("right", "1", requires=["left==1"])
        yield found


def _run(
    site: Site,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    form: str,
    *arguments: str,
) -> tuple[int, str]:
    monkeypatch.chdir(folder)
    flags = ["--default-index", site.url, "--cache-dir", str(folder / "cache"), *_LINUX]
    code = main(["resolve", *arguments, *flags, "--format", form])
    return code, capsys.readouterr().out


def test_a_refusal_is_annotated_at_the_requirement(
    site: Site,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site.add("left", "2")
    (tmp_path / "requirements.txt").write_text("# what we need\nleft==2\nright\n")
    flags = ("-r", "requirements.txt")
    code, told = _run(site, tmp_path, capsys, monkeypatch, "github", *flags)
    assert code == 1
    lines = told.splitlines()
    assert lines[0].startswith(
        "::error file=requirements.txt,line=2,title=CUDA104 dependency::Because right 1 requires"
    )
    assert lines[1].startswith("::notice title=cudalock hint::with `left==1` the set resolves%0A")
    code, told = _run(site, tmp_path, capsys, monkeypatch, "sarif", *flags)
    log: dict[str, Any] = json.loads(told)
    jsonschema.validate(log, _SARIF)
    (result,) = log["runs"][0]["results"]
    (rule,) = log["runs"][0]["tool"]["driver"]["rules"]
    assert (code, result["level"], result["ruleId"], rule["id"]) == (1, "error", *["CUDA104"] * 2)
    place = result["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "requirements.txt"}, "region": {"startLine": 2}}
    assert result["relatedLocations"][0]["physicalLocation"]["region"] == {"startLine": 3}
    assert "What to do" in rule["help"]["markdown"]


def test_a_requirement_of_a_project_is_annotated_at_its_line(
    site: Site,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site.add("left", "2")
    text = '[project]\nname = "x"\nversion = "1"\ndependencies = [\n  "right",\n  "left==2",\n]\n'
    (tmp_path / "pyproject.toml").write_text(text)
    # The folder is given whole, and told as it is from here.
    code, told = _run(
        site, tmp_path, capsys, monkeypatch, "github", "--project", str(tmp_path), "--no-remedies"
    )
    assert code == 1
    assert told.startswith("::error file=pyproject.toml,line=6,title=CUDA104 dependency::")


def test_a_file_that_cannot_be_read_again_has_no_lines(tmp_path: Path) -> None:
    large = tmp_path / "large.toml"
    large.write_bytes(b"#" * (4 * 1024 * 1024 + 1))
    (tmp_path / "latin.toml").write_bytes(b"\xff")
    for name in ("large.toml", "latin.toml", "none.toml"):
        assert read_text(str(tmp_path / name)) is None


def test_a_set_is_a_table_in_markdown_and_no_annotation(
    site: Site,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code, told = _run(site, tmp_path, capsys, monkeypatch, "markdown", "right")
    assert code == 0
    assert "2 packages in `" in told
    assert "| left | 1 |  | default |" in told
    assert _run(site, tmp_path, capsys, monkeypatch, "github", "right") == (0, "")


@pytest.mark.parametrize("form", ["github", "sarif", "markdown"])
def test_an_error_is_told_in_every_form(
    form: str,
    site: Site,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code, told = _run(site, tmp_path, capsys, monkeypatch, form, "left", "--offline")
    assert code == 3
    assert "CUDA505" in told
    if form == "sarif":
        log = json.loads(told)
        jsonschema.validate(log, _SARIF)
        assert log["runs"][0]["invocations"] == [{"executionSuccessful": False}]
