"""Find and read the recorded outputs of an eval file, and assign them to its cases."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import Final

from msgspec import Struct

from agentci._util.files import SpooledChunks
from agentci._util.text import truncate
from agentci._util.text.suggest import quote_name
from agentci._util.workspace import (
    ResolvedPath,
    Workspace,
    is_file,
    is_folder,
    limit_input,
    read_chunks,
)
from agentci.config.discovery import OUTPUT_SUFFIXES, find_given_files, get_eval_file_stem
from agentci.config.settings import Settings
from agentci.config.suite import Suite
from agentci.errors import InputError, RecordingError
from agentci.evaluators.agentv.findings import extract_candidate_answer, extract_question
from agentci.model.case import NO_RECORDED_OUTPUT, AgentvCase, Case
from agentci.model.program import Agent
from agentci.model.result import TrialSettings
from agentci.model.trace import Trace
from agentci.model.values import COMMAND_LINE, Json, Place, Problem, replace
from agentci.recordings.agentv_outputs import (
    INDEX_FOLDER,
    IndexEntry,
    is_index_row,
    is_message_row,
    is_run_row,
    list_entries,
    make_failed_run,
    read_first_value,
    read_recorded_runs,
)
from agentci.recordings.agentv_run import (
    RecordedRun,
    convert_trace_to_run,
    convert_transcript_to_turn,
)
from agentci.recordings.json_documents import (
    MAX_RECORDING_BYTES,
    point_to_show,
    read_documents,
    unpack_content,
)
from agentci.recordings.registry import AUTO, FORMATS, detect_format_name, read_recording
from agentci.recordings.runs import StoredRun, convert_run, group_runs
from agentci.runner.select_runs import drop_inactive_traces
from agentci.runner.suite_files import LoadedSuite

MAX_LISTED_CASES: Final = 5


class CaseTrials(Struct, frozen=True, kw_only=True, eq=False):
    """The recorded runs of one case, and how to make more; shared by all checks of the case.

    Attributes:
        recorded: by attempt, counted from 0.
        agent: makes the runs that are not recorded; None if nothing does.
        trials: the number of runs to check; None for one.
    """

    eval_case: AgentvCase
    recorded: Mapping[int, RecordedRun]
    agent: Agent | None = None
    trials: TrialSettings | None = None

    def list_attempts(self, *, runs_agent: bool) -> Sequence[int]:
        """The attempts to check, in order; without an agent, those recorded, or else the first."""
        if runs_agent and self.agent is not None:
            return range(1 if self.trials is None else self.trials.count)
        return sorted(self.recorded) or (0,)

    def make_first_case(self) -> Case:
        """The case with its first recorded run, if there is one."""
        if not self.recorded:
            return make_case_without_run(self.eval_case)
        return make_case_with_run(self.eval_case, self.recorded[min(self.recorded)])


def assign_runs(
    runs: Sequence[RecordedRun], suite: Suite
) -> tuple[tuple[CaseTrials, ...], tuple[Problem, ...]]:
    """Assign the recorded runs to the cases of a suite; a case may have none."""
    eval_cases = [each.eval_case for each in suite.eval_cases or ()]
    by_case, problems = _group_by_case(runs, eval_cases)
    max_trials = 1 if suite.trials is None else suite.trials.count
    runs_by_attempt = {case_id: _number_runs(own, max_trials) for case_id, own in by_case.items()}
    problems += [problem for _, found in runs_by_attempt.values() for problem in found]
    case_trials = tuple(
        CaseTrials(
            eval_case=eval_case,
            recorded=runs_by_attempt[eval_case.id][0] if eval_case.id in runs_by_attempt else {},
            agent=suite.agent,
            trials=suite.trials,
        )
        for eval_case in eval_cases
    )
    if suite.trials is not None and suite.agent is None:
        problems += _find_missing_trials(suite.trials, case_trials)
    return case_trials, tuple(problems)


def _group_by_case(
    runs: Sequence[RecordedRun], eval_cases: Sequence[AgentvCase]
) -> tuple[Mapping[str, list[RecordedRun]], list[Problem]]:
    """The runs of each case, and a problem for each run without a case."""
    questions = {extract_question(each): each.id for each in reversed(eval_cases)}
    ids = {each.id for each in eval_cases}
    by_case: dict[str, list[RecordedRun]] = {}
    problems: list[Problem] = []
    sessions: list[RecordedRun] = []
    for run in runs:
        case_id = run.case_id if run.case_id in ids else None
        question = (run.question or "").strip()
        if case_id is None and question:
            case_id = questions.get(question)
        elif case_id is None and run.leaves_out_question and len(ids) == 1:
            [case_id] = ids
        if case_id is None and run.is_session:
            sessions.append(run)
        elif case_id is None:
            problems.append(_make_unmatched_problem(run))
        else:
            by_case.setdefault(case_id, []).append(replace(run, case_id=case_id))
    left = [each.id for each in eval_cases if each.id not in by_case]
    if len(sessions) != len(left):
        return by_case, [*problems, *map(_make_unmatched_problem, sessions)]
    for run, case_id in zip(sessions, left, strict=True):
        by_case[case_id] = [replace(run, case_id=case_id)]
        problems.append(_make_paired_problem(run, case_id))
    return by_case, problems


def _number_runs(
    runs: Sequence[RecordedRun], max_trials: int
) -> tuple[Mapping[int, RecordedRun], list[Problem]]:
    """The first ``most`` runs of a case by attempt; those without a number take the free ones."""
    runs_by_attempt: dict[int, RecordedRun] = {}
    problems: list[Problem] = []
    for run in sorted(runs, key=lambda run: run.attempt is None):
        free = next(number for number in range(max_trials + 1) if number not in runs_by_attempt)
        attempt = free if run.attempt is None else run.attempt
        if attempt in runs_by_attempt or (run.attempt is None and attempt == max_trials):
            first = runs_by_attempt[attempt if attempt in runs_by_attempt else 0]
            problems.append(_make_duplicate_problem(run, first, max_trials))
        elif attempt < max_trials:
            runs_by_attempt[attempt] = replace(run, attempt=attempt)
    return runs_by_attempt, problems


def _make_duplicate_problem(run: RecordedRun, first: RecordedRun, max_trials: int) -> Problem:
    many = (
        "two recorded outputs"
        if max_trials == 1
        else f"more recorded outputs than trials ({max_trials})"
    )
    if max_trials > 1 and run.attempt is not None:
        many = f"two recorded outputs of attempt {run.attempt}"
    return Problem(
        message=f"case {quote_name(run.case_id or '')} has {many}",
        place=run.place,
        hint=f"the first is {first.place}; keep only one",
    )


def _find_missing_trials(
    trials: TrialSettings, case_trials: Sequence[CaseTrials]
) -> Iterator[Problem]:
    """Warn about cases with fewer runs than ``trials``.

    Not for ``pass_at_k``: fewer runs make it harder to pass, not easier.
    """
    fewer = [
        f"{quote_name(each.eval_case.id)} has {len(each.recorded)}"
        for each in case_trials
        if 0 < len(each.recorded) < trials.count
        and (trials.cost_limit_usd is None or sum_costs(each.recorded) < trials.cost_limit_usd)
    ]
    if fewer and trials.strategy != "pass_at_k":
        yield Problem(
            message=f"`trials` needs {trials.count} recorded outputs per case: "
            + ", ".join(truncate.truncate_list(fewer, MAX_LISTED_CASES)),
            place=trials.place,
            hint="record the others with the same `id` and `attempt: 1`, `attempt: 2`, ...",
            severity="warning",
        )


def _make_unmatched_problem(run: RecordedRun) -> Problem:
    what = "a recorded output" if run.case_id is None else f"output {quote_name(run.case_id)}"
    return Problem(
        message=f"{what} matches no case",
        place=run.place,
        hint="an output needs the `id` of its case; a trace, the case's question as first message",
        severity="warning",
    )


def _make_paired_problem(run: RecordedRun, case_id: str) -> Problem:
    return Problem(
        message=f"session {quote_name(run.case_id or '')} is evaluated as case "
        f"{quote_name(case_id)}, by its position",
        place=run.place,
        hint="make its first user message equal to the `input` of its case",
        severity="warning",
    )


def sum_costs(runs: Mapping[int, RecordedRun]) -> float:
    """The total of the runs' reported costs, in US dollars."""
    return math.fsum(run.transcript.cost_usd or 0 for run in runs.values())


