"""Conversion of documents from GitHub to the site."""

import re
import subprocess

import pytest

from scripts.site import PAGES, mended
from tests.helpers.support import ROOT

REPOSITORY = "https://github.com/org/agent-eval-action"


@pytest.mark.parametrize(
    ("folder", "link", "page"),
    [
        ("docs", "reports.md", "reports.md"),
        ("docs", "reports.md#junitxml", "reports.md#junitxml"),
        ("docs/folder", "page.md", "page.md"),
        ("docs/folder", "../show.md#json", "../show.md#json"),
        ("docs/folder", "../../README.md", "../index.md"),
        ("docs/folder", "../../LICENSE", f"{REPOSITORY}/blob/main/LICENSE"),
        ("docs", "../README.md#try-it-here", "index.md#try-it-here"),
        ("", "docs/reports.md", "reports.md"),
        ("", "SECURITY.md", "reporting.md"),
        ("", "LICENSE", f"{REPOSITORY}/blob/main/LICENSE"),
        ("docs", "../examples/agentevals", f"{REPOSITORY}/tree/main/examples/agentevals"),
        ("docs", "#a-matrix", "#a-matrix"),
        ("docs", "https://example.com/a.md", "https://example.com/a.md"),
    ],
)
def test_link_leads_to_page_or_repository(folder: str, link: str, page: str) -> None:
    assert mended(f"see [it]({link}).", folder, REPOSITORY) == f"see [it]({page})."


@pytest.mark.parametrize(
    ("folder", "source", "address"),
    [
        ("", "docs/pictures/case.webp", "pictures/case.webp"),
        ("docs", "pictures/case.webp", "../pictures/case.webp"),
    ],
)
def test_image_is_found_from_folder_of_page(folder: str, source: str, address: str) -> None:
    assert mended(f'<img src="{source}">', folder, REPOSITORY) == f'<img src="{address}">'


@pytest.mark.parametrize("block", ["- one\n- two\n", "1. one\n2. two\n", "| a |\n|---|\n| b |\n"])
def test_blank_line_is_added_before_lists_and_tables(block: str) -> None:
    assert mended(f"Text:\n{block}", "docs", REPOSITORY) == f"Text:\n\n{block}"


def test_every_document_is_in_navigation() -> None:
    text = (ROOT / "mkdocs.yml").read_text()
    pages = re.findall(r"\S+\.md$", text.partition("\nnav:")[2].partition("\n\n")[0], re.MULTILINE)
    assert sorted(pages) == sorted(
        [
            *PAGES.values(),
            *(path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md")),
        ]
    )


def test_site_build_fails_on_warnings() -> None:
    done = subprocess.run(
        ["make", "--dry-run", "site"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    (build,) = re.findall(r"mkdocs build.*", done.stdout)
    assert build == "mkdocs build"
    assert "\nstrict: true\n" in (ROOT / "mkdocs.yml").read_text()
