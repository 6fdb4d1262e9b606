"""The environment variables that a config may name."""

import re
from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Final

from agentci._util.text.secrets import Redactor
from agentci.errors import EvaluatorError

ANY_NAME: Final = "*"
# The credentials of the job itself: with them, a config could act as the workflow. A workflow that
# means to hand one on gives it another name.
RESERVED_NAMES: Final = (
    *("ACTIONS_*", "INPUT_*", "GITHUB_TOKEN", "GH_TOKEN"),
    *("GITHUB_ENTERPRISE_TOKEN", "GH_ENTERPRISE_TOKEN", "CI_JOB_TOKEN"),
)
# What a step of a workflow knows about its run. All of it is shown on the page of the run.
RUN_VARIABLES: Final = frozenset(
    {
        "GITHUB_ACTIONS", "GITHUB_ACTOR", "GITHUB_BASE_REF", "GITHUB_EVENT_NAME",
        "GITHUB_HEAD_REF", "GITHUB_JOB", "GITHUB_REF", "GITHUB_REF_NAME", "GITHUB_REF_TYPE",
        "GITHUB_REPOSITORY", "GITHUB_REPOSITORY_OWNER", "GITHUB_RUN_ATTEMPT", "GITHUB_RUN_ID",
        "GITHUB_RUN_NUMBER", "GITHUB_SERVER_URL", "GITHUB_SHA", "GITHUB_WORKFLOW",
        "GITHUB_WORKSPACE", "RUNNER_ARCH", "RUNNER_ENVIRONMENT", "RUNNER_OS",
    }
)  # fmt: skip
ALLOW_HINT: Final = "add it to the workflow's env-allow input if the config may use it"
RESERVED_HINT: Final = "credentials of the job are not for configs"
_PATTERN: Final = re.compile(r"[A-Za-z_*][A-Za-z0-9_*]*")


def is_name_pattern(text: str) -> bool:
    """Whether ``text`` is a variable's name, or a pattern with ``*``."""
    return _PATTERN.fullmatch(text) is not None


def is_name(text: str) -> bool:
    """Whether ``text`` is a variable's full name."""
    return is_name_pattern(text) and ANY_NAME not in text


def is_reserved(name: str) -> bool:
    """Whether no config may name the variable."""
    return any(fnmatchcase(name, each) for each in RESERVED_NAMES)


class ConfigVariables:
    """The environment, as far as configs may name it; every value that is read becomes a secret.

    Reading adds the value to the secrets of the run, so that no value reaches a report unnoticed.

    Args:
        environ: the whole environment.
        allowed: names and patterns with ``*`` of the variables that configs may name.
        public: names of further variables that they may name; their values are not secret.
        redactor: the secrets of the run.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        allowed: Iterable[str] = (ANY_NAME,),
        public: Collection[str] = (),
        redactor: Redactor | None = None,
    ) -> None:
        self.redactor = Redactor() if redactor is None else redactor
        self._environ = environ
        self._allowed = tuple(allowed)
        self._public = public

    def allow(self, patterns: Iterable[str]) -> "ConfigVariables":
        """The same environment, with other variables that configs may name."""
        return ConfigVariables(
            self._environ, allowed=patterns, public=self._public, redactor=self.redactor
        )

    def explain_refusal(self, name: str) -> tuple[str, str] | None:
        """Why a config may not name the variable, and what to do; None if it may."""
        if is_reserved(name):
            return f"{name} is never available to configs", RESERVED_HINT
        if name in self._public or any(fnmatchcase(name, each) for each in self._allowed):
            return None
        return f"{name} is not in env-allow", ALLOW_HINT

    def __contains__(self, name: str) -> bool:
        """Whether the variable is set and a config may name it."""
        return name in self._environ and self.explain_refusal(name) is None

    def get(self, name: str) -> str:
        """The value of a variable that a config names; empty if it is not set or refused."""
        if name not in self:
            return ""
        return self._environ[name] if name in self._public else self.read_own(name)

    def select(self, names: Iterable[str]) -> dict[str, str]:
        """The values of those of ``names`` that are set.

        Raises:
            EvaluatorError: a config may not name one of them.
        """
        wanted = tuple(dict.fromkeys(names))
        for name in wanted:
            if refusal := self.explain_refusal(name):
                raise EvaluatorError("; ".join(refusal))
        return {name: self.get(name) for name in wanted if name in self}

    def read_own(self, name: str, *, is_secret: bool = True) -> str:
        """The value of a variable that agentci itself chose to read; empty if it is not set."""
        value = self._environ.get(name, "")
        if is_secret:
            self.redactor.add(value)
        return value