def make_case_with_run(eval_case: AgentvCase, run: RecordedRun) -> Case:
    """A case with one of its runs."""
    turn = convert_transcript_to_turn(
        run.transcript,
        question=extract_question(eval_case),
        answer=extract_candidate_answer(run.transcript),
    )
    trace = Trace(
        id=eval_case.id,
        key=eval_case.id,
        turns=(turn,),
        place=run.place,
        usage=run.transcript.token_usage,
        cost_usd=run.transcript.cost_usd,
        warnings=run.warnings,
        not_captured=run.not_captured,
    )
    return Case(id=eval_case.id, trace=trace, agentv_case=eval_case, transcript=run.transcript)


def make_case_without_run(eval_case: AgentvCase, why: str = NO_RECORDED_OUTPUT) -> Case:
    """A case without a run; its checks are errored."""
    trace = Trace(id=eval_case.id, key=eval_case.id, turns=(), place=eval_case.place)
    return Case(id=eval_case.id, trace=trace, agentv_case=eval_case, missing_run_reason=why)


# The index in the folder of a run of AgentV.
INDEX_NAME: Final = "index.jsonl"
# Endings of files next to an eval file that are named after one of its cases.
CASE_OUTPUT_ENDINGS: Final = (".output.json", ".output.txt", ".output.md", ".json", ".txt")


