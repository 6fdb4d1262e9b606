"""The types of evaluators that a config can list; a new type is a module and an entry here.

Plugins add types as entry points of the group ``agentci.evaluator_types``: the name is the type,
the object an :class:`EvaluatorType`.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from agentci.evaluators.agentevals.builtin import make_builtin_evaluator
from agentci.evaluators.agentevals.builtin_entry import BuiltinEntry
from agentci.evaluators.agentevals.code import CodeEntry, RemoteEntry, build_code, build_remote
from agentci.evaluators.evaluator import ComparableEvaluator
from agentci.evaluators.evaluator_type import EvaluatorContext, EvaluatorType
from agentci.evaluators.fields import reject_repeat
from agentci.evaluators.metrics import HOSTED_METRICS, JUDGED_METRIC_PURPOSES
from agentci.model.values import replace

ENTRY_POINT_GROUP: Final = "agentci.evaluator_types"


class EvaluatorTypes(Mapping[str, EvaluatorType[Any]]):
    """Types by name, loaded on access: most configs use one or two."""

    def __init__(self, loaders: Mapping[str, Callable[[], EvaluatorType[Any]]]) -> None:
        self._loaders = loaders

    def __getitem__(self, name: str) -> EvaluatorType[Any]:
        return self._loaders[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaders)

    def __len__(self) -> int:
        return len(self._loaders)

    def __contains__(self, name: object) -> bool:
        """Return whether there is a type of this name, without loading it."""
        return name in self._loaders

    def with_types(self, others: Mapping[str, EvaluatorType[Any]]) -> "EvaluatorTypes":
        """Return a copy with more types."""
        theirs = {name: partial(others.__getitem__, name) for name in others}
        return EvaluatorTypes({**self._loaders, **theirs})


def _build_builtin(entry: BuiltinEntry, context: EvaluatorContext) -> ComparableEvaluator:
    """Build the evaluator of a built-in metric.

    Raises:
        InputError: if the context does not allow it, for example without a judge.
    """
    turn_mismatch_fails = (
        context.turn_mismatch_fails
        if entry.on_turn_mismatch is None
        else entry.on_turn_mismatch == "fail"
    )
    if entry.name in JUDGED_METRIC_PURPOSES:
        from agentci.evaluators.judged_metrics import make_judged_evaluator

        return make_judged_evaluator(
            entry,
            context.judges,
            place=context.place,
            place_of=context.find_place,
            turn_mismatch_fails=turn_mismatch_fails,
        )
    if entry.name in HOSTED_METRICS:
        from agentci.evaluators.agentevals.vertex_metric import make_hosted_evaluator

        hosted = make_hosted_evaluator(
            entry.name,
            place=context.place,
            threshold=entry.threshold,
            required=entry.required,
            turn_mismatch_fails=turn_mismatch_fails,
        )
        identity = replace(hosted.identity, repetition=entry.repetition)
        return replace(hosted, identity=identity, turn_score=entry.turn_score)
    reject_repeat(entry, of=context.place, at=context.find_place("repeat"))
    evaluator = make_builtin_evaluator(
        entry.name,
        place=context.place,
        threshold=entry.threshold,
        match_type=entry.trajectory_match_type,
        required=entry.required,
        turn_mismatch_fails=turn_mismatch_fails,
    )
    return replace(
        evaluator,
        subagents=entry.subagents,
        ignore_args=entry.ignore_args,
        turn_score=entry.turn_score,
    )


def _load_openai_eval() -> EvaluatorType[Any]:
    from agentci.evaluators.openai_eval.entries import OpenAIEvalEntry

    return EvaluatorType(entry=OpenAIEvalEntry, build=_build_openai_eval)


def _load_grader() -> EvaluatorType[Any]:
    from agentci.evaluators.pytest_agent_evals import GraderEntry, build_grader

    return EvaluatorType(entry=GraderEntry, build=build_grader)


def _load_prompt() -> EvaluatorType[Any]:
    from agentci.evaluators.pytest_agent_evals import PromptEntry, build_prompt

    return EvaluatorType(entry=PromptEntry, build=build_prompt)


def _build_openai_eval(entry: Any, context: EvaluatorContext) -> ComparableEvaluator:
    # Imports about 20 modules that the schema does not need.
    from agentci.evaluators.openai_eval.build import build_openai_eval

    return build_openai_eval(entry, context)


EVALUATOR_TYPES: Final = EvaluatorTypes(
    {
        "builtin": lambda: EvaluatorType(entry=BuiltinEntry, build=_build_builtin),
        "code": lambda: EvaluatorType(entry=CodeEntry, build=build_code),
        "remote": lambda: EvaluatorType(entry=RemoteEntry, build=build_remote),
        "openai_eval": _load_openai_eval,
        "grader": _load_grader,
        "prompt": _load_prompt,
    }
)

# Types of AgentV's eval files, and their counterparts in configs.
EVAL_FILE_TYPES: Final[Mapping[str, str]] = {
    "code_judge": "in configs `type: code` runs a program of your own",
    "llm_judge": "in configs `type: prompt` asks a language model",
}
