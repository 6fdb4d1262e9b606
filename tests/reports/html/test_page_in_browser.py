"""``report.html`` in a real browser: mouse, keyboard, narrow, dark, and with hostile text."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentci.model.result import CallPayload, EvaluatorCalls, Report
from agentci.model.values import replace
from tests.helpers.browser import PROGRAM, Browser, browser
from tests.helpers.reports import make_report, make_result
from tests.helpers.support import ROOT
from tests.reports.html.pages import (
    HOSTILE,
    calls_of,
    full_report,
    hostile_report,
    long_report,
    page_of,
    transcript_report,
)

AXE = ROOT / ".venv" / "services" / "node_modules" / "axe-core" / "axe.min.js"
FAILED_CALLS = "#check=id+of+evals/eval_config.yaml,+books_a_flight,+tool_trajectory_avg_score"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium"),
]

Show = Callable[..., Browser]


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as window:
        yield window


@pytest.fixture
def show(window: Browser, tmp_path: Path) -> Iterator[Show]:
    """Show a report's page; any error that the page reports fails the test."""

    def show(report: Report, fragment: str = "", **looks: Any) -> Browser:
        (tmp_path / "report.html").write_text(page_of(report), encoding="utf-8")
        window.look(**looks)
        window.open(tmp_path / "report.html", fragment)
        return window

    window.faults.clear()
    yield show
    assert window.faults == []


def _rows(page: Browser) -> list[str]:
    return [text.split("\n")[0] for text in page.texts(".checks tbody a")]


def _focus(page: Browser) -> str:
    text: str = page.run("document.activeElement.innerText")
    return text


def _violations(page: Browser) -> Any:
    page.run(AXE.read_text())
    return page.run(
        "axe.run().then((result) => result.violations.map((each) =>"
        " `${each.id}: ${each.nodes.map((node) => node.target).join(' ')}`))"
    )


class TestTable:
    def test_worst_checks_are_listed_first(self, show: Show) -> None:
        page = show(full_report())
        assert _rows(page) == [
            "books_a_flight",
            "cancels",
            "refunds",
            "refunds",
            "cancels",
            "books_a_flight",
        ]
        assert page.texts("#hits") == ["6 checks"]

    def test_search_works_from_keyboard(self, show: Show) -> None:
        page = show(full_report())
        page.press("/")
        page.write("CANCELS sorry")
        assert page.texts("#hits") == ["1 of 6 checks"]
        assert _rows(page) == ["cancels"]
        page.wait("location.hash === '#query=CANCELS+sorry'")

    def test_filter_is_applied_and_cleared(self, show: Show) -> None:
        page = show(full_report(), "#evaluator=response_quality")
        page.run("document.getElementById('status-failed').click()")
        assert _rows(page) == ["cancels"]
        page.run("document.querySelector('.found button').click()")
        assert len(_rows(page)) == 6

    def test_evaluator_table_links_filter_checks(self, show: Show) -> None:
        page = show(full_report())
        page.run(
            "[...document.querySelectorAll('.wide a')]"
            ".find((link) => link.hash.includes('errored')).click()"
        )
        page.wait("location.hash.includes('errored')")
        assert page.texts("#hits") == ["1 of 6 checks"]

    def test_column_header_sorts_checks(self, show: Show) -> None:
        page = show(full_report())
        scores = ".checks tbody .of-score"
        press = "document.getElementById('by-score').click()"
        page.run(press)
        assert page.run("document.getElementById('by-score').parentNode.ariaSort") == "ascending"
        page.run(press)
        assert page.texts(scores)[0] == "0.95"
        assert _focus(page).startswith("Score")
        page.run(press)
        assert page.run("document.querySelector('[aria-sort]')") is None

    def test_long_table_is_split_into_pages(self, show: Show) -> None:
        page = show(long_report(250), "#sort=case")
        assert len(_rows(page)) == 100
        page.run("document.querySelector('.pages button:last-child').click()")
        assert _rows(page)[0] == "case 100"
        assert page.texts(".pages span") == ["101 to 200 of 250"]

    @pytest.mark.parametrize(
        "transcripts", [0, 200], ids=["without transcripts", "with 8 MiB of transcripts"]
    )
    def test_search_filters_ten_thousand_checks(self, show: Show, transcripts: int) -> None:
        report = long_report(10_000)
        payload = CallPayload(name="stdin", content="x" * 40_000, size=40_000)
        packed = {
            id_: text
            for result in report.results[:transcripts]
            for id_, text in calls_of(result, payload).json_by_check.items()
        }
        page = show(replace(report, evaluator_calls=EvaluatorCalls(json_by_check=packed)))
        page.run(
            """(() => {
              const field = document.getElementById('search');
              for (const words of ['9', '99', '999', 'sorry 9', 'none']) {
                field.value = words;
                field.dispatchEvent(new Event('input'));
              }
            })()"""
        )
        assert page.texts("#hits") == ["0 of 10,000 checks"]