class PairedOutputs(Struct, frozen=True, kw_only=True):
    """The runs of each case of an eval file, and the problems with them."""

    case_trials: tuple[CaseTrials, ...]
    problems: tuple[Problem, ...]


def find_outputs(
    loaded: LoadedSuite, settings: Settings, workspace: Workspace
) -> tuple[ResolvedPath, ...]:
    """The files of recorded outputs: of the command line, the eval file, or next to the eval file.

    Raises:
        InputError: a pattern matches no file, or there are neither files nor an agent.
    """
    if settings.traces:
        return _require_matches(find_given_files(settings.traces, workspace), COMMAND_LINE)
    return find_named_outputs(loaded) or _find_adjacent_outputs(loaded.suite, workspace)


def find_named_outputs(loaded: LoadedSuite) -> tuple[ResolvedPath, ...]:
    """The files of recorded outputs that an eval file names.

    Raises:
        InputError: a pattern matches no file.
    """
    suite, place = loaded.suite, loaded.suite.place_of("outputs")
    found = {each: loaded.locator.matches(each, place) for each in suite.traces}
    return _require_matches(found, place)


def _require_matches(
    found: Mapping[str, Sequence[ResolvedPath]], place: Place
) -> tuple[ResolvedPath, ...]:
    missing = [pattern for pattern, paths in found.items() if not paths]
    if missing:
        raise InputError(
            [
                Problem(
                    message=f"no recorded output matches {pattern}",
                    place=place,
                    hint="check the path or the glob",
                )
                for pattern in missing
            ]
        )
    return tuple(dict.fromkeys(path for paths in found.values() for path in paths))


def _find_adjacent_outputs(suite: Suite, workspace: Workspace) -> tuple[ResolvedPath, ...]:
    file = workspace.root / suite.file
    stem = get_eval_file_stem(file.name)
    ids = [each.eval_case.id for each in suite.eval_cases or ()]
    names = [
        *(f"{stem}{ending}" for ending in OUTPUT_SUFFIXES),
        *(f"{each}{CASE_OUTPUT_ENDINGS[0]}" for each in ids if "/" not in each),
    ]
    found = tuple(
        workspace.resolve_given(file.parent / name) for name in names if is_file(file.parent / name)
    )
    if not found and suite.agent is None:
        raise InputError.from_message(
            "the eval file has neither recorded outputs nor a `target` with a `command`",
            place=suite.place,
            hint=f"add `outputs:`, pass --traces, or create {stem}{OUTPUT_SUFFIXES[0]} next to it",
        )
    return found


def pair_outputs(
    loaded: LoadedSuite, paths: Sequence[ResolvedPath], settings: Settings, workspace: Workspace
) -> PairedOutputs:
    """Read the outputs of a suite, and assign them to its cases; a case may have none."""
    suite = loaded.suite
    reader = _OutputReader(suite=suite, settings=settings, workspace=workspace)
    case_trials, problems = assign_runs(reader.runs(paths), suite)
    return PairedOutputs(case_trials=case_trials, problems=(*reader.problems, *problems))


def _read_first(found: tuple[str, bytes]) -> Json:
    """The first JSON value of a file, given its name and content; None if there is none."""
    return read_first_value(iter([found[1]]), file=found[0])


