"""Merged shards, in any order, equal the run without shards."""

from collections.abc import Sequence
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from agentci.model.gate import Gate, GatePolicy, GateThresholds
from agentci.model.result import CheckResult, Report, Shard, ShardInfo
from agentci.model.values import FAIL_ON_CHOICES, FailOn, Problem, replace
from agentci.reports.merge.merge import merge_reports
from agentci.reports.merge.read import ReportFile
from tests.helpers.building import values
from tests.helpers.reports import make_report, make_result

CONFIGS = ("a.yaml", "b.yaml")
THRESHOLDS = values(
    GateThresholds,
    min_pass_rate=st.floats(0, 1),
    min_score=st.none() | st.floats(0, 1),
    on_error=st.sampled_from(["fail", "warn"]),
    on_skip=st.sampled_from(["fail", "allow"]),
)
GATES = st.tuples(
    *(
        values(
            Gate,
            config=st.just(config),
            policy=values(
                GatePolicy,
                overall=THRESHOLDS,
                evaluators=st.dictionaries(st.sampled_from(["tone", "other"]), THRESHOLDS),
            ),
            evaluators=st.just(("tone",)),
            uncovered=st.sampled_from([(), ("c",), ("c", "d")]),
            unmatched=st.sampled_from([(), ("e",)]),
        )
        for config in CONFIGS
    )
)
RESULTS = st.lists(
    st.builds(
        lambda status, score, config, required, number: replace(
            make_result(
                status,
                score if status in {"passed", "failed"} else None,
                config=config,
                evaluator="tone",
                required=required,
                reason="no reason",
            ),
            id=f"{number:016x}",
        ),
        st.sampled_from(["passed", "failed", "errored", "skipped"]),
        st.floats(0, 1),
        st.sampled_from(CONFIGS),
        st.booleans(),
        st.integers(0, 2**64 - 1),
    ),
    max_size=12,
    unique_by=lambda result: result.id,
).map(lambda results: sorted(results, key=lambda result: result.config))


def _shards(results: Sequence[CheckResult], gates: Sequence[Gate], total: int) -> list[Report]:
    checks = tuple(result.id for result in results)
    problems = (Problem(message="odd", severity="warning"),)
    reports = []
    for index in range(1, total + 1):
        shard = Shard(index=index, total=total)
        own = make_report([each for each in results if shard.contains(each.id)], problems=problems)
        portion = ShardInfo(shard=shard, plan_digest="0" * 64, checks=checks)
        reports.append(replace(own, gates=tuple(gates), shard_info=portion))
    return reports


@given(
    results=RESULTS,
    gates=GATES,
    total=st.integers(1, 256),
    fail_on=st.sampled_from(FAIL_ON_CHOICES),
    random=st.randoms(use_true_random=False),
)
def test_merged_shards_equal_unsharded_run(
    results: list[CheckResult],
    gates: tuple[Gate, ...],
    total: int,
    fail_on: FailOn,
    random: Random,
) -> None:
    [whole] = _shards(results, gates, 1)
    reports = _shards(results, gates, total)
    random.shuffle(reports)
    parts = [ReportFile(file=str(number), report=report) for number, report in enumerate(reports)]
    unsharded = merge_reports(
        [ReportFile(file="", report=replace(whole, shard_info=None))], fail_on=fail_on
    )
    assert merge_reports(parts, fail_on=fail_on) == unsharded
    assert list(unsharded.results) == results
