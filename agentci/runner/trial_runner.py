"""Run the trials of the cases of an eval file: its agent, their checks, their recording."""

import re
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from agentci._util.files import SpooledChunks, prepare_output_folder, write_output_files
from agentci._util.text import json_text
from agentci._util.text.format import format_count
from agentci._util.text.secrets import Redactor
from agentci._util.workspace import is_file, read_file, restore_path, trust_path
from agentci.config.agentv.targets import (
    OUTPUT_FILE,
    PROMPT,
    PROMPT_FILE,
    fill_command,
    find_placeholders,
    format_file_path,
)
from agentci.config.discovery import make_output_names
from agentci.config.settings import Settings
from agentci.errors import EvaluatorError, InputError, RecordingError
from agentci.evaluators.agentv.findings import format_agent_prompt
from agentci.evaluators.program_output import describe_exit, format_log_tail
from agentci.execution.executor_api import NO_SANDBOX, ProgramJob
from agentci.gate.aggregation import TOLERANCE, aggregate_trials, compute_case_scores
from agentci.model.case import NO_RECORDED_OUTPUT, AgentvCase
from agentci.model.gate import Gate, GatePolicy
from agentci.model.program import Agent
from agentci.model.requests import LOCAL_EXECUTOR, ProgramOutput, RunCommand
from agentci.model.result import CheckResult
from agentci.model.values import Problem, replace
from agentci.recordings.agentv_outputs import read_recorded_runs
from agentci.recordings.agentv_run import RecordedRun, make_run_row
from agentci.recordings.json_documents import MAX_RECORDING_BYTES
from agentci.runner import load_outputs
from agentci.runner.check import Check
from agentci.runner.dispatch import make_command_job
from agentci.runner.plan import Plan, keep_in_memory
from agentci.runner.run_checks import Outcome, run_checks
from agentci.runner.services import Services

# Linux allows no longer argument.
MAX_ARGUMENT_BYTES: Final = 128 * 1024 - 1
FOLDER_MODE: Final = 0o755
# What programs print if an environment variable is missing.
MISSING_VARIABLE: Final = re.compile(
    r"environ|credential|api.?key|auth|token|KeyError", re.IGNORECASE
)


def run_agent(agent: Agent, eval_case: AgentvCase, attempt: int, services: Services) -> RecordedRun:
    """Run the agent on a case once.

    Raises:
        EvaluatorError: it failed, timed out, or returned no valid output.
    """
    try:
        with _make_temporary_folder(sandboxed=agent.sandboxed) as folder:
            return _run_once(agent, eval_case, attempt, folder, services)
    except OSError as error:
        raise EvaluatorError(f"the agent could not be run: {error}") from None
    except EvaluatorError as error:
        raise EvaluatorError(f"the agent {error}") from None


def _run_once(
    agent: Agent, eval_case: AgentvCase, attempt: int, folder: Path, services: Services
) -> RecordedRun:
    job = _make_agent_job(agent, eval_case, attempt, folder, services)
    started = services.clock()
    response = job.run(services.executors[LOCAL_EXECUTOR])
    milliseconds = (services.clock() - started) * 1000
    if response.exit_code != 0:
        ended = describe_exit(
            response, network=agent.network, in_image=False, sandboxed=agent.sandboxed
        )
        raise EvaluatorError(f"{ended}{_hint_at_variables(response)}")
    content = _find_response(agent, response, folder)
    try:
        content.decode()
        runs = read_recorded_runs(content, file="the output", of_one_case=True)
    except UnicodeDecodeError:
        raise EvaluatorError("returned an invalid output: it is not UTF-8") from None
    except RecordingError as error:
        raise EvaluatorError(f"returned an invalid output: {error.problem.message}") from None
    if len(runs) != 1:
        raise EvaluatorError(f"returned {len(runs)} outputs instead of one")
    run = runs[0]
    transcript = run.transcript
    if transcript.duration_ms is None:
        transcript = replace(transcript, duration_ms=round(milliseconds))
    return replace(
        run, case_id=eval_case.id, attempt=attempt, transcript=transcript, place=agent.place
    )


