"""Make eval cases of recorded runs: what is written of a run, and what a changed one replaces."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from agentci._util.text import truncate
from agentci.evaluators.checks.secrets import find_secrets
from agentci.evaluators.checks.trajectory import matches_calls
from agentci.evaluators.trajectory.expectation import RESERVED, read_trajectory
from agentci.evaluators.trajectory.matchers import PREFIX
from agentci.model.case import Case, EvalCase
from agentci.model.trace import ToolCall, Turn
from agentci.model.values import Json, JsonObject, replace

ArgumentChoice: TypeAlias = Literal["exact", "keys", "none"]
ARGUMENT_CHOICES: Final[tuple[ArgumentChoice, ...]] = ("exact", "keys", "none")
# In place of an argument that holds a secret.
ANY_VALUE: Final[JsonObject] = {"$any": True}
MAX_ID_WORDS: Final = 6
MAX_ID: Final = 60

Redact: TypeAlias = Callable[[Json], Json]


class AcceptOptions(Struct, frozen=True, kw_only=True):
    """What is written of a run.

    Attributes:
        arguments: whether all of an argument is compared, only its name, or nothing.
        has_answers: whether answers are written.
        redact: removes secrets from a value.
    """

    arguments: ArgumentChoice
    has_answers: bool
    redact: Redact


def find_acceptance_problem(case: Case) -> str:
    """Explain why a run cannot be an eval case; empty if it can."""
    problems = [case.trace.not_captured, "" if case.trace.turns else "it has no turns"]
    for number, turn in enumerate(case.trace.turns, start=1):
        unknown = next((call.name for call in turn.tool_calls if call.args is None), None)
        if not turn.user_text.strip():
            problems.append(f"turn {number} has no question")
        if turn.final_text is None:
            problems.append(f"turn {number} has no answer")
        if not turn.tool_calls_recorded:
            problems.append(f"the tool calls of turn {number} were not recorded")
        if unknown is not None:
            problems.append(f"the arguments of {unknown} in turn {number} were not recorded")
    return next(filter(None, problems), "")


def find_remaining_secret(case: Case, options: AcceptOptions) -> str:
    """Name a secret that is left in what would be written; empty if there is none."""
    for number, turn in enumerate(case.trace.turns, start=1):
        texts = [turn.user_text, turn.final_text if options.has_answers else ""]
        if options.arguments == "exact":
            texts += [f"{options.redact(call.args)}" for call in turn.tool_calls]
        for text in texts:
            rule = next(find_secrets(f"{options.redact(text or '')}"), None)
            if rule is not None:
                return f"turn {number} has a secret ({rule})"
    return ""


def name_new_case(case: Case, taken: Sequence[str]) -> str:
    """Return an id that is not taken: the recorded one, else of words of the first question."""
    words = re.findall(r"\w+", case.trace.turns[0].user_text.lower())[:MAX_ID_WORDS]
    named = case.trace.eval_case_id or truncate.short("_".join(words), MAX_ID) or "case"
    name, number = named, 1
    while name in taken:
        number += 1
        name = f"{named}-{number}"
    return name


def write_case(case_id: str, case: Case, options: AcceptOptions) -> JsonObject:
    """Return the eval case of a run, in agentci's own format."""
    turns = [_write_turn(turn, options) for turn in case.trace.turns]
    return {"id": case_id, **(turns[0] if len(turns) == 1 else {"turns": turns})}


def redact_turns(case: Case, options: AcceptOptions) -> tuple[Turn, ...]:
    """Return the turns of a run as an ADK eval set holds them."""
    return tuple(
        replace(
            turn,
            user_text=f"{options.redact(turn.user_text)}",
            answer_parts=(f"{options.redact(turn.final_text)}",) if options.has_answers else (),
            tool_calls=tuple(
                ToolCall(name=call.name, args=options.redact(call.args)) for call in turn.tool_calls
            ),
        )
        for turn in case.trace.turns
    )


def update_case(written: JsonObject, case: Case, options: AcceptOptions) -> JsonObject:
    """Return an eval case that expects what the run did.

    Calls that the run matches stay as they are written, with their matchers. What the case does
    not compare is not added.

    Raises:
        EvaluatorError: the run does not say enough to compare.
    """
    turns = written.get("turns")
    former = turns if isinstance(turns, list) else [written]
    kept = {key: value for key, value in written.items() if key not in ("input", "calls", "answer")}
    updated = [
        _update_turn(former[number], turn, options)
        if number < len(former)
        else _write_turn(turn, options)
        for number, turn in enumerate(case.trace.turns)
    ]
    if "turns" in kept or len(updated) > 1:
        own = {"id": kept.pop("id"), "turns": updated}
        return {**own, **{key: value for key, value in kept.items() if key != "turns"}}
    return {"id": kept.pop("id"), **updated[0], **kept}


def differs_from_eval_case(turns: Sequence[Turn], expected: EvalCase) -> bool:
    """Whether the calls or answers of a run are other than those of an ADK eval case."""
    return [_list_facts(turn) for turn in turns] != [_list_facts(turn) for turn in expected.turns]


def _list_facts(turn: Turn) -> tuple[Json, ...]:
    return turn.final_text, [[call.name, call.named_args] for call in turn.tool_calls]


def _write_turn(turn: Turn, options: AcceptOptions) -> JsonObject:
    answer = {"answer": options.redact(turn.final_text)} if options.has_answers else {}
    calls: list[Json] = [_write_call(call, options) for call in turn.tool_calls]
    return {"input": options.redact(turn.user_text), "calls": calls, **answer}


def _update_turn(written: Json, turn: Turn, options: AcceptOptions) -> JsonObject:
    former: JsonObject = written if isinstance(written, Mapping) else {}
    updated: dict[str, Json] = {"input": former.get("input", turn.user_text)}
    if "calls" in former:
        calls = former["calls"]
        if not matches_calls(read_trajectory(calls), turn):
            made: list[Json] = [_write_call(call, options) for call in turn.tool_calls]
            calls = {**calls, "calls": made} if isinstance(calls, Mapping) else made
        updated["calls"] = calls
    if "answer" in former:
        answer = options.redact(turn.final_text) if options.has_answers else former["answer"]
        updated["answer"] = answer
    return updated


def _write_call(call: ToolCall, options: AcceptOptions) -> Json:
    is_short = call.name not in RESERVED
    has_dollars = any(key.startswith(PREFIX) for key in call.named_args)
    if options.arguments == "none" or (options.arguments == "keys" and has_dollars):
        return call.name if is_short else {"tool": call.name}
    args: Json = {
        key: ANY_VALUE if options.arguments == "keys" else _write_value(value, options)
        for key, value in call.named_args.items()
    }
    if has_dollars:
        args = {"$literal": options.redact(call.named_args)}
    return {call.name: args} if is_short else {"tool": call.name, "args": args}


def _write_value(value: Json, options: AcceptOptions) -> Json:
    if options.redact(value) != value:
        return ANY_VALUE
    return {"$literal": value} if any(_list_dollar_keys(value)) else value


def _list_dollar_keys(value: Json) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            if key.startswith(PREFIX):
                yield key
            yield from _list_dollar_keys(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _list_dollar_keys(each)
