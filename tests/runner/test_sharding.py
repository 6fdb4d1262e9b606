"""Selection of the checks of a shard, and the digest of the whole plan."""

import hashlib
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci.evaluators.agentevals.builtin import make_builtin_evaluator
from agentci.model.case import Case
from agentci.model.gate import Gate, GatePolicy, GateThresholds
from agentci.model.result import Shard, parse_shard
from agentci.model.values import Place, replace
from agentci.reports.run_content import make_case_summary
from agentci.runner.check import Check
from agentci.runner.plan import Plan, PlannedSuite, digest_plan, select_shard
from tests.helpers.reports import make_case

IDS = [hashlib.sha256(str(number).encode()).hexdigest()[:16] for number in range(2000)]


def _plan(
    *cases: Case, policy: GatePolicy | None = None, fingerprint: str = "", **evaluator: Any
) -> Plan:
    named = {"metric": "tool_trajectory_avg_score", "place": Place(file="a.yaml"), **evaluator}
    judge = make_builtin_evaluator(**named)
    checks = tuple(
        Check(
            config="a.yaml",
            evaluator=judge,
            case=make_case_summary(case),
            load=make_case,
            fingerprint=fingerprint,
        )
        for case in cases
    )
    gate = Gate(config="a.yaml", policy=policy or GatePolicy(), evaluators=(judge.identity.name,))
    return Plan(suites=(PlannedSuite(gate=gate, checks=checks),), problems=())


def _with_answer(case: Case, answer: str) -> Case:
    *before, last = case.trace.turns
    turns = (*before, replace(last, answer_parts=(answer,)))
    return replace(case, trace=replace(case.trace, turns=turns))


class TestShard:
    @given(total=st.integers(1, 256))
    def test_every_check_is_in_exactly_one_shard(self, total: int) -> None:
        shards = [Shard(index=index, total=total) for index in range(1, total + 1)]
        assert all(sum(shard.contains(check) for shard in shards) == 1 for check in IDS[:20])

    def test_shards_are_of_similar_size(self) -> None:
        for index in range(1, 5):
            share = sum(Shard(index=index, total=4).contains(check) for check in IDS)
            assert 440 < share < 560

    @pytest.mark.parametrize("text", ["1/1", "2/5", "256/256", "007/10"])
    def test_shard_text_is_parsed(self, text: str) -> None:
        index, total = map(int, text.split("/"))
        assert parse_shard(text) == Shard(index=index, total=total)

    @pytest.mark.parametrize("text", ["auto", "AUTO"])
    def test_auto_shard_is_read_from_matrix_job(self, text: str) -> None:
        assert parse_shard(text, matrix_job="0/3") == Shard(index=1, total=3)
        assert parse_shard(text, matrix_job="2/3") == Shard(index=3, total=3)

    @pytest.mark.parametrize(
        ("text", "matrix_job"),
        [
            *((text, "0/3") for text in ("", "0/3", "4/3", "1/257", "1/2/3", "1 / 2", "²/³", "x")),
            *(("auto", job) for job in ("", "/", "3/3", "0/257", "${{ strategy.job-index }}/1")),
        ],
    )
    def test_invalid_shard_text_is_rejected(self, text: str, matrix_job: str) -> None:
        with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
            parse_shard(text, matrix_job=matrix_job)


class TestSelectShard:
    def test_plan_without_shard_is_unchanged(self) -> None:
        plan = _plan(make_case())
        assert select_shard(plan, None) is plan

    def test_shard_keeps_its_checks_and_all_gates(self) -> None:
        plan = _plan(*(make_case(str(number)) for number in range(20)))
        shard = Shard(index=1, total=2)
        selected = select_shard(plan, shard)
        assert [check.id for check in selected.checks] == [
            check.id for check in plan.checks if shard.contains(check.id)
        ]
        assert selected.gates == plan.gates
        assert selected.shard_info is not None
        assert selected.shard_info.checks == tuple(check.id for check in plan.checks)


class TestPlanDigest:
    def test_plan_digest_is_equal_for_every_shard(self) -> None:
        cases = [make_case(str(number)) for number in range(5)]
        portions = [
            select_shard(_plan(*cases), Shard(index=i, total=3)).shard_info for i in range(1, 4)
        ]
        assert len({portion.plan_digest for portion in portions if portion}) == 1

    @pytest.mark.parametrize(
        "other",
        [
            pytest.param(lambda case: _plan(case, make_case("b")), id="additional check"),
            pytest.param(lambda _: _plan(), id="missing check"),
            pytest.param(lambda case: _plan(case, threshold=0.1), id="other threshold"),
            pytest.param(lambda case: _plan(case, required=False), id="advisory evaluator"),
            pytest.param(
                lambda case: _plan(case, place=Place(file="a.yaml", line=9)), id="other line"
            ),
            pytest.param(lambda case: _plan(replace(case, expected=None)), id="no eval case"),
            pytest.param(
                lambda case: _plan(replace(case, trace=replace(case.trace, id="x"))),
                id="other trace",
            ),
            pytest.param(lambda case: _plan(_with_answer(case, "No.")), id="other answer"),
            pytest.param(
                lambda case: _plan(replace(case, trace=replace(case.trace, performance={"n": 1}))),
                id="other latency",
            ),
            pytest.param(lambda case: _plan(case, fingerprint="x"), id="other evaluator"),
            pytest.param(
                lambda case: _plan(case, policy=GatePolicy(overall=GateThresholds(min_score=0.5))),
                id="other gate policy",
            ),
        ],
    )
    def test_plan_digest_changes_with_plan(self, other: Callable[[Case], Plan]) -> None:
        case = make_case()
        assert digest_plan(_plan(case)) == digest_plan(_plan(case))
        assert digest_plan(other(case)) != digest_plan(_plan(case))