def _make_agent_job(
    agent: Agent, eval_case: AgentvCase, attempt: int, folder: Path, services: Services
) -> ProgramJob:
    prompt, named = format_agent_prompt(eval_case), find_placeholders(agent.command)
    prompt_file = folder / "prompt.txt"
    prompt_file.write_text(prompt, encoding="utf-8", errors="backslashreplace", newline="\n")
    files = (*eval_case.guideline_files, *eval_case.input_files)
    command = fill_command(
        agent.command,
        {
            PROMPT: prompt,
            PROMPT_FILE: str(prompt_file),
            "GUIDELINES": "\n\n".join(map(_read_guideline, eval_case.guideline_files)),
            "EVAL_ID": eval_case.id,
            "ATTEMPT": str(attempt),
            OUTPUT_FILE: str(_output_file(folder)),
        },
        [format_file_path(path, agent.files_format) for path in files],
    )
    for word in command:
        if "\0" in word:
            raise EvaluatorError("cannot be started: an argument contains a NUL character")
        if len(word.encode("utf-8", "replace")) > MAX_ARGUMENT_BYTES:
            hint = "use {PROMPT_FILE} instead of {PROMPT}"
            raise EvaluatorError(
                "cannot be started: an argument is longer than"
                f" {MAX_ARGUMENT_BYTES:,} bytes; {hint}"
            )
    request = RunCommand(
        command=command,
        folder=agent.folder,
        home=agent.home,
        stdin="" if {PROMPT, PROMPT_FILE} & set(named) else prompt,
        timeout_seconds=agent.timeout_seconds,
        network=agent.network,
        variables=agent.variables,
        isolation="spawn",
    )
    job = make_command_job(request, services)
    if not agent.sandboxed:
        return replace(job, sandbox_policy=NO_SANDBOX)
    readable = (*job.sandbox_policy.readable, trust_path(folder))
    return replace(job, sandbox_policy=replace(job.sandbox_policy, readable=readable))


def _find_response(agent: Agent, response: ProgramOutput, folder: Path) -> bytes:
    """The output file if the command names one, else stdout."""
    content, where = response.stdout, "printed nothing on stdout"
    if OUTPUT_FILE in find_placeholders(agent.command):
        path = _output_file(folder)
        if not is_file(path):
            raise EvaluatorError(f"wrote no {{{OUTPUT_FILE}}}{_format_stderr(response)}")
        content, where = _read_response_file(path), f"wrote nothing into {{{OUTPUT_FILE}}}"
    if not content.strip():
        raise EvaluatorError(f"{where}{_format_stderr(response)}")
    return content


def _read_guideline(file: str) -> str:
    try:
        return read_file(restore_path(file), name=file, limit_bytes=MAX_RECORDING_BYTES).decode(
            "utf-8", "replace"
        )
    except InputError as error:
        raise EvaluatorError(f"could not be run: {error.problems[0].message}") from None


def _read_response_file(path: Path) -> bytes:
    found = restore_path(f"{trust_path(path.parent)}/{path.name}")
    try:
        return read_file(found, name=f"{{{OUTPUT_FILE}}}", limit_bytes=MAX_RECORDING_BYTES)
    except InputError as error:
        raise EvaluatorError(f"returned an invalid output: {error.problems[0].message}") from None


def _hint_at_variables(response: ProgramOutput) -> str:
    """A hint if the agent seems to miss an environment variable."""
    if MISSING_VARIABLE.search(response.stderr) is None:
        return ""
    return "\n(the agent sees only the environment variables that its `env` names)"


def _output_file(folder: Path) -> Path:
    return folder / "output.json"


def _format_stderr(response: ProgramOutput) -> str:
    stderr = format_log_tail(response.stderr)
    return f"; on stderr:\n{stderr}" if stderr else ""


@contextmanager
def _make_temporary_folder(*, sandboxed: bool) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="agentci-agent-"))
    try:
        if sandboxed:
            folder.chmod(FOLDER_MODE)  # it may run as another user
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_outputs(
    runs: Mapping[str, Sequence[RecordedRun]],
    gates: Sequence[Gate],
    settings: Settings,
    services: Services,
) -> tuple[Problem, ...]:
    """Write the runs of each config to a file; returns a problem for each failed write.

    Args:
        runs: by config.
        gates: of all configs of the plan; they decide the file names.
    """
    names = make_output_names(gate.config for gate in gates)
    redactor = services.variables.redactor
    files = {
        names[config]: (_format_output_line(each, redactor) for each in own)
        for config, own in runs.items()
    }
    try:
        folder = prepare_output_folder(settings.output_dir, services.workspace)
    except InputError as error:
        return error.problems
    errors = write_output_files(folder, files, services.workspace)
    return tuple(
        Problem(message=f"{name} cannot be written: {error}") for name, error in errors.items()
    )


def _format_output_line(run: RecordedRun, redactor: Redactor) -> str:
    row = make_run_row(run.case_id or "", run.attempt, run.transcript)
    return f"{json_text.dumps(redactor.redact_value(row))}\n"


