"""Which kind of file a config is, seen from its keys."""

from collections.abc import Set as AbstractSet
from typing import Final

from agentci._util.text.suggest import nearest, quoted
from agentci.config.yaml_document import YamlDocument
from agentci.errors import InputError
from agentci.model.place import Place
from agentci.recordings.registry import EVAL_SET_KEYS

# AgentV has called the list of cases by each of these.
CASE_KEYS: Final = ("evalcases", "cases", "eval_cases", "tests")

RECORDING_KEYS: Final = frozenset({"resourceSpans", "batches", "data", "spanId", "traceId"})

RECORDING_HINT: Final = "this is a recording: name it in a config, or give it with --traces"


def is_eval_file(document: YamlDocument) -> bool:
    """Whether it lists cases and no evaluators; an eval set of agentevals does so, too."""
    keys = document.data.keys()
    others = {"evaluators", *EVAL_SET_KEYS}
    return keys.isdisjoint(others) and not keys.isdisjoint(CASE_KEYS)


def check_kind(document: YamlDocument) -> None:
    """See that a file is an eval config, which lists evaluators at the top.

    Raises:
        InputError: it is not, or an AgentV eval file, which lists cases, as well.
    """
    keys = document.data.keys()
    if not keys.isdisjoint(EVAL_SET_KEYS):
        raise InputError.of(
            "the file is an eval set, not a config",
            place=Place(file=document.file),
            hint="name it in a config (`eval_set:`), or give it with --eval-set",
        )
    case_keys = [key for key in CASE_KEYS if key in keys]
    if "evaluators" in keys and case_keys:
        raise InputError.of(
            f"the file is both an eval config (`evaluators`) and an eval file (`{case_keys[0]}`)",
            place=Place(file=document.file),
            hint="make it two files; evaluators for all cases stand below `execution`",
        )
    if "evaluators" not in keys:
        raise InputError.of(
            "the file lists no `evaluators`",
            place=Place(file=document.file),
            hint=_likely_key(keys),
        )


def _likely_key(keys: AbstractSet[str]) -> str:
    for key in keys:
        if meant := nearest(key, ("evaluators", *CASE_KEYS)):
            return f"did you mean `{meant}` instead of {quoted(key)}?"
    if RECORDING_KEYS & keys:
        return RECORDING_HINT
    if old := [key for key in ("custom_evaluators", "metrics") if key in keys]:
        return f"`{old[0]}` of older configs is now part of `evaluators`"
    return "add `evaluators:`, a list of what judges recorded runs; an eval file lists `tests:`"
