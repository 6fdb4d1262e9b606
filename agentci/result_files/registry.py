"""The tools whose result files are read, which of them wrote a file, and files without results."""

from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

from agentci._util.text import truncate
from agentci.result_files import (
    agent_tools,
    ctrf,
    javascript_tools,
    junit,
    otel,
    plain_table,
    python_tools,
)
from agentci.result_files.content import ResultContent, read_content
from agentci.result_files.row import AUTO_TOOL, ResultFile, make_result_error


class NoResults(Struct, frozen=True, kw_only=True):
    """A kind of file without results.

    Attributes:
        title: what it is, with an article.
        hint: which file has the results.
    """

    title: str
    hint: str
    recognises: Callable[[ResultContent], bool]


def _has(*names: str) -> Callable[[ResultContent], bool]:
    return lambda content: content.has(*names)


def _is_promptfoo_config(content: ResultContent) -> bool:
    return content.has("prompts", "providers") or content.has("providers", "tests")


def _is_braintrust(content: ResultContent) -> bool:
    return content.has("experiment_name", "scores") or (
        content.has("eval_name", "errors") and len(content.members) <= 3  # noqa: PLR2004
    )


def _is_agentci(content: ResultContent) -> bool:
    return bool(content.member("tool", "name") == "agentci")


_MEANS: Final = "has only means, and no results of single cases"

FOREIGN_KINDS: Final = (
    NoResults(
        title="a report of agentci",
        hint="name it with --baseline, or for `agentci merge`",
        recognises=_is_agentci,
    ),
    NoResults(
        title="a promptfoo configuration, not results",
        hint="name the file of `promptfoo eval -o FILE.json`",
        recognises=_is_promptfoo_config,
    ),
    NoResults(
        title="DeepEval's cache, not results",
        hint="name .deepeval/.latest_test_run.json",
        recognises=_has("test_cases_lookup_map"),
    ),
    NoResults(
        title="an ADK eval set, not results",
        hint="name .adk/eval_history/*.evalset_result.json; eval sets go to `eval_set:`",
        recognises=_has("eval_set_id", "eval_cases"),
    ),
    NoResults(
        title="an lm-eval summary, which " + _MEANS,
        hint="run with --log_samples, and name samples_*.jsonl",
        recognises=_has("results", "configs", "versions"),
    ),
    NoResults(
        title="an AgentV benchmark, which " + _MEANS,
        hint="name index.jsonl next to it",
        recognises=_has("run_summary", "metadata"),
    ),
    NoResults(
        title="a Braintrust summary, which " + _MEANS,
        hint="write the results of `Eval()` as JSON Lines of id, metric and score",
        recognises=_is_braintrust,
    ),
    NoResults(
        title="a pydantic-evals dataset, not results",
        hint="dump the report of `Dataset.evaluate` with a TypeAdapter",
        recognises=lambda content: content.has("cases", "evaluators"),
    ),
    NoResults(
        title="SARIF, not results",
        hint="name the results of an evaluation",
        recognises=_has("$schema", "runs"),
    ),
)

ZIP_MAGIC: Final = b"PK\x03\x04"
_MAX_SHOWN_KEYS: Final = 5
_UNKNOWN_HINT: Final = (
    "agentci's docs/results.md lists the files that are read, or write a table of id, metric and "
    "score"
)


class ResultTool(Struct, frozen=True, kw_only=True):
    """One tool.

    Attributes:
        recognises: whether it wrote a file, by its content.
        read: reads such a file; raises InputError.
    """

    name: str
    recognises: Callable[[ResultContent], bool]
    read: Callable[[ResultContent], ResultFile]