class TrialSequence(Struct, kw_only=True):
    """The attempts of one case and their results.

    Attributes:
        pending: the attempts that are still to be checked.
        runs: by attempt, recorded or made by the agent.
        failures: why there is no run, by attempt.
        results: of all checks, in their order, by attempt.
        cost_limited: the cost limit ended the trials early.
    """

    case_trials: load_outputs.CaseTrials
    policy: GatePolicy
    pending: deque[int]
    runs: dict[int, RecordedRun]
    checks: list[Check] = field(default_factory=list)
    failures: dict[int, str] = field(default_factory=dict)
    results: dict[int, tuple[CheckResult, ...]] = field(default_factory=dict)
    cost_limited: bool = False

    @property
    def is_repeated(self) -> bool:
        """Whether the results of several attempts are combined."""
        return self.case_trials.trials is not None

    def next_checks(self, contents: SpooledChunks) -> Iterator[Check]:
        """The checks of the next attempt's run, whose content is written to ``contents``."""
        eval_case, run = self.case_trials.eval_case, self.runs.get(self.pending[0])
        if run is None:
            failure = self.failures[self.pending[0]]
            case = load_outputs.make_case_without_run(eval_case, failure)
        else:
            case = load_outputs.make_case_with_run(eval_case, run)
        stored = keep_in_memory(case, contents)
        for check in self.checks:
            yield replace(check, case=stored.summary, load=stored.load)

    def add_results(self, found: Mapping[str, CheckResult]) -> None:
        """Add the results of the next attempt, and decide whether more are needed."""
        attempt = self.pending.popleft()
        self.results[attempt] = tuple(found[check.id] for check in self.checks)
        trials = self.case_trials.trials
        if trials is None:
            return
        judged = {number: run for number, run in self.runs.items() if number in self.results}
        limit = trials.cost_limit_usd
        if trials.strategy == "pass_at_k" and self._rank_attempt(attempt)[0]:
            self.pending.clear()
        elif limit is not None and load_outputs.sum_costs(judged) >= limit:
            self.pending.clear()
            self.cost_limited = len(self.results) < trials.count

    def combine_results(self) -> Iterator[CheckResult]:
        """One result per check, combined from all attempts."""
        trials = self.case_trials.trials
        best = max(self.results, key=self._rank_attempt)
        for index, result in enumerate(self.results[best]):
            runs = [(number, results[index]) for number, results in self.results.items()]
            yield (
                result
                if trials is None
                else aggregate_trials(runs, best, trials.strategy, cost_limited=self.cost_limited)
            )

    def _rank_attempt(self, attempt: int) -> tuple[bool, float]:
        """Whether the case would pass with this attempt only, and its score; for comparisons."""
        results = self.results[attempt]
        score = next(iter(compute_case_scores(results).values()), -1.0)
        needed = [each for each in results if each.evaluator.required] or results
        case_policy = self.policy.cases
        if case_policy is not None:
            needed = [
                each
                for each in needed
                if each.status == "errored" or each.evaluator.name in self.policy.evaluators
            ]
        passes = all(each.status == "passed" for each in needed)
        threshold = None if case_policy is None else case_policy.find_threshold(results[0].case.id)
        return passes and (threshold is None or score >= threshold - TOLERANCE), score


def make_trial_sequences(
    checks: Iterable[Check], gates: Iterable[Gate], *, runs_agent: Callable[[Agent], bool]
) -> tuple[TrialSequence, ...]:
    """The trials of all cases that have any, in the order of their checks.

    Args:
        runs_agent: whether an agent makes the runs that are not recorded.
    """
    policies = {gate.config: gate.policy for gate in gates}
    sequences: dict[load_outputs.CaseTrials, TrialSequence] = {}
    for check in checks:
        case_trials = check.case_trials
        if case_trials is None:
            continue
        if case_trials not in sequences:
            agent = case_trials.agent
            runs = agent is not None and runs_agent(agent)
            sequences[case_trials] = TrialSequence(
                case_trials=case_trials,
                policy=policies[check.config],
                pending=deque(case_trials.list_attempts(runs_agent=runs)),
                runs=dict(case_trials.recorded),
            )
        sequences[case_trials].checks.append(check)
    return tuple(sequences.values())


AGENT_NOT_STARTED: Final = "interrupted before the agent was run"