class _OutputReader:
    """Reads files of outputs; after an error in one file, the others are still read."""

    def __init__(self, *, suite: Suite, settings: Settings, workspace: Workspace) -> None:
        self._suite = suite
        self._settings = settings
        self._workspace = workspace
        self._ids = {each.eval_case.id for each in suite.eval_cases or ()}
        self._named: dict[str, str] = {}
        self.problems: list[Problem] = []

    def runs(self, paths: Sequence[ResolvedPath]) -> list[RecordedRun]:
        """All runs, those of traces last."""
        runs: list[RecordedRun] = []
        recorded: list[StoredRun] = []
        spool = SpooledChunks()
        for path in paths:
            try:
                with limit_input(self._workspace.display_path(path.path)):
                    runs += self._read(path, recorded, spool)
            except RecordingError as error:
                self.problems.append(error.problem)
            except InputError as error:
                self.problems += error.problems
        recorded, ignored = drop_inactive_traces(recorded, are_all=not (runs or self.problems))
        self.problems += ignored
        group_by = self._settings.group_by or self._suite.group_by
        groups = group_runs(recorded, spool, group_by=group_by, multi_turn_eval_cases=False)
        return [*runs, *(self._convert(convert_run(group, spool)) for group in groups)]

    def _convert(self, trace: Trace) -> RecordedRun:
        run = convert_trace_to_run(trace)
        named = self._named.get(trace.place.file)
        return run if named is None else replace(run, case_id=named)

    def _read(
        self, path: ResolvedPath, recorded: list[StoredRun], spool: SpooledChunks
    ) -> Iterator[RecordedRun]:
        for folder in (path.path, path.path / INDEX_FOLDER) if is_folder(path.path) else ():
            if is_file(folder / INDEX_NAME):
                path = self._workspace.resolve_given(folder / INDEX_NAME)
                break
        file = self._workspace.display_path(path.path)
        chunks = partial(read_chunks, path, name=file, limit_bytes=MAX_RECORDING_BYTES)
        trace_format = self._settings.trace_format or self._suite.trace_format or AUTO
        named = next(
            (
                case_id
                for ending in CASE_OUTPUT_ENDINGS
                if path.path.name.endswith(ending)
                and (case_id := path.path.name.removesuffix(ending)) in self._ids
            ),
            None,
        )
        first = read_first_value(unpack_content(chunks(), file=file), file=file)
        if is_index_row(first):
            yield from self._read_run_folder(
                path, b"".join(unpack_content(chunks(), file=file)), file
            )
            return
        if trace_format != AUTO or self._is_recording(first, chunks, file):
            if named is not None:
                self._named[file] = named
            try:
                recorded += read_recording(
                    chunks(), file=file, spool=spool, trace_format=trace_format
                )
            except RecordingError as error:
                raise RecordingError(point_to_show(error.problem)) from None
            return
        content = b"".join(unpack_content(chunks(), file=file))
        for run in read_recorded_runs(content, file=file, of_one_case=named is not None):
            yield run if run.case_id is not None or named is None else replace(run, case_id=named)

    def _read_run_folder(
        self, path: ResolvedPath, content: bytes, file: str
    ) -> Iterator[RecordedRun]:
        """Read the runs that an index of AgentV names."""
        documents = tuple(read_documents(iter([content]), file=file))
        suites = (self._suite.title, get_eval_file_stem(PurePath(self._suite.file).name))
        folder = path.path.parent
        if folder.name == INDEX_FOLDER:
            folder = folder.parent
        for entry in list_entries(documents, [each for each in suites if each], self._ids):
            place = Place(file=file, line=entry.line)
            found = None if entry.error else self._read_output(entry, folder, place)
            if found is None:
                yield make_failed_run(entry, file)
                continue
            changes = self._read_named(entry.changes, folder, place)
            diff = None if changes is None else changes[1].decode("utf-8", "replace")
            for run in read_recorded_runs(found[1], file=found[0], of_one_case=True):
                transcript = replace(
                    run.transcript, file_changes=diff or run.transcript.file_changes
                )
                yield replace(run, case_id=entry.case_id, transcript=transcript)

    def _read_output(
        self, entry: IndexEntry, folder: Path, place: Place
    ) -> tuple[str, bytes] | None:
        """The name and the content of the transcript, else of the answer; None without both.

        A transcript in another format than rows of messages is left out if there is an answer.
        """
        transcript, raw = (self._read_named(each, folder, place) for each in entry.transcripts)
        if transcript is not None and is_message_row(_read_first(transcript)):
            return transcript
        if raw is not None and is_message_row(_read_first(raw)):
            return raw
        if transcript is not None and is_run_row(_read_first(transcript)):
            return transcript
        return self._read_named(entry.answer, folder, place) or transcript

    def _read_named(self, named: str, folder: Path, place: Place) -> tuple[str, bytes] | None:
        """The name and the content of a file of the run; None if there is none.

        Raises:
            InputError: it is outside the workspace.
        """
        if not named or not is_file(folder / named):
            return None
        resolved = self._workspace.resolve(folder / named, named=named, place=place)
        shown = self._workspace.display_path(resolved.path)
        chunks = read_chunks(resolved, name=shown, limit_bytes=MAX_RECORDING_BYTES)
        return shown, b"".join(unpack_content(chunks, file=shown))

    def _is_recording(self, first: Json, chunks: Callable[[], Iterator[bytes]], file: str) -> bool:
        """Whether a file holds traces or a transcript, and not rows of outputs or plain text."""
        if any(each.recognises(first) for each in FORMATS.values()):
            return True
        return not is_run_row(first) and detect_format_name(chunks(), file=file) is not None
