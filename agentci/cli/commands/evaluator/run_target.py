"""Build the evaluator that ``agentci evaluator run`` names."""

from pathlib import Path

from pydantic import ValidationError

from agentci._util.text.format import format_criterion
from agentci._util.workspace import ResolvedPath, is_file, is_folder
from agentci.cli.commands.evaluator.run_options import EvaluatorRunOptions
from agentci.cli.judge_settings import make_judge_settings
from agentci.errors import InputError
from agentci.evaluators.agentevals.code import CodeEvaluator
from agentci.evaluators.agentevals.entries import DEFAULT_TIMEOUT_SECONDS
from agentci.evaluators.agentevals.threshold import DEFAULT_THRESHOLD
from agentci.evaluators.evaluator import ComparableEvaluator
from agentci.evaluators.evaluator_type import EvaluatorContext
from agentci.evaluators.judge_config import JudgeSettings, MissingJudgeError
from agentci.evaluators.pytest_agent_evals.entries import GRADER_SECONDS, GraderEntry, PromptEntry
from agentci.evaluators.pytest_agent_evals.grader import build_grader
from agentci.evaluators.pytest_agent_evals.prompt_evaluator import build_prompt
from agentci.model.judgement import EvaluatorIdentity
from agentci.model.problem import COMMAND_LINE
from agentci.model.requests import RunProgram
from agentci.runner.load_configs import FileLocator, make_locator
from agentci.runner.services import Services


def build_target(
    options: EvaluatorRunOptions, services: Services
) -> tuple[FileLocator, ComparableEvaluator]:
    """Build the evaluator as if a config in its file's folder named it.

    Raises:
        InputError: its file or its judge is missing or cannot be used.
    """
    hint = "name the program of an evaluator, FILE.py:FUNCTION, or the file of a prompt"
    locator, found = locate_given(options.path, services, hint=hint)
    if options.kind == "code":
        return locator, _build_code(options, found, locator, services)
    try:
        return locator, _build_from_entry(options, found, locator, services)
    except ValidationError as error:
        [first, *_] = error.errors(include_url=False)
        raise InputError.from_message(
            f"{options.path}: {first['msg']}", place=COMMAND_LINE
        ) from None


def locate_given(named: str, services: Services, *, hint: str) -> tuple[FileLocator, ResolvedPath]:
    """Locate a file of the command line, which may be outside the workspace.

    Returns:
        The locator of a config in the file's folder, and the file.

    Raises:
        InputError: it does not exist, or such a config could not name it.
    """
    path = services.workspace.cwd / named
    if not is_file(path):
        what = "is a folder" if is_folder(path) else "is not an existing file"
        raise InputError.from_message(f"{named} {what}", place=COMMAND_LINE, hint=hint)
    found = services.workspace.resolve_given(path, named=named, place=COMMAND_LINE)
    locator = make_locator(found.path.parent, services)
    if locator.matches(found.path.name, COMMAND_LINE)[:1] != (found,):
        message = f"{named} contains glob characters, which a config would expand"
        raise InputError.from_message(message, place=COMMAND_LINE, hint="rename it without * ? [ ]")
    return locator, found


def _build_code(
    options: EvaluatorRunOptions, found: ResolvedPath, locator: FileLocator, services: Services
) -> CodeEvaluator:
    threshold = _find_threshold(options)
    timeout = options.timeout_seconds
    return CodeEvaluator(
        identity=EvaluatorIdentity(
            name=Path(options.path).stem,
            type="code",
            criterion=format_criterion(threshold),
            threshold=threshold,
            required=True,
            place=COMMAND_LINE,
        ),
        definition={},  # the result is not compared
        config=options.config,
        run=RunProgram(
            program=locator.find(found.path.name, COMMAND_LINE),
            stdin="",
            timeout_seconds=DEFAULT_TIMEOUT_SECONDS if timeout is None else timeout,
            cache_dirs=tuple(services.evaluator_caches),
        ),
        program_place=COMMAND_LINE,
    )


def _find_threshold(options: EvaluatorRunOptions) -> float:
    requested = options.settings.threshold
    return DEFAULT_THRESHOLD if requested is None else requested


def _build_from_entry(
    options: EvaluatorRunOptions, found: ResolvedPath, locator: FileLocator, services: Services
) -> ComparableEvaluator:
    """Build a grader or a prompt."""
    judges = make_judge_settings(
        options.judge_model,
        options.judge,
        name="--judge",
        place=COMMAND_LINE,
        folder=str(services.workspace.cwd),
    )
    context = _make_context(locator, judges)
    if options.kind == "grader":
        timeout = options.timeout_seconds
        grader = GraderEntry(
            name=options.function,
            type="grader",
            grader=f"{found.path.name}:{options.function}",
            threshold=_find_threshold(options),
            timeout=GRADER_SECONDS if timeout is None else timeout,
            cache_dirs=[*services.evaluator_caches],
        )
        return build_grader(grader, context)
    prompt = PromptEntry(
        name=Path(options.path).stem,
        type="prompt",
        prompt=found.path.name,
        threshold=options.passing,
    )
    try:
        return build_prompt(prompt, context)
    except MissingJudgeError:
        raise InputError.from_message(
            "a prompt needs a judge model",
            place=COMMAND_LINE,
            hint="pass --judge-model PROVIDER/MODEL, or --judge JSON",
        ) from None


def _make_context(locator: FileLocator, judges: JudgeSettings) -> EvaluatorContext:
    return EvaluatorContext(
        place=COMMAND_LINE,
        find_place=lambda _: COMMAND_LINE,
        locate=lambda named, field="path": locator.find(named, COMMAND_LINE),  # noqa: ARG005 (one place)
        read=lambda named, _: locator.read(named, COMMAND_LINE),
        complete=lambda program: locator.complete(program, lambda _: COMMAND_LINE),
        judges=judges,
        turn_mismatch_fails=True,
    )