class TestCheckView:
    def test_tool_calls_are_shown_side_by_side(self, show: Show) -> None:
        page = show(full_report(), FAILED_CALLS)
        assert page.texts("#check h1") == ["books_a_flight \u203a tool_trajectory_avg_score"]
        assert page.texts(".calls tbody th") == ["differs", "missing", "equal", "unexpected"]
        assert page.texts(".calls del, .calls ins") == ['to = "ROM"', 'to = "FCO"']
        assert page.texts("#overview") == []

    def test_trials_are_shown(self, show: Show) -> None:
        page = show(
            full_report(), "#check=id+of+evals/eval_config.yaml,+books_a_flight,+response_quality"
        )
        assert page.texts(".trials tbody tr") == ["1\t0.9\t", "2\t-\tit hung"]

    def test_repeats_are_shown(self, show: Show) -> None:
        page = show(
            full_report(), "#check=id+of+evals/eval_config.yaml,+books_a_flight,+response_quality"
        )
        assert page.texts(".repeats tbody tr") == [
            "1\t\u2713 passed\t0.9\t",
            "2\t\u2715 failed\t-\ta turn is missing",
        ]

    def test_details_are_shown_on_demand(self, show: Show) -> None:
        page = show(full_report(), FAILED_CALLS)
        assert page.run("document.querySelector('#check > details pre').textContent") == ""
        page.run("document.querySelector('#check > details summary').click()")
        page.wait(
            "document.querySelector('#check > details pre').textContent.includes('hold_seat')"
        )

    def test_check_is_entered_and_left_by_keyboard(self, show: Show) -> None:
        page = show(full_report())
        page.run("document.querySelector('.checks tbody a').focus()")
        page.press("Enter")
        page.wait("!document.getElementById('check').hidden")
        assert _focus(page) == "books_a_flight \u203a tool_trajectory_avg_score"
        page.press("Escape")
        page.wait("document.getElementById('check').hidden")
        assert _focus(page) == "books_a_flight"

    def test_next_check_follows_current_filter(self, show: Show) -> None:
        page = show(full_report(), f"{FAILED_CALLS}&status=failed")
        assert page.texts("#check nav span") == ["1 of 3"]
        page.run("document.querySelector('#check nav a:last-child').click()")
        page.wait("document.querySelector('#check h1').textContent.startsWith('cancels')")

    def test_unknown_check_is_reported(self, show: Show) -> None:
        page = show(full_report(), "#check=0000")
        assert page.texts("#check h1") == ["Check 0000 not found in this report"]


STDIN = CallPayload(
    name="stdin", content='{"threshold": 0.5, "invocations": [{"id": "\\u00e9"}]}', size=54
)
STDOUT = CallPayload(name="stdout", content="caf\\xe9\x1b", size=6, notes=("not UTF-8",))
TRANSCRIPT = f"#check={16 * '0'}"


@pytest.fixture
def expanded(show: Show) -> Browser:
    """A check whose transcript is shown."""
    page = show(
        transcript_report(STDIN, STDOUT, CallPayload(name="stderr", content="", size=0)), TRANSCRIPT
    )
    page.run("document.querySelector('#transcript summary').click()")
    page.wait("document.querySelector('#transcript pre') !== null")
    return page


class TestTranscript:
    def test_transcript_is_rendered_on_demand(self, show: Show) -> None:
        page = show(transcript_report(STDIN), TRANSCRIPT)
        assert page.texts("#transcript pre") == []
        page.run("document.querySelector('#transcript summary').focus()")
        page.press("Enter")
        page.wait("document.querySelector('#transcript pre') !== null")
        page.press("Enter")
        page.press("Enter")
        assert len(page.texts("#transcript pre")) == 1

    def test_transcript_shows_streams_and_notes(self, expanded: Browser) -> None:
        assert expanded.texts("#transcript h3") == ["response_quality"]
        assert expanded.texts("#transcript .prose") == ["program: exit code 0"]
        assert expanded.texts("#transcript h4") == ["stdin", "stdout", "stderr"]
        assert expanded.texts("#transcript .remarks") == [
            "54 bytes",
            "6 bytes; not UTF-8",
            "0 bytes",
        ]

    def test_json_is_indented_until_raw_is_requested(self, expanded: Browser) -> None:
        pretty, stdout = expanded.texts("#transcript pre")
        assert pretty.split("\n")[:2] == ["{", '  "threshold": 0.5,']
        assert stdout == "caf\\xe9\\u001b"
        expanded.run("document.querySelector('#transcript [aria-pressed]').focus()")
        expanded.press(" ")
        assert expanded.texts("#transcript pre")[0] == STDIN.content
        assert expanded.run("document.activeElement.ariaPressed") == "true"
        expanded.press(" ")
        assert expanded.texts("#transcript pre")[0] == pretty

    def test_copy_button_copies_or_selects_original_text(self, expanded: Browser) -> None:
        copy = "[...document.querySelectorAll('#transcript button')].at(-1).click()"
        expanded.run(
            "navigator.clipboard.writeText = async (text) => { window.copied = text; };" + copy
        )
        expanded.wait("document.querySelector('#transcript [role=status]:not(:empty)') !== null")
        assert expanded.run("window.copied") == STDOUT.content
        expanded.run("navigator.clipboard.writeText = async () => { throw new Error(); };" + copy)
        expanded.wait("String(getSelection()).startsWith('caf')")
        assert expanded.texts("#transcript [role=status]")[-1] == "Selected; press Ctrl+C to copy"

    def test_omitted_transcript_shows_commands_to_get_it(self, show: Show) -> None:
        result = replace(make_result("failed", 0.1), id="0" * 16)
        left_out = EvaluatorCalls(omitted_checks=frozenset([result.id]))
        page = show(replace(make_report([result]), evaluator_calls=left_out), TRANSCRIPT)
        assert page.texts(".omitted code") == [
            "agentci run evals/eval_config.yaml --only response_quality",
            "agentci evaluator run PROGRAM --trace evals/recordings/books_a_flight.json",
        ]

    def test_transcript_of_merged_run_refers_to_its_report(self, show: Show) -> None:
        result = replace(make_result("failed", 0.1), id="0" * 16)
        elsewhere = replace(
            make_report([result]), evaluator_calls=EvaluatorCalls(kept_in_parts=True)
        )
        page = show(elsewhere, TRANSCRIPT)
        assert page.texts(".omitted")[0].endswith(
            "is in the report.html of the run that this check comes from."
        )

    @pytest.mark.skipif(not AXE.is_file(), reason="npm could not install axe-core")
    @pytest.mark.parametrize("looks", [{}, {"dark": True}, {"width": 360, "height": 700}])
    def test_transcript_is_accessible_and_fits_width(
        self, expanded: Browser, looks: dict[str, Any]
    ) -> None:
        expanded.look(**looks)
        assert _violations(expanded) == []
        assert expanded.run("document.documentElement.scrollWidth") <= looks.get("width", 1280)


