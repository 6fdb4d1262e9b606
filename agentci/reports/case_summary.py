"""What reports show of a case, drawn from all that was recorded of it."""

from agentci._util.text import escape, strict_json, truncate
from agentci.model.case import Case, Exchange, Synopsis

MAX_SAID = 100


def synopsis_of(case: Case) -> Synopsis:
    """As much of ``case`` as is kept once it was judged."""
    trace, golden = case.trace, case.golden
    return Synopsis(
        id=case.id,
        trace=trace.id,
        group=_group(case),
        golden=None if golden is None else golden.id,
        no_golden_because=case.no_golden_because,
        no_run_because=case.no_run_because,
        recording=trace.place,
        dialogue=tuple(exchange(turn.user_text, turn.final_text) for turn in trace.turns),
        warnings=trace.warnings,
        performance=None if trace.performance is None else strict_json.dumps(trace.performance),
    )


def _group(case: Case) -> str:
    if case.golden is not None:
        return case.golden.id
    return case.row.id if case.row is not None else case.trace.conversation or case.id


def exchange(asked: str, answered: str | None) -> Exchange:
    """What is quoted of a turn: as much of each side as fits, on one line."""
    return Exchange(
        asked=_excerpt(asked), answered=None if answered is None else _excerpt(answered)
    )


def _excerpt(said: str) -> str:
    return truncate.short(escape.plain_line(said), MAX_SAID)
