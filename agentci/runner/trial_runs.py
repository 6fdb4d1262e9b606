"""The runs of one case of an eval file: those that are recorded, and what makes others."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from agentci._util.text import truncate
from agentci._util.text.suggest import quoted
from agentci.config.suite import Suite
from agentci.evaluators.agentv.helpers import candidate_answer_of, question_of
from agentci.model.agent import Agent
from agentci.model.case import Case
from agentci.model.problem import Problem
from agentci.model.sample import Sample
from agentci.model.trace import Trace
from agentci.model.trials import Trials
from agentci.model.values import replace
from agentci.recordings.agentv.recorded_run import RecordedRun
from agentci.recordings.agentv.transcripts import turn_of

MAX_NAMES: Final = 5
NO_RUN: Final = "no recorded output is of this case"


class Attempts(Struct, frozen=True, kw_only=True, eq=False):
    """What is known of the runs of one case before any is judged; all its checks share it.

    Attributes:
        recorded: by attempt, counted from 0.
        agent: makes the runs that are not recorded; None where nothing does.
        trials: how many are wanted; None for one.
    """

    sample: Sample
    recorded: Mapping[int, RecordedRun]
    agent: Agent | None = None
    trials: Trials | None = None

    def numbers(self, *, runs_agent: bool) -> Sequence[int]:
        """The attempts that there can be, in order; the first one, if none is recorded."""
        if runs_agent and self.agent is not None:
            return range(1 if self.trials is None else self.trials.count)
        return sorted(self.recorded) or (0,)

    def first(self) -> Case:
        """The case with the first run that is recorded."""
        if not self.recorded:
            return case_without_run(self.sample)
        return case_of(self.sample, self.recorded[min(self.recorded)])


def pair(
    runs: Sequence[RecordedRun], suite: Suite
) -> tuple[tuple[Attempts, ...], tuple[Problem, ...]]:
    """Give each case of a suite its recorded runs; there may be none."""
    samples = [each.sample for each in suite.samples or ()]
    by_case, problems = _sorted(runs, samples)
    most = 1 if suite.trials is None else suite.trials.count
    numbered = {case_id: _numbered(own, most) for case_id, own in by_case.items()}
    problems += [problem for _, found in numbered.values() for problem in found]
    attempts = tuple(
        Attempts(
            sample=sample,
            recorded=numbered[sample.id][0] if sample.id in numbered else {},
            agent=suite.agent,
            trials=suite.trials,
        )
        for sample in samples
    )
    if suite.trials is not None and suite.agent is None:
        problems += _few(suite.trials, attempts)
    return attempts, tuple(problems)


def _sorted(
    runs: Sequence[RecordedRun], samples: Sequence[Sample]
) -> tuple[Mapping[str, list[RecordedRun]], list[Problem]]:
    """The runs of each case, and those that are of none."""
    questions = {question_of(each): each.id for each in reversed(samples)}
    ids = {each.id for each in samples}
    by_case: dict[str, list[RecordedRun]] = {}
    problems: list[Problem] = []
    for run in runs:
        case_id = run.case_id if run.case_id in ids else None
        if case_id is None and run.question is not None:
            case_id = questions.get(run.question.strip())
        if case_id is None:
            problems.append(_stray(run))
        else:
            by_case.setdefault(case_id, []).append(replace(run, case_id=case_id))
    return by_case, problems


def _numbered(
    runs: Sequence[RecordedRun], most: int
) -> tuple[Mapping[int, RecordedRun], list[Problem]]:
    """The first ``most`` runs of a case by attempt; those without a number take the free ones."""
    numbered: dict[int, RecordedRun] = {}
    problems: list[Problem] = []
    for run in sorted(runs, key=lambda run: run.attempt is None):
        free = next(number for number in range(most + 1) if number not in numbered)
        attempt = free if run.attempt is None else run.attempt
        if attempt in numbered or (run.attempt is None and attempt == most):
            first = numbered[attempt if attempt in numbered else 0]
            problems.append(_double(run, first, most))
        elif attempt < most:
            numbered[attempt] = replace(run, attempt=attempt)
    return numbered, problems


def _double(run: RecordedRun, first: RecordedRun, most: int) -> Problem:
    many = "two recorded outputs" if most == 1 else f"more recorded outputs than trials ({most})"
    if most > 1 and run.attempt is not None:
        many = f"two recorded outputs of attempt {run.attempt}"
    return Problem(
        message=f"the case {quoted(run.case_id or '')} has {many}",
        place=run.place,
        hint=f"the first is {first.place}; keep one of them",
    )


def _few(trials: Trials, attempts: Sequence[Attempts]) -> Iterator[Problem]:
    """Tell of cases with fewer runs than would be made; the best of fewer is no easier to be."""
    fewer = [
        f"{quoted(each.sample.id)} has {len(each.recorded)}"
        for each in attempts
        if 0 < len(each.recorded) < trials.count
        and (trials.cost_limit_usd is None or cost_of(each.recorded) < trials.cost_limit_usd)
    ]
    if fewer and trials.strategy != "pass_at_k":
        yield Problem(
            message=f"`trials` wants {trials.count} outputs of a case: "
            + ", ".join(truncate.listed(fewer, MAX_NAMES)),
            place=trials.place,
            hint="record the others, with the same `id` and `attempt: 1`, 2 and so on",
            severity="warning",
        )


def _stray(run: RecordedRun) -> Problem:
    what = "a recorded output" if run.case_id is None else f"the output {quoted(run.case_id)}"
    return Problem(
        message=f"{what} belongs to no case",
        place=run.place,
        hint="it names the id of its case, or a trace begins with the case's question",
        severity="warning",
    )


def cost_of(runs: Mapping[int, RecordedRun]) -> float:
    """What runs cost together, in US dollars, as far as they say."""
    return math.fsum(run.transcript.cost_usd or 0 for run in runs.values())


def case_of(sample: Sample, run: RecordedRun) -> Case:
    """A case with one of its runs."""
    turn = turn_of(
        run.transcript,
        question=question_of(sample),
        answer=candidate_answer_of(run.transcript),
    )
    trace = Trace(
        id=sample.id, key=sample.id, turns=(turn,), place=run.place, warnings=run.warnings
    )
    return Case(id=sample.id, trace=trace, sample=sample, transcript=run.transcript)


def case_without_run(sample: Sample, why: str = NO_RUN) -> Case:
    """A case that cannot be judged: its checks are errored."""
    trace = Trace(id=sample.id, key=sample.id, turns=(), place=sample.place)
    return Case(id=sample.id, trace=trace, sample=sample, no_run_because=why)