class TestHostileText:
    @pytest.mark.parametrize("fragment", ["", "#query=script"])
    def test_hostile_text_is_inert_in_table(self, show: Show, fragment: str) -> None:
        page = show(hostile_report(), fragment)
        assert page.run("window.stolen") is None
        assert page.run("document.querySelectorAll('img, iframe, object, [onclick]').length") == 0
        assert _rows(page)[0].startswith("</script><script>window.stolen = 1</script>")

    def test_hostile_text_is_inert_in_check(self, show: Show) -> None:
        page = show(hostile_report())
        page.run("document.querySelector('.checks tbody a').click()")
        page.wait("!document.getElementById('check').hidden")
        page.run("document.querySelectorAll('#check summary').forEach((each) => each.click())")
        page.wait("document.querySelector('#transcript pre') !== null")
        page.wait("document.querySelector('#check > details:last-of-type pre').textContent !== ''")
        assert HOSTILE.split("<!")[0] in page.texts("#transcript pre")[0]
        assert page.run("window.stolen") is None
        assert page.run("document.querySelectorAll('img, iframe, object, [onclick]').length") == 0

    def test_content_security_policy_blocks_injected_script(self, show: Show) -> None:
        page = show(full_report())
        page.run(
            "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"stolen=1\">')"
        )
        page.run(
            "const script = document.createElement('script');"
            "script.text = 'stolen=1';"
            "document.body.append(script)"
        )
        page.run("new Promise((done) => setTimeout(done, 100))")
        assert page.run("window.stolen") is None
        assert all("Content Security Policy" in fault for fault in page.faults)
        page.faults.clear()


@pytest.mark.parametrize("fragment", ["", FAILED_CALLS], ids=["table", "check"])
class TestEveryView:
    def test_page_fits_phone_width(self, show: Show, fragment: str) -> None:
        page = show(full_report(), fragment, width=360, height=700)
        assert page.run("document.documentElement.scrollWidth") <= 360

    @pytest.mark.skipif(not AXE.is_file(), reason="npm could not install axe-core")
    @pytest.mark.parametrize(
        "looks", [{}, {"dark": True}, {"width": 360}], ids=["light", "dark", "phone"]
    )
    def test_page_is_accessible(self, show: Show, fragment: str, looks: dict[str, Any]) -> None:
        page = show(full_report(), fragment, **looks)
        assert _violations(page) == []


def test_long_word_does_not_widen_page(show: Show) -> None:
    word = "x" * 500
    result = make_result(
        "failed", 0.1, case=word, evaluator=word, misses=[word], details={word: word}
    )
    page = show(make_report([result]), width=360)
    assert page.run("document.documentElement.scrollWidth") <= 360
    page.run("document.querySelector('.checks tbody a').click()")
    page.wait("!document.getElementById('check').hidden")
    assert page.run("document.documentElement.scrollWidth") <= 360


def test_verdict_and_failures_are_shown_without_scripts(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(page_of(full_report()), encoding="utf-8")
    with browser(tmp_path / "browser") as window:
        window.without_scripts()
        window.open(tmp_path / "report.html")
        assert window.texts("h1") == ["\u2715 Quality gate failed"]
        assert window.texts("#checks h3")[0] == "books_a_flight \u203a tool_trajectory_avg_score"