class TrialRunner(Struct, kw_only=True):
    """Runs the agents and all checks of a plan.

    Attributes:
        jobs: how many agents or checks run at a time.
        offline: do not run agents.
        on_result: called with every result.
        on_progress: called with a line of text before a long step.
        save_runs: called with all runs so far, by config, after agents have run.
        problems: found so far; an ordered set.
    """

    services: Services
    jobs: int
    offline: bool
    on_result: Callable[[CheckResult], None]
    on_progress: Callable[[str], None]
    save_runs: Callable[[Mapping[str, Sequence[RecordedRun]]], Sequence[Problem]]
    problems: dict[Problem, None] = field(default_factory=dict)

    def run(self, plan: Plan) -> Outcome:
        """Run all checks of ``plan``, round by round: one attempt of each case per round."""
        checks = plan.checks
        sequences = make_trial_sequences(checks, plan.gates, runs_agent=self._runs_agent)
        others = [check for check in checks if check.case_trials is None]
        found: dict[str, CheckResult] = {}
        bug: Exception | None = None
        while bug is None and (others or any(sequence.pending for sequence in sequences)):
            due = [sequence for sequence in sequences if sequence.pending]
            try:
                self._run_agents(due, sequences)
            except Exception as error:  # noqa: BLE001 (a bug must not lose the other results)
                bug = error
                break
            outcome = self._run_round(others, due, found)
            bug, others = outcome.bug, []
            if not outcome.complete:
                break
        self.problems.update(
            dict.fromkeys(map(_make_cost_limit_problem, filter(_has_unknown_costs, sequences)))
        )
        results = tuple(found[check.id] for check in checks if check.id in found)
        return Outcome(results=results, complete=len(results) == len(checks), bug=bug)

    def _run_round(
        self, others: Sequence[Check], due: Sequence[TrialSequence], found: dict[str, CheckResult]
    ) -> Outcome:
        """Run the checks of one round, and add the final results to ``found``."""
        repeated = {check.id for each in due if each.is_repeated for check in each.checks}
        of_this_round: dict[str, CheckResult] = {}

        def take(result: CheckResult) -> None:
            of_this_round[result.id] = result
            if result.id not in repeated:
                found[result.id] = result
                self.on_result(result)

        contents = self.services.run_contents
        checks = [*others, *(check for each in due for check in each.next_checks(contents))]
        outcome = run_checks(checks, services=self.services, jobs=self.jobs, on_result=take)
        for each in due:
            if all(check.id in of_this_round for check in each.checks):
                each.add_results(of_this_round)
                if each.is_repeated and not each.pending:
                    for result in each.combine_results():
                        found[result.id] = result
                        self.on_result(result)
        return outcome

    def _run_agents(self, due: Sequence[TrialSequence], sequences: Sequence[TrialSequence]) -> None:
        """Run the agent for the next attempt of each case that has no recorded run."""
        waiting = [sequence for sequence in due if sequence.pending[0] not in sequence.runs]
        agent_runs = [sequence for sequence in waiting if self._should_run_agent(sequence)]
        if not agent_runs:
            return
        self.on_progress(f"running the agent on {format_count(len(agent_runs), 'case')}")
        with ThreadPoolExecutor(max_workers=max(1, min(self.jobs, len(agent_runs)))) as pool:
            list(pool.map(self._run_agent, agent_runs))
        runs: dict[str, list[RecordedRun]] = {}
        for sequence in sequences:
            own = [sequence.runs[number] for number in sorted(sequence.runs)]
            runs.setdefault(sequence.checks[0].config, []).extend(own)
        used = {sequence.checks[0].config for sequence in agent_runs}
        kept = {config: own for config, own in runs.items() if config in used}
        self.problems.update(dict.fromkeys(self.save_runs(kept)))

    def _should_run_agent(self, sequence: TrialSequence) -> bool:
        """Whether to run the agent; if not, the reason is recorded."""
        agent, failure = sequence.case_trials.agent, NO_RECORDED_OUTPUT
        if agent is not None:
            refusal = self.services.explain_skipped_agent(agent, offline=self.offline)
            if not refusal:
                return True
            failure = f"{failure}, and {refusal}"
        sequence.failures[sequence.pending[0]] = failure
        return False

    def _runs_agent(self, agent: Agent) -> bool:
        return not self.services.explain_skipped_agent(agent, offline=self.offline)

    def _run_agent(self, sequence: TrialSequence) -> None:

        agent, attempt = sequence.case_trials.agent, sequence.pending[0]
        if agent is None or self.services.interruption.is_requested():
            sequence.failures[attempt] = AGENT_NOT_STARTED
            return
        try:
            sequence.runs[attempt] = run_agent(
                agent, sequence.case_trials.eval_case, attempt, self.services
            )
        except EvaluatorError as error:
            sequence.failures[attempt] = str(error)


def _has_unknown_costs(sequence: TrialSequence) -> bool:
    """Whether there is a cost limit, but no run reported its costs."""
    trials = sequence.case_trials.trials
    costs = [run.transcript.cost_usd for run in sequence.runs.values()]
    return bool(costs) and not any(costs) and trials is not None and bool(trials.cost_limit_usd)


def _make_cost_limit_problem(sequence: TrialSequence) -> Problem:
    trials = sequence.case_trials.trials
    return Problem(
        message="`cost_limit_usd` has no effect: no output reports its `cost_usd`",
        place=None if trials is None else trials.place,
        severity="warning",
    )
