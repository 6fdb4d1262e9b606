"""``agentci evaluator run``: one evaluator on one recording, for its author."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from agentci._util.files import say
from agentci._util.text.escape import one_line
from agentci._util.text.suggest import quoted
from agentci._util.workspace import is_file, is_folder, real
from agentci.cli.commands.evaluator.format_run import Transcript
from agentci.config.settings import Settings, settings_of
from agentci.config.suite import Suite
from agentci.errors import InputError
from agentci.evaluators.agentevals.code import CodeEvaluator
from agentci.evaluators.agentevals.entries import DEFAULT_TIMEOUT_SECONDS
from agentci.evaluators.agentevals.threshold import DEFAULT_THRESHOLD, bar_of
from agentci.evaluators.fields import MAX_SECONDS
from agentci.gate.decision import decide, totals
from agentci.model.case import Case
from agentci.model.identity import Identity
from agentci.model.json import Json, JsonObject
from agentci.model.judgement import Judgement
from agentci.model.place import COMMAND_LINE
from agentci.model.policy import GatePolicy
from agentci.model.program import Wanted
from agentci.model.requests import Reply, RunProgram
from agentci.model.result import Result
from agentci.reports.locations import problem_line
from agentci.runner.check import judge
from agentci.runner.load_configs import LoadedSuite
from agentci.runner.locate_programs import Locator
from agentci.runner.plan import Plan, plan_of
from agentci.runner.prepare_programs import equip
from agentci.runner.services import World

EXAMPLE: Final = '{"min_length": 5}'


class Trial(Struct, frozen=True, kw_only=True):
    """What is tried, and on what.

    Attributes:
        path: of the program, as the user named it.
        settings: recording, eval set and threshold, as a run would be asked for them.
        config: what the program is given under ``config``.
    """

    path: str
    settings: Settings
    config: JsonObject
    timeout_seconds: int

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "Trial":
        """Check what the command line says, by the names of its flags, with ``_`` for hyphens.

        Raises:
            InputError: something of it cannot be used.
        """
        recording = given["trace"]
        if not recording.strip():
            raise InputError.of("--trace is empty", hint="name a recording")
        values = {
            "traces": [recording],
            "eval-set": [given.get("eval_set", "")],
            "threshold": [given.get("threshold", "")],
        }
        return cls(
            path=given["path"],
            settings=settings_of((), values),
            config=_config(given.get("config", "{}")),
            timeout_seconds=_seconds(given.get("timeout", str(DEFAULT_TIMEOUT_SECONDS))),
        )


def show_trial(trial: Trial, world: World) -> int:
    """Run the evaluator on every case of the recording, and print all that it reads and prints.

    Returns:
        What a gate over this evaluator alone would exit with.

    Raises:
        InputError: the program, the recording or the eval set cannot be used.
    """
    transcript = Transcript(world)
    locator, evaluator = _found(trial, world)
    witness = Witness(evaluator=evaluator, transcript=transcript)
    loaded = LoadedSuite(suite=_suite(witness), locator=locator)
    plan, world = equip(plan_of([loaded], trial.settings, world), trial.settings, world)
    _tell_problems(plan, trial, world)
    results: list[Result] = []
    for check in plan.checks:
        transcript.tell_case(check.case, position=len(results) + 1, total=len(plan.checks))
        witness.reply = None
        result = judge(check, world)
        transcript.tell_reply(witness.reply, seconds=result.seconds)
        transcript.tell_verdict(result)
        results.append(result)
    decision = decide(
        [(loaded.suite.gate, results)], problems=(), uncovered=0, complete=True, fail_on="failed"
    )
    transcript.tell_decision(decision, totals(results))
    return decision.exit_code


class Witness(Struct, kw_only=True):
    """An evaluator that shows what it asks for, and remembers what came back."""

    evaluator: CodeEvaluator
    transcript: Transcript
    reply: Reply | None = None

    @property
    def identity(self) -> Identity:
        """See :class:`Evaluator`."""
        return self.evaluator.identity

    @property
    def needs(self) -> tuple[Wanted, ...]:
        """See :class:`Evaluator`."""
        return self.evaluator.needs

    def ask(self, case: Case) -> RunProgram:
        """See :class:`Evaluator`."""
        request = self.evaluator.ask(case)
        self.transcript.tell_stdin(request.stdin)
        return request

    def read(self, reply: Reply) -> Judgement:
        """See :class:`Evaluator`."""
        self.reply = reply
        return self.evaluator.read(reply)


def _found(trial: Trial, world: World) -> tuple[Locator, CodeEvaluator]:
    """The evaluator, as if a config beside its program named it."""
    path = world.workspace.cwd / trial.path
    if not is_file(path):
        what = "is a folder, not a file" if is_folder(path) else "does not exist, or is no file"
        hint = "name the program of an evaluator"
        raise InputError.of(f"{trial.path} {what}", place=COMMAND_LINE, hint=hint)
    path = real(path)
    locator = Locator(
        path.parent, world.workspace, sources=world.sources, executors=world.executors
    )
    if locator.matches(path.name, COMMAND_LINE)[:1] != (path,):
        message = f"{trial.path} has a name that stands for other files in configs"
        raise InputError.of(message, place=COMMAND_LINE, hint="name it without * ? [ ]")
    given = trial.settings.threshold
    threshold = DEFAULT_THRESHOLD if given is None else given
    evaluator = CodeEvaluator(
        identity=Identity(
            name=Path(trial.path).stem,
            type="code",
            bar=bar_of(threshold),
            threshold=threshold,
            required=True,
            place=COMMAND_LINE,
        ),
        config=trial.config,
        run=RunProgram(
            program=locator.find(path.name, COMMAND_LINE),
            stdin="",
            timeout_seconds=trial.timeout_seconds,
        ),
        program_place=COMMAND_LINE,
    )
    return locator, evaluator


def _suite(witness: Witness) -> Suite:
    return Suite(
        file=COMMAND_LINE.file,
        evaluators=(witness,),
        gate=GatePolicy(),
        names=(witness.identity.name,),
    )


def _tell_problems(plan: Plan, trial: Trial, world: World) -> None:
    """Warn of what a run would warn of, save that golden cases are for other recordings.

    Raises:
        InputError: the recording is broken.
    """
    errors = [each for each in plan.problems if each.severity == "error"]
    if errors:
        raise InputError(errors)
    named = trial.settings.eval_set
    goldens = None if named is None else world.workspace.name_of(world.workspace.cwd / named)
    for problem in plan.problems:
        if problem.place is None or problem.place.file != goldens:
            say(f"{one_line(problem_line(problem, severity=True))}\n", world.err)


def _config(text: str) -> JsonObject:
    hint = f"write an object, in quotes for the shell: '{EXAMPLE}'"
    try:
        value: Json = json.loads(text, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise InputError.of(f"--config {quoted(text)} is not JSON: {error}", hint=hint) from None
    if not isinstance(value, dict):
        raise InputError.of(f"--config {quoted(text)} is no object", hint=hint)
    return value


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not finite")
    return number


def _seconds(text: str) -> int:
    try:
        seconds = int(text)
    except ValueError:
        seconds = 0
    if not 1 <= seconds <= MAX_SECONDS:
        wanted = f"a whole number of seconds from 1 to {MAX_SECONDS:,}"
        raise InputError.of(f"--timeout must be {wanted}, not {quoted(text)}")
    return seconds
