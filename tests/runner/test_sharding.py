"""Which checks a shard has, and of what it is one."""

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
from agentci.model.problem import Place
from agentci.model.shard import Shard, parse_shard
from agentci.model.values import replace
from agentci.reports.case_summary import make_case_summary
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


class TestAShard:
    @given(total=st.integers(1, 256))
    def test_shares_all_checks_with_the_others_and_each_with_none(self, total: int) -> None:
        shards = [Shard(index=index, total=total) for index in range(1, total + 1)]
        assert all(sum(shard.contains(check) for shard in shards) == 1 for check in IDS[:20])

    def test_has_about_as_many_as_any_other(self) -> None:
        for index in range(1, 5):
            share = sum(Shard(index=index, total=4).contains(check) for check in IDS)
            assert 440 < share < 560

    @pytest.mark.parametrize("text", ["1/1", "2/5", "256/256", "007/10"])
    def test_is_read_from_what_people_write(self, text: str) -> None:
        index, total = map(int, text.split("/"))
        assert parse_shard(text) == Shard(index=index, total=total)

    @pytest.mark.parametrize("text", ["auto", "AUTO"])
    def test_is_read_from_a_matrix_that_counts_from_0(self, text: str) -> None:
        assert parse_shard(text, matrix_job="0/3") == Shard(index=1, total=3)
        assert parse_shard(text, matrix_job="2/3") == Shard(index=3, total=3)

    @pytest.mark.parametrize(
        ("text", "matrix_job"),
        [
            *((text, "0/3") for text in ("", "0/3", "4/3", "1/257", "1/2/3", "1 / 2", "²/³", "x")),
            *(("auto", job) for job in ("", "/", "3/3", "0/257", "${{ strategy.job-index }}/1")),
        ],
    )
    def test_is_nothing_else(self, text: str, matrix_job: str) -> None:
        with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
            parse_shard(text, matrix_job=matrix_job)


class TestTakingAShard:
    def test_leaves_a_plan_alone_where_there_is_none(self) -> None:
        plan = _plan(make_case())
        assert select_shard(plan, None) is plan

    def test_leaves_its_checks_and_the_gates_of_all(self) -> None:
        plan = _plan(*(make_case(str(number)) for number in range(20)))
        shard = Shard(index=1, total=2)
        taken = select_shard(plan, shard)
        assert [check.id for check in taken.checks] == [
            check.id for check in plan.checks if shard.contains(check.id)
        ]
        assert taken.gates == plan.gates
        assert taken.shard_info is not None
        assert taken.shard_info.checks == tuple(check.id for check in plan.checks)


class TestTheDigestOfAPlan:
    def test_is_the_same_for_every_shard(self) -> None:
        cases = [make_case(str(number)) for number in range(5)]
        portions = [
            select_shard(_plan(*cases), Shard(index=i, total=3)).shard_info for i in range(1, 4)
        ]
        assert len({portion.plan_digest for portion in portions if portion}) == 1

    @pytest.mark.parametrize(
        "other",
        [
            pytest.param(lambda case: _plan(case, make_case("b")), id="a check more"),
            pytest.param(lambda _: _plan(), id="a check less"),
            pytest.param(lambda case: _plan(case, threshold=0.1), id="another threshold"),
            pytest.param(lambda case: _plan(case, required=False), id="an advisory evaluator"),
            pytest.param(lambda case: _plan(case, place=Place(file="a.yaml", line=9)), id="moved"),
            pytest.param(lambda case: _plan(replace(case, expected=None)), id="no golden case"),
            pytest.param(
                lambda case: _plan(replace(case, trace=replace(case.trace, id="x"))),
                id="recorded anew",
            ),
            pytest.param(lambda case: _plan(_with_answer(case, "No.")), id="another answer"),
            pytest.param(
                lambda case: _plan(replace(case, trace=replace(case.trace, performance={"n": 1}))),
                id="another latency",
            ),
            pytest.param(lambda case: _plan(case, fingerprint="x"), id="another evaluator"),
            pytest.param(
                lambda case: _plan(case, policy=GatePolicy(overall=GateThresholds(min_score=0.5))),
                id="another gate",
            ),
        ],
    )
    def test_tells_it_from_others(self, other: Callable[[Case], Plan]) -> None:
        case = make_case()
        assert digest_plan(_plan(case)) == digest_plan(_plan(case))
        assert digest_plan(other(case)) != digest_plan(_plan(case))
