"""Takes one shard out of a plan, and says of what it is a shard."""

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import to_builtins

from agentci._util.text import strict_json
from agentci.model.shard import Portion, Shard
from agentci.model.values import replace
from agentci.runner.check import Check
from agentci.runner.plan import Plan
from agentci.version import __version__

if TYPE_CHECKING:
    from agentci.runner.trial_runs import Attempts


def take(plan: Plan, shard: Shard | None) -> Plan:
    """The plan with the checks of ``shard`` alone; the whole plan where there is none."""
    if shard is None:
        return plan
    checks = plan.checks
    return replace(
        plan,
        suites=tuple(
            replace(
                suite, checks=tuple(each for each in suite.checks if shard.holds(each.dealt_by))
            )
            for suite in plan.suites
        ),
        portion=Portion(
            shard=shard,
            of=digest_of(plan),
            checks=tuple(check.id for check in checks),
            dealt_by={check.id: check.dealt_by for check in checks if check.dealt_by != check.id},
        ),
    )


def digest_of(plan: Plan) -> str:
    """What tells plans apart: the version of agentci, the gates, and every check.

    A check is more than its id here: another threshold, another program, another recording of the
    same golden case make another plan.
    """
    digest = hashlib.sha256()
    for line in _lines(plan):
        digest.update(line.encode())
        digest.update(b"\n")
    return digest.hexdigest()


def _lines(plan: Plan) -> Iterator[str]:
    yield __version__
    yield from sorted(strict_json.dumps(to_builtins(gate)) for gate in plan.gates)
    yield from sorted(strict_json.dumps(_traits(check)) for check in plan.checks)


def _traits(check: Check) -> list[str | int | float | bool | None]:
    identity, case = check.evaluator.identity, check.case
    return [
        check.id,
        identity.type,
        identity.bar,
        identity.threshold,
        identity.required,
        identity.weight,
        identity.repetition.times,
        identity.repetition.by,
        str(identity.place),
        case.trace,
        case.recording.file,
        case.performance,
        case.golden,
        check.fingerprint,
        *(said for each in case.dialogue for said in (each.asked, each.answered)),
        *_of_runs(check.attempts),
    ]


def _of_runs(attempts: "Attempts | None") -> Iterator[str]:
    if attempts is not None:
        agent, trials = attempts.agent, attempts.trials
        yield repr(agent and agent.command)
        yield repr(trials and (trials.count, trials.strategy, trials.cost_limit_usd))
        yield repr(sorted(attempts.recorded))
