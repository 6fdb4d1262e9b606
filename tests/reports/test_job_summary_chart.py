"""The chart of the job summary, rendered by Mermaid in a browser."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

import pytest

from agentci.model.gate import CheckClasses, Comparison, EvaluatorComparison
from agentci.model.result import Report
from agentci.model.values import replace
from agentci.reports.job_summary import MAX_BARS, SummaryReport, render_chart
from tests.helpers.browser import PROGRAM, Browser, browser
from tests.helpers.reports import CONFIG, make_report, make_result, text_of
from tests.services.servers import MODULES

MERMAID: Final = MODULES / "@mermaid-js" / "tiny" / "dist" / "mermaid.tiny.js"
# Mermaid's default `maxTextSize`, which GitHub keeps: longer charts are not drawn.
MAX_TEXT: Final = 50_000

HOSTILE: Final = [
    *('"] bar [1', "]", "[", "%%{init: {'securityLevel': 'loose'}}%%", "%% gone", "#quot;", "#35;"),
    *("<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "`**bold**`", "```", "a\nb"),
    *("\\", "", " ", "---", "title", "\u202e", "\ud800", "\x00", "中文", "🙂", "x" * 500, "@user"),
    *(
        "click a href",
        "$$x$$",
        ";",
        "{",
        "}",
        "&amp;",
        "::error::x",
        "##[error]x",
        "style a fill:red",
    ),
]


def scored(scores: dict[str, float], config: str = CONFIG) -> Report:
    return make_report(
        [
            make_result("passed", score, evaluator=name, config=config)
            for name, score in scores.items()
        ]
    )


def beside(report: Report, *trends: tuple[str, float | None, float | None]) -> Report:
    """The report with the scores of each evaluator before and now."""
    compared = tuple(
        EvaluatorComparison(
            config=CONFIG,
            evaluator=name,
            required=True,
            classes=CheckClasses(compared=1),
            pairs=1,
            before=before,
            after=after,
            p_value=None,
            outcome="pass",
            reason="",
        )
        for name, before, after in trends
    )
    return replace(report, comparison=Comparison(baseline="base.json", evaluators=compared))


def names(text: str) -> list[str]:
    [axis] = re.findall(r"^x-axis \[(.*)\]$", text, re.MULTILINE)
    return re.findall(r'"([^"]*)"', axis)


def test_bar_shows_mean_score_of_evaluator() -> None:
    text = render_chart(scored({"tone": 0.25, "quality": 1}))
    assert text.startswith("```mermaid\n%%{init: ")
    assert text.endswith(
        "xychart-beta horizontal\n"
        'title "Mean score"\n'
        'x-axis ["tone", "quality"]\n'
        "y-axis 0 --> 1\n"
        "bar [0.25, 1]\n"
        "```\n"
    )


def test_baseline_line_and_bars_use_shared_checks() -> None:
    report = scored({"tone": 0.25, "quality": 1, "new": 0.5})
    text = render_chart(
        beside(report, ("tone", 0.5, 0.2), ("quality", 0.9, 1), ("new", None, None))
    )
    assert names(text) == ["tone", "quality"]
    assert text.endswith("bar [0.2, 1]\nline [0.5, 0.9]\n```\n")
    assert "(line: baseline)" in text


def test_lost_checks_that_are_tested_as_0_are_in_no_bar() -> None:
    """The chart has the mean scores of the table below it."""
    report = beside(scored({"tone": 0.9, "quality": 1}), ("tone", 0.9, 0.8), ("quality", 1, 0.9))
    assert report.comparison is not None
    evaluators = tuple(
        replace(each, both_before=0.9, both_after=0.95) for each in report.comparison.evaluators
    )
    report = replace(report, comparison=replace(report.comparison, evaluators=evaluators))
    assert render_chart(report).endswith("bar [0.95, 0.95]\nline [0.9, 0.9]\n```\n")


def test_incomplete_baseline_is_not_drawn() -> None:
    text = render_chart(beside(scored({"tone": 0.25, "quality": 1}), ("tone", 0.5, 0.25)))
    assert names(text) == ["tone", "quality"]
    assert "line" not in text


@pytest.mark.parametrize(
    "report",
    [
        make_report([]),
        scored({"tone": 0.5}),
        make_report([make_result("errored"), make_result("errored", evaluator="tone")]),
        scored({f"e{n}": 0.5 for n in range(MAX_BARS + 1)}),
    ],
    ids=["no checks", "one evaluator", "no scores", "too many evaluators"],
)
def test_chart_is_omitted_if_not_meaningful(report: Report) -> None:
    assert render_chart(report) == ""
    assert "mermaid" not in text_of(SummaryReport(), report)


def test_evaluators_name_their_config_if_several() -> None:
    results = [make_result("passed", 1, config=config) for config in ("a.yaml", "b.yaml")]
    text = render_chart(make_report(results))
    assert names(text) == ["response_quality (a.yaml)", "response_quality (b.yaml)"]


def test_duplicate_names_are_numbered() -> None:
    text = render_chart(scored({"a?": 0.1, "a!": 0.2, "?": 0.3, "!": 0.4}))
    assert names(text) == ["a", "a (2)", " (1)", " (2)"]


def test_chart_follows_table() -> None:
    text = text_of(SummaryReport(), scored({"tone": 0.25, "quality": 1}))
    assert text.index("`quality`") < text.index("```mermaid")


def test_chart_is_dropped_first_if_space_is_short() -> None:
    text = text_of(SummaryReport(max_bytes=10_000), scored({"tone": 0.25, "quality": 1}))
    assert "mermaid" not in text
    assert "Not shown" not in text


def test_largest_chart_is_below_mermaid_limit() -> None:
    largest = scored({f"{n}{'中' * 100}": n / MAX_BARS for n in range(MAX_BARS)}, config="é" * 200)
    assert len(render_chart(largest)) < MAX_TEXT / 10
    assert "```mermaid" in text_of(SummaryReport(), largest)


@pytest.mark.skipif(
    PROGRAM is None or not MERMAID.is_file(), reason="there is no Chromium, or no Mermaid"
)
class TestMermaid:
    @pytest.fixture(scope="class")
    @classmethod
    def page(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
        folder = tmp_path_factory.mktemp("mermaid")
        (folder / "page.html").write_text(f"<script src='{MERMAID.as_uri()}'></script>")
        with browser(folder / "browser") as window:
            window.open(folder / "page.html")
            yield window

    def drawn(self, page: Browser, report: Report) -> list[str]:
        """The texts of the rendered chart; an error if rendering fails."""
        text = render_chart(report).removeprefix("```mermaid\n").removesuffix("```\n")
        found: list[str] = page.run(
            f"mermaid.render('chart', {json.dumps(text)}).then(({{svg}}) => {{"
            "document.body.innerHTML = svg;"
            "if (document.body.querySelector('script, foreignObject, a, img')) throw 'alive';"
            "return [...document.querySelectorAll('svg text')].map((each) => each.textContent)})"
        )
        return found

    def test_mermaid_draws_bars_and_baseline(self, page: Browser) -> None:
        texts = self.drawn(page, beside(scored({"tone": 1}), ("tone", 0.5, 0.2), ("b", 0.9, 1)))
        assert texts[:3] == [
            "Mean score of the checks in both runs (line: baseline)",
            "tone",
            "b",
        ]
        assert page.run("document.querySelectorAll('.bar-plot-0 rect').length") == 2
        assert page.run("document.querySelectorAll('.line-plot-1 path').length") == 1

    @pytest.mark.parametrize("count", [2, MAX_BARS])
    def test_mermaid_draws_few_and_many_bars(self, page: Browser, count: int) -> None:
        texts = self.drawn(page, scored({f"e{n}": n / count for n in range(count)}))
        assert [text for text in texts if text.startswith("e")] == [f"e{n}" for n in range(count)]

    def test_mermaid_treats_hostile_names_as_text(self, page: Browser) -> None:
        for hostile in _pairs(HOSTILE):
            report = scored(dict.fromkeys(hostile, 0.5))
            texts = self.drawn(page, report)
            assert texts[1:3] == [" ".join(name.split()) for name in names(render_chart(report))], (
                hostile
            )
        assert page.faults == []


def _pairs(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    return zip(texts, (*texts[1:], "tone"), strict=True)
