"""Report keys of an eval file that have no effect."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec import Struct, field

from agentci._util.text.suggest import quote_name, suggest_name
from agentci.config.agentv import models
from agentci.config.agentv.schema import MEMBER_LIST_KEYS
from agentci.config.yaml_document import YamlDocument
from agentci.config.yaml_nodes import KeyPath
from agentci.model.values import JsonObject, Problem

# Read by AgentV, but without effect on how recorded runs are evaluated.
IGNORED_KEYS: Final = frozenset(
    {
        *("$schema", "author", "category", "conversation_id", "evaluator", "license", "note"),
        *("notes", "requires", "tags", "target", "workers", "cache", "on_dependency_failure"),
        *("suite", "experiment", "providers", "defaults", "evaluate_options", "timeout_seconds"),
        *("env", "run", "description", "governance", "on_run_complete", "policy"),
    }
)
# The same for keys of `execution`.
IGNORED_EXECUTION_KEYS: Final = frozenset(
    {
        *("target", "workers", "cache", "cache_path", "budget_usd", "total_budget_usd"),
        *("fail_on_error", "verbose", "keep_workspaces", "otel_file"),
    }
)
# Top-level keys that change the cases or their input, which agentci does not support. Some exist
# only since AgentV 5.
UNSUPPORTED_TOP_LEVEL_KEYS: Final = {
    **dict.fromkeys(("prompts", "default_test"), "they belong in a file with `tests`"),
    "vars": "AgentV reads only the `vars` of cases; move them there",
}
# Evaluators may need these; each value is an alternative.
UNSUPPORTED_KEYS: Final = {
    "preprocessors": "record the agent's answers as text",
    "targets": "one output is evaluated per case; write one eval file per agent",
    "environment": "evaluators see the recorded run, but no files that the agent changed",
    "extensions": "evaluators see the recorded run; nothing is set up for it",
    "nunjucks_filters": "write the filtered values as `vars`",
    "options": "record the agent's answers as text",
    "workspace": "evaluators see the recorded run, but no files that the agent changed",
}
# Keys with the same meaning; AgentV reads the first one that is set.
SYNONYMOUS_KEYS: Final = (
    ("input_messages", "input"),
    ("expected_messages", "expected_output"),
    ("criteria", "expected_outcome", "outcome"),
)


class KeyChecker(Struct, kw_only=True):
    """Checks the keys of the parts of one eval file.

    Attributes:
        problems: unused keys; a warning is reported once for all cases.
    """

    document: YamlDocument
    problems: list[Problem] = field(default_factory=list)
    _reported_messages: set[str] = field(default_factory=set)

    def check_file(self) -> None:
        """Check the top-level keys of the file."""
        known = (*models.EvalFile.model_fields, "assert", models.TEMPLATE_KEY, *IGNORED_KEYS)
        self._check_keys(self.document.data, (), known, unread=UNSUPPORTED_TOP_LEVEL_KEYS)
        self._check_execution(self.document.data, ())

    def check_case(self, case: JsonObject, at: KeyPath) -> None:
        """Check the keys of ``case``, which is at ``at``."""
        known = (*models.CaseSpec.model_fields, "assert", models.TEMPLATE_KEY, *IGNORED_KEYS)
        self._check_keys(case, at, known, unread={})
        self._check_execution(case, at)
        for keys in SYNONYMOUS_KEYS:
            given = [each for each in keys if each in case]
            for other in given[1:]:
                self.warn_ignored_key((*at, other), other, first=given[0])

    def check_turn(self, turn: JsonObject, at: KeyPath) -> None:
        """Check the keys of ``turn``, which is at ``at``."""
        known = (*models.TurnSpec.model_fields, *MEMBER_LIST_KEYS)
        self._check_keys(turn, at, known, unread={})

    def warn_ignored_key(self, at: KeyPath, name: str, *, first: str) -> None:
        """Warn that the value at ``at`` is ignored, since ``first`` has the same meaning."""
        self._add_warning(
            f"`{name}` is ignored, because `{first}` is set", at, hint="keep one of them"
        )

    def _check_execution(self, owner: JsonObject, at: KeyPath) -> None:
        execution = owner.get(models.EXECUTION_KEY)
        if isinstance(execution, Mapping):
            known = (*models.Execution.model_fields, models.TEMPLATE_KEY, *IGNORED_EXECUTION_KEYS)
            self._check_keys(execution, (*at, models.EXECUTION_KEY), known, unread={})

    def _check_keys(
        self, keys: Iterable[str], at: KeyPath, known: Collection[str], *, unread: Mapping[str, str]
    ) -> None:
        """Warn about unknown keys, which AgentV ignores; report an error for keys in ``unread``."""
        for key in keys:
            if key in unread:
                self.problems.append(
                    Problem(
                        message=f"`{key}` is not supported by agentci",
                        place=self.document.place_of((*at, key), key=True),
                        hint=unread[key],
                    )
                )
            elif key in UNSUPPORTED_KEYS:
                self._add_warning(f"`{key}` has no effect", (*at, key), hint=UNSUPPORTED_KEYS[key])
            elif key not in known and not key.startswith("x-"):
                message = f"unknown key {quote_name(key)} is ignored"
                self._add_warning(message, (*at, key), hint=suggest_name(key, list(known)))

    def _add_warning(self, message: str, at: KeyPath, *, hint: str | None = None) -> None:
        if message not in self._reported_messages:
            self._reported_messages.add(message)
            place = self.document.place_of(at, key=True)
            self.problems.append(
                Problem(message=message, place=place, hint=hint, severity="warning")
            )
