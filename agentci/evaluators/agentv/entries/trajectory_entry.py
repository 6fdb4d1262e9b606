"""Entries of ``tool_trajectory``."""

from typing import Literal, Self, TypeAlias

from pydantic import Field, JsonValue, model_validator

from agentci.evaluators.agentv.agentv_evaluator import Surroundings
from agentci.evaluators.agentv.entry_fields import JudgeEntry, NonNegative
from agentci.evaluators.agentv.expected_tool_call import ArgsMatch, ExpectedUse
from agentci.evaluators.agentv.trajectory import Mode, Trajectory
from agentci.evaluators.fields import Strict, Text

Args: TypeAlias = Literal["exact", "superset", "subset", "ignore"] | list[Text]


class ExpectedCall(Strict):
    """A use of a tool that is looked for."""

    tool: Text = Field(description="Name of the tool.")
    args: JsonValue = Field(
        default=None, description="Its arguments; left out, or `any`, they may be what they like."
    )
    args_match: Args | None = Field(default=None, description="How they are compared.")
    max_duration_ms: NonNegative | None = Field(
        default=None,
        description="Milliseconds that it may take; files without `tests` need `strict` for that.",
    )


class TrajectoryEntry(JudgeEntry):
    """Which tools were used."""

    type: Literal["tool_trajectory"] = Field(description="Which tools were used.")
    mode: Mode = Field(
        description="any_order (each at least so often), in_order (others may come between), "
        "exact, superset (at least these), subset (none but these)."
    )
    minimums: dict[str, NonNegative] | None = Field(
        default=None, description="How often each tool has to be used, for any_order."
    )
    expected: list[ExpectedCall] | None = Field(
        default=None, description="The uses that are looked for, for all other modes."
    )
    args_match: Args | None = Field(
        default=None,
        description="How arguments are compared: by default exactly in files with `tests`, else "
        "those that are listed (superset).",
    )
    strict: bool = Field(
        default=False,
        description="Whether calls too many count against `exact`, and `in_order` looks on after "
        "a call that does not fit; AgentV does neither.",
    )

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.mode == "any_order" and self.minimums is None:
            raise ValueError("mode any_order needs `minimums`, such as {search: 1}")
        if self.mode != "any_order" and self.expected is None:
            raise ValueError(f"mode {self.mode} needs `expected`, such as [{{tool: search}}]")
        return self


def trajectory(entry: TrajectoryEntry, surroundings: Surroundings) -> Trajectory:
    """Make the rule: arguments and times are compared as in the file's era."""
    is_v4 = surroundings.era == "v4"
    timed = is_v4 or entry.strict

    def match_of(call: ExpectedCall) -> ArgsMatch:
        named = call.args_match or entry.args_match or ("exact" if is_v4 else "superset")
        return tuple(named) if isinstance(named, list) else named

    return Trajectory(
        mode=entry.mode,
        minimums=entry.minimums or {},
        expected=tuple(
            ExpectedUse(
                tool=call.tool,
                args=call.args,
                match=match_of(call),
                max_duration_ms=call.max_duration_ms if timed else None,
            )
            for call in entry.expected or ()
        ),
        at_least=">=" if is_v4 else "≥",
        strict=entry.strict,
    )
