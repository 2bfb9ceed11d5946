"""The metadata that a single-file script carries in its comments.

Specification: inline script metadata (PEP 723). A block of type ``script`` holds TOML with
``dependencies``, ``requires-python`` and ``tool``; what these mean is `pyproject`'s business.
"""

from cudalock.errors import UsageError
from cudalock.project.pyproject import ProjectFile, read_script_tables, read_toml

__all__ = ["parse_script"]

_LARGEST_FILE = 16 << 20


def parse_script(text: str, *, where: str) -> ProjectFile | None:
    """Read the metadata of the script named ``where``; ``None`` when it carries none.

    Linear in the length of the text.

    Raises:
        UsageError: two blocks, or a block that is not TOML.
        ProjectFileError: the block says something that cannot be; all of its faults at once.

    """
    if len(text) > _LARGEST_FILE:
        message = f"expected at most {_LARGEST_FILE} characters, found {len(text)}"
        raise UsageError(message, where=where)
    blocks = _script_blocks(text.splitlines())
    if not blocks:
        return None
    if len(blocks) > 1:
        # "When there are multiple comment blocks of the same TYPE defined, tools MUST produce an
        # error." (PEP 723)
        lines = " and ".join(str(number) for number, _ in blocks[:2])
        raise UsageError(
            f"expected one block of script metadata, found two, at lines {lines}", where=where
        )
    number, content = blocks[0]
    # The line numbers of a TOML message count from the block, so the place says where that is.
    place = f"{where}, script metadata below line {number}"
    return read_script_tables(read_toml(content, where=place), where=place)


def _script_blocks(lines: list[str]) -> list[tuple[int, str]]:
    """Find each block of type ``script``: the number of its first line, and its content.

    "Any Python script may have top-level comment blocks that MUST start with the line `# /// TYPE`
    … and MUST end with the line `# ///`. … Every line between these two lines MUST be a comment
    starting with `#`. If there are characters after the `#` then the first character MUST be a
    space." The last ``# ///`` of the comment ends the block; "Unclosed blocks MUST be ignored".
    """
    blocks: list[tuple[int, str]] = []
    start = 0
    while start < len(lines):
        kind = _block_type(lines[start])
        end = start + 1
        if kind is None:
            start = end
            continue
        closing = None
        while end < len(lines) and (lines[end] == "#" or lines[end].startswith("# ")):
            closing = end if lines[end] == "# ///" else closing
            end += 1
        if closing is None:
            # Nothing in this comment closes a block, whatever else opens inside it.
            start = end
            continue
        if kind == "script":
            content = "\n".join(line[2:] for line in lines[start + 1 : closing])
            blocks.append((start + 1, content + "\n"))
        start = closing + 1
    return blocks


def _block_type(line: str) -> str | None:
    kind = line.removeprefix("# /// ").rstrip()
    named = line.startswith("# /// ") and kind.isascii() and kind.replace("-", "").isalnum()
    return kind if named else None
