"""A judge with its clients and a fake clock, and the responses of a service."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentci._util.http import HttpLimits
from agentci.config.variables import ConfigVariables
from agentci.judges.budget import Budget
from agentci.judges.client import EmbeddingComparer, ServiceClient
from agentci.judges.judge import Judge
from agentci.judges.keys import ApiKeys
from agentci.judges.transport import LIMITS, Transport
from agentci.model.judges import BudgetLimits, JudgePrompt, ModelSettings, ScoreSchema
from tests._util.http.patience import Patience
from tests._util.http.servers import Answer

KEY = "sk-secret-0123456789"
QUESTION = JudgePrompt(system="Judge.", user="Is it good?", schema=ScoreSchema())
YES_OR_NO = JudgePrompt(system="Judge.", user="Is it good?", schema=ScoreSchema(kind="boolean"))


@dataclass(kw_only=True)
class Bench:
    """A judge, its clients and its budget, with a fake clock."""

    caps: BudgetLimits = field(default_factory=BudgetLimits)
    limits: HttpLimits = LIMITS
    patience: Patience = field(default_factory=Patience)
    variables: Mapping[str, str] = field(default_factory=lambda: {"KEY": KEY})
    stopped: Callable[[], bool] = lambda: False

    def __post_init__(self) -> None:
        self.transport = Transport(
            report=self.patience.told.append,
            stopped=self.stopped,
            sleep=self.patience.sleep,
            clock=self.patience.clock,
            limits=self.limits,
        )
        self.budget = Budget(self.caps, stopped=self.stopped)
        self.keys = ApiKeys(ConfigVariables(self.variables), self.transport)
        self.asker = ServiceClient(self.transport, self.budget, keys=self.keys)
        self.comparer = EmbeddingComparer(self.asker, clock=self.patience.clock)
        self.judge = Judge({"openai": self.asker}, clock=self.patience.clock)

    @property
    def until(self) -> float:
        """The deadline of a verdict."""
        return self.patience.clock() + 180


def settings(url: str, **others: Any) -> ModelSettings:
    given = {"provider": "openai", "model": "m", "base_url": url, "key_variable": "KEY"}
    return ModelSettings(**{**given, **others})


def said(content: str, reason: str = "stop", usage: Mapping[str, int] | None = None) -> Answer:
    """A response of an OpenAI-compatible service."""
    body: dict[str, Any] = {"choices": [{"message": {"content": content}, "finish_reason": reason}]}
    if usage is not None:
        body["usage"] = usage
    return Answer(body=json.dumps(body).encode())


def embedded(*vectors: Sequence[float], usage: Mapping[str, int] | None = None) -> Answer:
    """A response of an embedding service."""
    data = [{"index": i, "embedding": each} for i, each in enumerate(vectors)]
    body = {"object": "list", "data": data, **({"usage": usage} if usage else {})}
    return Answer(body=json.dumps(body).encode())


def scored(score: float, **usage: int) -> Answer:
    return said(json.dumps({"reasoning": "so", "score": score}), usage=usage or None)


def voted(*, passed: bool) -> Answer:
    return said(json.dumps({"reasoning": "so", "score": passed}))


def refused(status: int, headers: Mapping[str, str] | None = None, /, **error: str) -> Answer:
    """An error response of an OpenAI-compatible service."""
    return Answer(status=status, body=json.dumps({"error": error}).encode(), headers=headers or {})
