"""The names of pytest-agent-evals that agentci has, for tests that import that package."""

from typing import Final

from agentci.pytest import (
    CustomCodeEvaluatorConfig,
    CustomPromptEvaluatorConfig,
    EvaluatorResult,
    EvaluatorResults,
    evals,
)

__all__ = [
    "CustomCodeEvaluatorConfig",
    "CustomPromptEvaluatorConfig",
    "EvaluatorResult",
    "EvaluatorResults",
    "evals",
]

MISSING_NAMES: Final = frozenset(
    {
        "AgentResponse",
        "AzureOpenAIModelConfig",
        "BuiltInEvaluatorConfig",
        "ChatAgentConfig",
        "FoundryAgentConfig",
        "OpenAIModelConfig",
    }
)


def __getattr__(name: str) -> object:
    if name in MISSING_NAMES:
        raise ImportError(
            f"pytest-agent-evals is not installed, and agentci has no {name}; install it, or see"
            " agentci's docs/pytest.md for the fixture `agent` and `@evals.judge_model`"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
