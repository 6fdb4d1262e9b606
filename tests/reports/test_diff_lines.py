"""Line ranges shown in the diff of a pull request, parsed from the patches of git."""

import subprocess
from pathlib import Path

import pytest

from agentci.model.values import Place
from agentci.reports.workflow_commands import distance_to_diff, parse_hunks

CONTEXT = 3


def patch_of(folder: Path, before: str, after: str) -> str:
    """The patch of a file from its first hunk, as in GitHub's API."""
    for name, text in (("a", before), ("b", after)):
        (folder / name).write_bytes(text.encode())
    ran = subprocess.run(
        ["git", "diff", "--no-index", "--text", "a", "b"],
        cwd=folder,
        capture_output=True,
        check=False,
    )
    text = ran.stdout.decode()
    return text[text.index("\n@@ ") + 1 :]


def numbered(*lines: int, of: int = 50, mark: str = " changed") -> str:
    """A file in which the given lines are changed."""
    return "".join(f"line {n}{mark if n in lines else ''}\n" for n in range(1, of + 1))


def test_changed_lines_include_context(tmp_path: Path) -> None:
    shown = parse_hunks(patch_of(tmp_path, numbered(), numbered(20, 40)))
    assert shown == (range(17, 24), range(37, 44))


def test_hunk_lines_are_those_of_new_file(tmp_path: Path) -> None:
    (shown,) = parse_hunks(patch_of(tmp_path, numbered(), "new\n" * 5 + numbered()))
    assert shown == range(1, 6 + CONTEXT)


def test_hunk_without_line_count_is_one_line(tmp_path: Path) -> None:
    assert parse_hunks(patch_of(tmp_path, "x\n", "y\n")) == (range(1, 2),)


def test_emptied_file_has_no_lines(tmp_path: Path) -> None:
    (shown,) = parse_hunks(patch_of(tmp_path, "x\n", ""))
    assert list(shown) == []


def test_forged_hunk_header_in_content_is_ignored(tmp_path: Path) -> None:
    forged = "@@ -1 +900,9 @@\r@@ -1 +800,9 @@\n"
    assert parse_hunks(patch_of(tmp_path, "", forged)) == (range(1, 2),)


@pytest.mark.parametrize(
    "patch",
    ["", "no patch", "@@ -1 +", "@@ -1 +x @@", f"@@ -1 +{'9' * 5000} @@", "@@ -1 +\u0661 @@"],
)
def test_invalid_patch_has_no_lines(patch: str) -> None:
    assert parse_hunks(patch) == ()


def test_distance_grows_from_hunk_to_other_files() -> None:
    diff = {"a.yaml": (range(3, 5), range(9, 12)), "image.png": ()}
    assert [distance_to_diff(Place(file="a.yaml", line=line), diff) for line in (3, 4, 10)] == [
        0,
        0,
        0,
    ]
    assert [distance_to_diff(Place(file="a.yaml", line=line), diff) for line in (2, 5, 12)] == [
        1,
        1,
        1,
    ]
    assert distance_to_diff(Place(file="image.png"), diff) == 1
    assert distance_to_diff(Place(file="b.yaml", line=3), diff) == 2
    assert distance_to_diff(None, diff) == 2
