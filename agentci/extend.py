"""The names that plugins import: runtimes, executors, sources and evaluator types.

docs/extending.md describes what each kind of plugin provides. Other modules of agentci may change
without notice.
"""

from agentci.errors import (
    EvaluatorError,
    FetchError,
    InputError,
    PermanentFetchError,
    UnreachableError,
)
from agentci.evaluators.evaluator import Evaluator
from agentci.evaluators.evaluator_type import EvaluatorContext, EvaluatorType
from agentci.evaluators.fields import Entry, RepeatableEntry, Seconds, Share, Text
from agentci.execution.executor_api import Executor, SandboxPolicy
from agentci.execution.local import LocalExecutor
from agentci.execution.runtimes import Runtime
from agentci.model.case import Case
from agentci.model.judges import AskModel, JudgeConfig, JudgePrompt
from agentci.model.program import (
    CatalogEntry,
    LocalProgram,
    ProgramFile,
    ProgramSnapshot,
    RemoteProgram,
    RequiredProgram,
)
from agentci.model.requests import (
    ComputeMetric,
    EvaluatorIdentity,
    Judgement,
    Prerequisite,
    ProgramOutput,
    Request,
    Response,
    RunCommand,
    RunProgram,
    Skip,
)
from agentci.model.values import Place, replace
from agentci.remote.sources.source import MAX_TOTAL_BYTES, Source, SourceContext

__all__ = [
    "MAX_TOTAL_BYTES",
    "AskModel",
    "Case",
    "CatalogEntry",
    "ComputeMetric",
    "Entry",
    "Evaluator",
    "EvaluatorContext",
    "EvaluatorError",
    "EvaluatorIdentity",
    "EvaluatorType",
    "Executor",
    "FetchError",
    "InputError",
    "JudgeConfig",
    "JudgePrompt",
    "Judgement",
    "LocalExecutor",
    "LocalProgram",
    "PermanentFetchError",
    "Place",
    "Prerequisite",
    "ProgramFile",
    "ProgramOutput",
    "ProgramSnapshot",
    "RemoteProgram",
    "RepeatableEntry",
    "Request",
    "RequiredProgram",
    "Response",
    "RunCommand",
    "RunProgram",
    "Runtime",
    "SandboxPolicy",
    "Seconds",
    "Share",
    "Skip",
    "Source",
    "SourceContext",
    "Text",
    "UnreachableError",
    "replace",
]
