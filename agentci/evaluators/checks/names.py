"""Names of checks: how configs and other tools call them, and how reports name each of them.

Imports no models, so that names are known without loading the checks.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from agentci._util.text import truncate
from agentci.model.values import Json

MAX_SUBJECT: Final = 40
LIMIT_PREFIX: Final = "max_"
# What the names of checks of eval cases start with.
CASE_PREFIX: Final = "case:"
CALLS_CHECK: Final = f"{CASE_PREFIX}calls"

CHECK_NAMES: Final = (
    *("max_latency", "max_duration", "max_tokens", "max_cost", "max_tool_calls"),
    *("max_model_calls", "max_repeats", "no_tool_errors", "required_tools", "forbidden_tools"),
    *("allowed_tools", "contains", "contains_any", "contains_all", "not_contains", "starts_with"),
    *("equals", "matches", "not_matches", "json_schema", "max_words", "max_chars", "no_secrets"),
    "trajectory",
)
# Checks whose value is usually `true`, so that an item may be only the name.
SWITCHES: Final = ("no_tool_errors", "json_schema", "no_secrets")
# Another spelling with a meaning of its own: `contains` with `ignore_case`.
SPELLINGS: Final[Mapping[str, str]] = {"icontains": "contains"}

# What promptfoo, DeepEval, AgentV, pydantic-evals and others call them, in lower case and with
# underscores, and what to write here.
ALIASES: Final[Mapping[str, str]] = {
    "latency": "max_latency: 5s",
    "maxduration": "max_duration: 30s",
    "max_duration_ms": "max_duration: 30s",
    "duration": "max_duration: 30s",
    "token_usage": "max_tokens: 20_000",
    "token_usage_v1": "max_tokens: 20_000",
    "cost": "max_cost: 0.05",
    "budget": "max_cost: 0.05",
    "max_cost_usd": "max_cost: 0.05",
    "maxtoolcalls": "max_tool_calls: 8",
    "trajectory:step_count": "max_tool_calls: 8",
    "tool_call_count_v1": "max_tool_calls: 8",
    "maxmodelrequests": "max_model_calls: 5",
    "max_llm_calls": "max_model_calls: 5",
    "inference_call_count_v1": "max_model_calls: 5",
    "agentloopdetection": "max_repeats: 2",
    "noredundantcalls": "max_repeats: 1",
    "trace_error_spans": "no_tool_errors: true",
    "trajectory:step_status": "no_tool_errors: true",
    "trajectory:tool_used": "required_tools: [NAME]",
    "toolcalled": "required_tools: [NAME]",
    "toolcorrectness": "required_tools: [NAME]",
    "minimums": "required_tools: {NAME: 1}",
    "not_trajectory:tool_used": "forbidden_tools: [NAME]",
    "denied_tools": "forbidden_tools: [NAME]",
    "trajectory:tool_sequence": "trajectory: [NAME, NAME]",
    "trajectory:tool_args_match": "trajectory: [{NAME: {ARGUMENT: VALUE}}]",
    "tool_trajectory": "trajectory: [NAME, NAME]",
    "trajectorymatch": "trajectory: [NAME, NAME]",
    "tool_call_f1": "trajectory: {order: any_order, score: f1, calls: [NAME]}",
    "includes": "contains: TEXT",
    "icontains_any": "{check: contains_any, value: [TEXT], ignore_case: true}",
    "icontains_all": "{check: contains_all, value: [TEXT], ignore_case: true}",
    "not_icontains": "{check: not_contains, value: TEXT, ignore_case: true}",
    "regex": "matches: PATTERN",
    "not_regex": "not_matches: PATTERN",
    "regexmatch": "matches: PATTERN",
    "patternmatch": "{check: matches, value: PATTERN, full: true}",
    "is_json": "json_schema: true",
    "jsoncorrectness": "json_schema: schema.json",
    "word_count": "max_words: 200",
    "responselength": "max_chars: 2_000",
}


def find_alias(name: str) -> str | None:
    """Return what to write here for a check of another tool; None if it is not known."""
    plain = name.replace("-", "_").lower()
    return ALIASES.get(plain) or ALIASES.get(plain.replace("_", ""))


def find_kind(item: Json) -> str | None:
    """Return the name of the check of an item of ``checks``, in its short or long form."""
    if isinstance(item, str) and item in SWITCHES:
        return item
    if not isinstance(item, Mapping):
        return None
    kind = item.get("check")
    if kind is None and len(item) == 1:
        [kind] = item
    return kind if isinstance(kind, str) else None


def name_checks(items: Sequence[Json]) -> tuple[str | None, ...]:
    """Return the name of each check in reports; None for an item that is not a check.

    It is that of the check, with what it looks for if the check is used twice, and never its limit.
    """
    kinds = [find_kind(item) for item in items]
    counts = Counter(SPELLINGS.get(kind, kind) for kind in kinds if kind is not None)
    return tuple(
        None if kind is None else _name_check(kind, item, counts)
        for kind, item in zip(kinds, items, strict=True)
    )


def _name_check(kind: str, item: Json, counts: Mapping[str, int]) -> str:
    own = item.get("name") if isinstance(item, Mapping) else None
    if isinstance(own, str) and own:
        return own
    value = item.get("value", item.get(kind)) if isinstance(item, Mapping) else None
    name = SPELLINGS.get(kind, kind)
    is_limit = name.startswith(LIMIT_PREFIX) and not isinstance(value, Mapping)
    subject = "" if is_limit else _find_subject(value)
    return f"{name}:{subject}" if counts[name] > 1 and subject else name


def _find_subject(value: Json) -> str:
    """What a check looks for, on one line: a text, or names; never a number."""
    if isinstance(value, Mapping):
        tool = value.get("tool", value.get("name"))
        parts = [tool] if isinstance(tool, str) else [*value]
    elif isinstance(value, Sequence) and not isinstance(value, str):
        parts = [_find_subject(each) for each in value]
    else:
        parts = [value] if isinstance(value, str) else []
    return truncate.short(" ".join(" ".join(parts).split()), MAX_SUBJECT)
