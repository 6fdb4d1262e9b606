"""Let a program call a language model while it runs, through AgentV's target proxy."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Final

from agentci.errors import EvaluatorError, SkippedError
from agentci.execution.executor_api import ProgramJob
from agentci.judges.target_proxy import HOST, ProxyTarget, serve_target
from agentci.model.judges import JudgePrompt, ModelAccess, ModelResponse
from agentci.model.values import replace
from agentci.runner.services import Services

TOKEN_BYTES: Final = 32
# The names that older and newer versions of AgentV's SDKs read.
VARIABLE_PREFIXES: Final = ("AGENTV_TARGET_PROXY", "AGENTV_PROVIDER_PROXY")
# Hosts that are not reached through a company's proxy.
NO_PROXY_VARIABLES: Final = ("NO_PROXY", "no_proxy")


@contextmanager
def open_judge_proxy(
    job: ProgramJob, access: ModelAccess, services: Services
) -> Iterator[ProgramJob]:
    """The job of a program with the address of a proxy that runs during the block.

    Raises:
        EvaluatorError: no port is available; the message continues "Evaluator `x` ...".
        SkippedError: the program called the model, which this run cannot do, e.g. without a key.
    """
    settings, judge = access.judge.settings, services.judges[access.judge.budget_id]
    skipped: list[SkippedError] = []

    def ask(question: JudgePrompt) -> ModelResponse:
        # The program's own time limit ends earlier, since it started before the call.
        try:
            return judge.generate_text(question, settings, seconds=job.timeout_seconds)
        except SkippedError as error:
            skipped.append(error)
            raise EvaluatorError(str(error)) from None

    token = os.urandom(TOKEN_BYTES).hex()
    name = settings.model or settings.provider
    target = ProxyTarget(ask, name=name, token=token, max_calls=access.max_calls)
    with ExitStack() as stack:
        try:
            port = stack.enter_context(serve_target(target))
        except OSError as error:
            raise EvaluatorError(
                f"could not be given a port for calls of its model: {error}"
            ) from None
        values = {"URL": f"http://{HOST}:{port}", "TOKEN": token}
        variables = {
            f"{p}_{name}": value for p in VARIABLE_PREFIXES for name, value in values.items()
        }
        yield replace(
            job,
            environment={**job.environment, **_bypass_proxy(job.environment, HOST), **variables},
            sandbox_policy=replace(job.sandbox_policy, port=port),
        )
    if skipped:
        raise skipped[0]


def _bypass_proxy(environment: Mapping[str, str], host: str) -> Mapping[str, str]:
    """The variables with which a program reaches ``host`` without a company's proxy."""
    given = {environment.get(name, "") for name in NO_PROXY_VARIABLES}
    return dict.fromkeys(NO_PROXY_VARIABLES, ",".join(sorted({*given, host} - {""})))
