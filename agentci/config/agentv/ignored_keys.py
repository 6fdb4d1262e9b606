"""Keys of an eval file that nobody reads, or not here."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec import Struct, field

from agentci._util.text.suggest import did_you_mean, quoted
from agentci.config.agentv.models import (
    OF_EXECUTION,
    TEMPLATE_KEY,
    CaseSpec,
    EvalFile,
    Execution,
    TurnSpec,
)
from agentci.config.agentv.schema import MEMBER_LISTS
from agentci.config.yaml_document import YamlDocument
from agentci.config.yaml_nodes import KeyPath
from agentci.model.json import JsonObject
from agentci.model.problem import Problem

# Read by AgentV, and without any effect on how recorded runs are judged.
WITHOUT_EFFECT: Final = frozenset(
    {
        *("$schema", "author", "category", "conversation_id", "evaluator", "license", "note"),
        *("notes", "requires", "tags", "target", "workers", "cache", "on_dependency_failure"),
        *("suite", "experiment"),
    }
)
# Likewise inside of `execution`.
OF_RUNNING: Final = frozenset(
    {
        *("target", "workers", "cache", "cache_path", "budget_usd", "total_budget_usd"),
        *("fail_on_error", "verbose", "keep_workspaces", "otel_file"),
    }
)
# What would change at the top of a file which cases there are or what they are asked, and is not
# done here; some of it since AgentV 5.
UNREAD_AT_THE_TOP: Final = {
    **dict.fromkeys(
        ("prompts", "scenarios", "default_test"), "give each case its `input` and evaluators"
    ),
    "imports": "name files of cases in `tests`, and other eval files by themselves",
    "vars": "AgentV reads those of cases alone: move them there",
}
# What evaluators may miss; and a way out.
MISSED: Final = {
    "preprocessors": "record what the agent answered as text",
    "targets": "one output a case is judged: give an eval file to each agent",
    "workspace": "evaluators see what was recorded, and no files that the agent changed",
}
# Words for the same; AgentV reads the first that is there.
SYNONYMS: Final = (
    ("input_messages", "input"),
    ("expected_messages", "expected_output"),
    ("criteria", "expected_outcome", "outcome"),
)


class KeyReader(Struct, kw_only=True):
    """Looks at the keys of the parts of one eval file.

    Attributes:
        problems: what is not read, told once for all cases where it does not stop a run.
    """

    document: YamlDocument
    problems: list[Problem] = field(default_factory=list)
    _told: set[str] = field(default_factory=set)

    def of_file(self) -> None:
        """Look at the keys of the file."""
        known = (*EvalFile.model_fields, "assert", TEMPLATE_KEY, *WITHOUT_EFFECT)
        self._look_at(self.document.data, (), known, unread=UNREAD_AT_THE_TOP)
        self._of_execution(self.document.data, ())

    def of_case(self, case: JsonObject, at: KeyPath) -> None:
        """Look at the keys of ``case``, which is at ``at``."""
        known = (*CaseSpec.model_fields, "assert", TEMPLATE_KEY, *WITHOUT_EFFECT)
        self._look_at(case, at, known, unread={})
        self._of_execution(case, at)
        for words in SYNONYMS:
            given = [each for each in words if each in case]
            for other in given[1:]:
                self.pass_over((*at, other), other, first=given[0])

    def of_turn(self, turn: JsonObject, at: KeyPath) -> None:
        """Look at the keys of ``turn``, which is at ``at``."""
        known = (*TurnSpec.model_fields, *MEMBER_LISTS)
        self._look_at(turn, at, known, unread={})

    def pass_over(self, at: KeyPath, name: str, *, first: str) -> None:
        """Tell that what is at ``at`` has no effect, since ``first`` says the same."""
        self._warn(f"`{name}` is passed over: there is `{first}`", at, hint="make them one")

    def _of_execution(self, owner: JsonObject, at: KeyPath) -> None:
        execution = owner.get(OF_EXECUTION)
        if isinstance(execution, Mapping):
            known = (*Execution.model_fields, TEMPLATE_KEY, *OF_RUNNING)
            self._look_at(execution, (*at, OF_EXECUTION), known, unread={})

    def _look_at(
        self, keys: Iterable[str], at: KeyPath, known: Collection[str], *, unread: Mapping[str, str]
    ) -> None:
        """AgentV passes unknown keys over, so they are warned of; others change too much."""
        for key in keys:
            if key in unread:
                self.problems.append(
                    Problem(
                        message=f"`{key}` is not read by this version of agentci",
                        place=self.document.place_of((*at, key), key=True),
                        hint=unread[key],
                    )
                )
            elif key in MISSED:
                self._warn(f"`{key}` has no effect", (*at, key), hint=MISSED[key])
            elif key not in known and not key.startswith("x-"):
                message = f"unknown key {quoted(key)}, which has no effect"
                self._warn(message, (*at, key), hint=did_you_mean(key, list(known)))

    def _warn(self, message: str, at: KeyPath, *, hint: str | None = None) -> None:
        if message not in self._told:
            self._told.add(message)
            place = self.document.place_of(at, key=True)
            self.problems.append(
                Problem(message=message, place=place, hint=hint, severity="warning")
            )