# In order of precedence.
TOOLS: Final = (
    ResultTool(
        name=javascript_tools.PROMPTFOO,
        recognises=javascript_tools.recognises_promptfoo,
        read=javascript_tools.read_promptfoo,
    ),
    ResultTool(
        name=python_tools.DEEPEVAL,
        recognises=python_tools.recognises_deepeval,
        read=python_tools.read_deepeval,
    ),
    ResultTool(
        name=python_tools.INSPECT_AI,
        recognises=python_tools.recognises_inspect,
        read=python_tools.read_inspect,
    ),
    ResultTool(
        name=python_tools.PYDANTIC_EVALS,
        recognises=python_tools.recognises_pydantic_evals,
        read=python_tools.read_pydantic_evals,
    ),
    ResultTool(
        name=agent_tools.ADK, recognises=agent_tools.recognises_adk, read=agent_tools.read_adk
    ),
    ResultTool(
        name=javascript_tools.VITEST_EVALS,
        recognises=javascript_tools.recognises_vitest,
        read=javascript_tools.read_vitest,
    ),
    ResultTool(
        name=javascript_tools.EVALITE,
        recognises=javascript_tools.recognises_evalite,
        read=javascript_tools.read_evalite,
    ),
    ResultTool(
        name=agent_tools.AGENTV,
        recognises=agent_tools.recognises_agentv,
        read=agent_tools.read_agentv,
    ),
    ResultTool(
        name=agent_tools.AGENTEVALS,
        recognises=agent_tools.recognises_agentevals,
        read=agent_tools.read_agentevals,
    ),
    ResultTool(
        name=python_tools.LM_EVAL,
        recognises=python_tools.recognises_lm_eval,
        read=python_tools.read_lm_eval,
    ),
    ResultTool(name=otel.NAME, recognises=otel.recognises, read=otel.read),
    ResultTool(name=ctrf.NAME, recognises=ctrf.recognises, read=ctrf.read),
    ResultTool(name=junit.NAME, recognises=junit.recognises, read=junit.read),
    ResultTool(
        name=plain_table.CSV_NAME,
        recognises=plain_table.recognises_csv,
        read=plain_table.read_csv,
    ),
    ResultTool(
        name=plain_table.LINES_NAME,
        recognises=plain_table.recognises_lines,
        read=plain_table.read_lines,
    ),
)


MAX_FILE_BYTES: Final = 512 * 1024**2
MAX_ARCHIVE_BYTES: Final = 1024**3
MAX_MEMBER_BYTES: Final = 64 * 1024**2


def is_archive(data: bytes) -> bool:
    """Whether a file is a zip archive, as Inspect writes ``.eval`` logs."""
    return data.startswith(ZIP_MAGIC)


def read_result_file(data: bytes, *, file: str, tool: str = AUTO_TOOL) -> ResultFile:
    """Read the results that another tool wrote; archives go to ``read_result_archive``.

    Args:
        file: its path as shown to the user; lm-eval states its task only there.
        tool: the name of the tool that wrote it, or ``auto``.

    Raises:
        InputError: no tool that is known wrote it, it holds no results, or it is invalid.
    """
    try:
        return _read(read_content(data, file=file), tool)
    except RecursionError:
        raise make_result_error(file, "JSON nested too deeply") from None


def read_result_archive(
    members: Iterable[tuple[str, bytes]], *, file: str, tool: str = AUTO_TOOL
) -> ResultFile:
    """Read the results in a zip archive; only Inspect writes archives.

    Args:
        members: names and contents, one after the other.

    Raises:
        InputError: as ``read_result_file``.
    """
    _check_tool(python_tools.INSPECT_AI, tool, file)
    return python_tools.read_inspect_archive(members, file=file)


def _read(content: ResultContent, tool: str) -> ResultFile:
    file = content.file
    for kind in FOREIGN_KINDS:
        if kind.recognises(content):
            raise make_result_error(file, f"the file is {kind.title}", hint=kind.hint)
    for each in TOOLS:
        if each.recognises(content):
            _check_tool(each.name, tool, file)
            content.check_keys()
            return each.read(content)
    raise make_result_error(
        file, f"no known tool wrote this file{_describe(content)}", hint=_UNKNOWN_HINT
    )


def _check_tool(found: str, expected: str, file: str) -> None:
    if expected not in (AUTO_TOOL, found):
        message = f"the file has results of {found}, not of {expected}"
        hint = f"write `tool: {found}` or `tool: auto`"
        raise make_result_error(file, message, hint=hint)


def _describe(content: ResultContent) -> str:
    if not content.members:
        return ""
    names = truncate.truncate_list([f"`{key[:40]}`" for key in content.members], _MAX_SHOWN_KEYS)
    return f"; its keys are {', '.join(names)}"
