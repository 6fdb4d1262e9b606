"""Judge usage in reports, and its sum in merged shards."""

import pytest

from agentci._util.text.escape import markdown_prose
from agentci.model.gate import Gate, GatePolicy
from agentci.model.result import JudgeSpending, ModelCost, Report, Shard, ShardInfo
from agentci.model.values import replace
from agentci.reports.console import render_console
from agentci.reports.job_summary import SummaryReport
from agentci.reports.json_report import JsonReport
from agentci.reports.merge.merge import merge_reports
from agentci.reports.merge.read import ReportFile, read_report
from tests.helpers.reports import CONFIG, make_report, make_result, text_of

SPENT = ModelCost(calls=1200, tokens=34567, usd=0.12345)
SAVED = ModelCost(calls=1, tokens=800, usd=0.5)


def report_of(*spending: JudgeSpending) -> Report:
    return replace(make_report([make_result("passed", 1.0)]), spending=spending)


def cost(
    spent: ModelCost = SPENT, saved: ModelCost = SAVED, *, priced: bool = True
) -> JudgeSpending:
    return JudgeSpending(config=CONFIG, spent=spent, saved=saved, priced=priced)


@pytest.mark.parametrize(
    ("spending", "line"),
    [
        (
            [cost()],
            (
                "Judge usage: 1,200 calls, 34,567 tokens, $0.1235; saved by cached responses: "
                "1 call, 800 tokens, $0.5"
            ),
        ),
        ([cost(saved=ModelCost(), priced=False)], "Judge usage: 1,200 calls, 34,567 tokens"),
        (
            [cost(saved=ModelCost()), cost(saved=ModelCost(), priced=False)],
            "2,400 calls, 69,134 tokens",
        ),
    ],
)
def test_judge_usage_is_reported_in_one_line(spending: list[JudgeSpending], line: str) -> None:
    report = report_of(*spending)
    shown = render_console(report, quiet=True, verbose=False, colour=False)
    assert sum(each.endswith(line) for each in shown.splitlines()) == 1
    page = text_of(SummaryReport(), report).splitlines()
    assert sum(each.endswith(markdown_prose(line)) for each in page) == 1


def test_judge_usage_is_omitted_without_judge() -> None:
    report = report_of()
    assert "Judge usage" not in render_console(report, quiet=False, verbose=True, colour=False)
    assert "Judge usage" not in text_of(SummaryReport(), report)


@pytest.mark.parametrize("priced", [True, False])
def test_written_judge_usage_is_read_back(*, priced: bool) -> None:
    known = {"usd": 1.5} if priced else {}
    spending = cost(
        ModelCost(calls=1, tokens=2, **known), ModelCost(calls=3, tokens=4), priced=priced
    )
    written = text_of(JsonReport(), report_of(spending)).encode()
    assert read_report(written, file="results.json").spending == (spending,)


def test_merged_shards_add_up_judge_usage() -> None:
    ids = [f"{number:016x}" for number in range(6)]
    results = [replace(make_result("passed", 1.0, case=each), id=each) for each in ids]
    gates = (Gate(config=CONFIG, policy=GatePolicy(), evaluators=("response_quality",)),)
    parts = []
    for index in (1, 2):
        shard = Shard(index=index, total=2)
        portion = ShardInfo(shard=shard, plan_digest="0" * 64, checks=tuple(ids))
        own = [each for each in results if shard.contains(each.id)]
        report = replace(make_report(own), shard_info=portion, gates=gates, spending=(cost(),))
        parts.append(ReportFile(file=f"{index}.json", report=report))
    [spending] = merge_reports(parts, fail_on="failed").spending
    assert spending == cost(SPENT + SPENT, SAVED + SAVED)
