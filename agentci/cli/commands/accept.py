"""``agentci accept``: write eval cases from recorded runs, or update those that a run changed."""

import os.path
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import unified_diff
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from agentci._util.files import make_folder, write_file_atomically, write_to_stream
from agentci._util.text import truncate
from agentci._util.text.escape import escape_for_log, escape_for_log_line, neutralize_commands
from agentci._util.text.format import format_count
from agentci._util.text.secrets import REMOVED_KEY
from agentci._util.text.suggest import quote_name, suggest_name
from agentci._util.workspace import (
    ResolvedPath,
    Workspace,
    decode_utf8,
    is_file,
    is_folder,
    limit_input,
    read_file,
)
from agentci.cli.session import Session
from agentci.config.case_file import (
    add_case,
    find_case_lines,
    list_written_cases,
    read_case_file,
    replace_case,
)
from agentci.config.discovery import DEFAULT_EVAL_SET, find_matching_paths, is_case_file
from agentci.config.settings import Settings
from agentci.errors import EvaluatorError, InputError
from agentci.evaluators.checks.texts import find_secrets, select_rules
from agentci.evaluators.checks.trajectory import matches_calls
from agentci.evaluators.trajectory.expectation import RESERVED, read_trajectory
from agentci.evaluators.trajectory.matchers import PREFIX
from agentci.model.case import Case, EvalCase, EvalSet
from agentci.model.trace import ToolCall, Turn
from agentci.model.values import COMMAND_LINE, Json, JsonObject, Place, Problem, replace
from agentci.record.redaction import RecordingRedactor
from agentci.recordings import adk_eval_set
from agentci.recordings.adk_eval_set import read_eval_set
from agentci.reports.groups_and_totals import format_problem
from agentci.runner.load_configs import load_input_suite, load_suites, read_input_suites
from agentci.runner.load_eval_sets import (
    MAX_EVAL_SET_BYTES,
    NamedEvalSet,
    join_eval_sets,
    load_eval_sets,
)
from agentci.runner.load_inputs import find_recordings, read_recorded_runs
from agentci.runner.suite_files import LoadedSuite, find_eval_set_readers
from agentci.runner.unused_settings import find_unread_answers

ArgumentChoice: TypeAlias = Literal["exact", "keys", "none"]
ARGUMENT_CHOICES: Final[tuple[ArgumentChoice, ...]] = ("exact", "keys", "none")
# In place of an argument that holds a secret.
ANY_VALUE: Final[JsonObject] = {"$any": True}
MAX_ID_WORDS: Final = 6
MAX_ID: Final = 60

Redact: TypeAlias = Callable[[Json], Json]


class AcceptOptions(Struct, frozen=True, kw_only=True):
    """What is written of a run.

    Attributes:
        arguments: whether all of an argument is compared, only its name, or nothing.
        has_answers: whether answers are written.
        redact: removes secrets from a value.
    """

    arguments: ArgumentChoice
    has_answers: bool
    redact: Redact


def find_acceptance_problem(case: Case) -> str:
    """Explain why a run cannot be an eval case; empty if it can."""
    problems = [case.trace.not_captured, "" if case.trace.turns else "it has no turns"]
    for number, turn in enumerate(case.trace.turns, start=1):
        unknown = next((call.name for call in turn.tool_calls if call.args is None), None)
        if not turn.user_text.strip():
            problems.append(f"turn {number} has no question")
        if turn.final_text is None:
            problems.append(f"turn {number} has no answer")
        if not turn.tool_calls_recorded:
            problems.append(f"the tool calls of turn {number} were not recorded")
        if unknown is not None:
            problems.append(f"the arguments of {unknown} in turn {number} were not recorded")
    return next(filter(None, problems), "")


def find_remaining_secret(case: Case, options: AcceptOptions) -> str:
    """Name a secret that is left in what would be written; empty if there is none.

    An answer without its key would be expected with any key in it.
    """
    for number, turn in enumerate(case.trace.turns, start=1):
        if options.has_answers and REMOVED_KEY in f"{options.redact(turn.final_text or '')}":
            return f"{REMOVED_FROM_ANSWER} of turn {number}"
        texts = [turn.user_text, turn.final_text if options.has_answers else ""]
        if options.arguments == "exact":
            texts += [f"{options.redact(call.args)}" for call in turn.tool_calls]
        for text in texts:
            rule = next(find_secrets(f"{options.redact(text or '')}", SECRET_RULES), None)
            if rule is not None:
                return f"turn {number} has a secret ({rule})"
    return ""


def name_new_case(case: Case, taken: Sequence[str]) -> str:
    """Return an id that is not taken: the recorded one, else words of the first question."""
    words = re.findall(r"\w+", case.trace.turns[0].user_text.lower())[:MAX_ID_WORDS]
    named = case.trace.eval_case_id or truncate.short("_".join(words), MAX_ID) or "case"
    name, number = named, 1
    while name in taken:
        number += 1
        name = f"{named}-{number}"
    return name


def write_case(case_id: str, case: Case, options: AcceptOptions) -> JsonObject:
    """Return the eval case of a run, in agentci's own format."""
    turns = [_write_turn(turn, options) for turn in case.trace.turns]
    return {"id": case_id, **(turns[0] if len(turns) == 1 else {"turns": turns})}


def redact_turns(case: Case, options: AcceptOptions) -> tuple[Turn, ...]:
    """Return the turns of a run as an ADK eval set holds them."""
    return tuple(
        replace(
            turn,
            user_text=f"{options.redact(turn.user_text)}",
            answer_parts=(f"{options.redact(turn.final_text)}",) if options.has_answers else (),
            tool_calls=tuple(
                ToolCall(name=call.name, args=options.redact(call.args)) for call in turn.tool_calls
            ),
        )
        for turn in case.trace.turns
    )


def update_case(written: JsonObject, case: Case, options: AcceptOptions) -> JsonObject:
    """Return an eval case that expects what the run did.

    Calls that the run matches stay as they are written, with their matchers. What the case does
    not compare is not added.

    Raises:
        EvaluatorError: the run does not say enough to compare.
    """
    turns = written.get("turns")
    former = turns if isinstance(turns, list) else [written]
    kept = {key: value for key, value in written.items() if key not in ("input", "calls", "answer")}
    updated = [
        _update_turn(former[number], turn, options)
        if number < len(former)
        else _write_turn(turn, options)
        for number, turn in enumerate(case.trace.turns)
    ]
    if "turns" in kept or len(updated) > 1:
        own = {"id": kept.pop("id"), "turns": updated}
        return {**own, **{key: value for key, value in kept.items() if key != "turns"}}
    return {"id": kept.pop("id"), **updated[0], **kept}


def differs_from_eval_case(turns: Sequence[Turn], expected: EvalCase) -> bool:
    """Whether the calls or answers of a run are other than those of an ADK eval case."""
    return [_list_facts(turn) for turn in turns] != [_list_facts(turn) for turn in expected.turns]


def _list_facts(turn: Turn) -> tuple[Json, ...]:
    return turn.final_text, [[call.name, call.named_args] for call in turn.tool_calls]


def _write_turn(turn: Turn, options: AcceptOptions) -> JsonObject:
    answer = {"answer": options.redact(turn.final_text)} if options.has_answers else {}
    calls: list[Json] = [_write_call(call, options) for call in turn.tool_calls]
    return {"input": options.redact(turn.user_text), "calls": calls, **answer}


def _update_turn(written: Json, turn: Turn, options: AcceptOptions) -> JsonObject:
    former: JsonObject = written if isinstance(written, Mapping) else {}
    updated: dict[str, Json] = {"input": former.get("input", turn.user_text)}
    if "calls" in former:
        calls = former["calls"]
        if not matches_calls(read_trajectory(calls), turn):
            made: list[Json] = [_write_call(call, options) for call in turn.tool_calls]
            calls = {**calls, "calls": made} if isinstance(calls, Mapping) else made
        updated["calls"] = calls
    if "answer" in former:
        answer = options.redact(turn.final_text) if options.has_answers else former["answer"]
        updated["answer"] = answer
    return updated


def _write_call(call: ToolCall, options: AcceptOptions) -> Json:
    is_short = call.name not in RESERVED
    has_dollars = any(key.startswith(PREFIX) for key in call.named_args)
    if options.arguments == "none" or (options.arguments == "keys" and has_dollars):
        return call.name if is_short else {"tool": call.name}
    args: Json = {
        key: ANY_VALUE if options.arguments == "keys" else _write_value(value, options)
        for key, value in call.named_args.items()
    }
    if has_dollars:
        args = {"$literal": options.redact(call.named_args)}
    return {call.name: args} if is_short else {"tool": call.name, "args": args}


def _write_value(value: Json, options: AcceptOptions) -> Json:
    if options.redact(value) != value:
        return ANY_VALUE
    return {"$literal": value} if any(_list_dollar_keys(value)) else value


def _list_dollar_keys(value: Json) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            if key.startswith(PREFIX):
                yield key
            yield from _list_dollar_keys(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _list_dollar_keys(each)


OLD_FORM: Final = "an ADK test file in its old form is read, but not written"
OLD_FORM_HINT: Final = "convert it with ADK, or name a YAML file with --eval-set"
# What was removed is not written; `no_secrets` reports it in each run.
SECRET_RULES: Final = select_rules(("*",), ("removed-key",))
REMOVED_FROM_ANSWER: Final = "a key was removed from the answer"
REMOVED_HINT: Final = "let the agent answer without its key and record again, or pass --no-answers"
REDACT_HINT: Final = "a run has a secret; pass --redact REGEX to keep it out"
UNREAD_ANSWERS: Final = "; for answers add an evaluator: agentci's docs/eval-cases.md"
# Lines of a case that are shown around a change.
CONTEXT_LINES: Final = 2
NEW, CHANGED, SAME, REFUSED = "new", "changed", "unchanged", "refused"


class AcceptCommand(Struct, frozen=True, kw_only=True):
    """The options of the command.

    Attributes:
        names: ids of cases, with ``*`` and ``?``.
        every: whether all cases are accepted.
        update: whether changed eval cases are written.
        redact: regular expressions of what to keep out of eval cases.
        ask: asks a question and returns the answer; None without a terminal.
    """

    names: tuple[str, ...] = ()
    every: bool = False
    update: bool = False
    arguments: ArgumentChoice = "exact"
    has_answers: bool = True
    redact: tuple[str, ...] = ()
    ask: Callable[[str], str] | None = None


class _Candidate(Struct, frozen=True, kw_only=True):
    """A recorded run that may become an eval case.

    Attributes:
        state: NEW, CHANGED, SAME or REFUSED.
        file: of the run.
        target: the eval set that has the case, or gets it.
        reason: why it is refused; else empty.
        index: position of its case in the eval set; None for a case that is not there yet.
        edit: returns the text of the eval set with the case; None without a change.
    """

    id: str
    state: str
    file: str
    target: "_EvalSetFile"
    reason: str = ""
    index: int | None = None
    edit: Callable[[str], str] | None = None


class _EvalSetFile(Struct, frozen=True, kw_only=True):
    """An eval set to write, which may not exist yet."""

    path: ResolvedPath
    name: str
    text: str

    @property
    def is_own_format(self) -> bool:
        return is_case_file(self.name)

    @property
    def is_old_form(self) -> bool:
        """Whether it is an ADK test file that is only read."""
        return self.text.lstrip().startswith("[")

    def read(self, text: str) -> EvalSet | None:
        if not text.strip():
            return None
        with limit_input(self.name):
            data = text.encode()
            if self.is_own_format:
                return read_case_file(data, file=self.name).eval_set
            return read_eval_set(data, file=self.name)


def accept_cases(command: AcceptCommand, settings: Settings, session: Session) -> int:
    """Show what would be written of each run, and write what is accepted.

    Raises:
        InputError: there are no runs, the eval set is invalid, no run has a given name, or
            nothing says which of several changes are accepted.
    """
    workspace = session.services.workspace
    loaded = load_input_suite(settings, session.services)
    targets = _open_eval_sets(loaded, settings, workspace)
    redactor = RecordingRedactor(session.services.variables.redactor, command.redact)
    options = AcceptOptions(
        arguments=command.arguments, has_answers=command.has_answers, redact=redactor.redact
    )
    if command.arguments != "exact" and not all(each.is_own_format for each in targets):
        message = f"an ADK eval set holds whole arguments; --arguments {command.arguments} needs"
        raise InputError.from_message(f"{message} a YAML file", hint="pass --eval-set FILE.yaml")
    cases = _list_cases(loaded, targets, settings, session)
    found = list(_find_candidates(cases, targets, options))
    chosen = _choose(found, command)
    texts = {each.name: each.text for each in targets}
    written: list[_Candidate] = []
    for each in found:
        text = texts[each.target.name]
        changed = text if each.edit is None else each.edit(text)
        if not chosen or each.id in chosen:
            _show(each, text, changed, session)
        if _is_accepted(each, command, chosen):
            texts[each.target.name] = changed
            written.append(each)
    _write([each for each in targets if texts[each.name] != each.text], texts, workspace)
    shown = [each for each in found if not chosen or each.id in chosen]
    if not written:
        _check_choice(found, chosen, command)
    _summarize(shown, written, targets, session)
    accepted = [each for each in targets if any(one.target is each for one in written)]
    _print_lines(_describe_use(accepted, targets, loaded, command, settings, session), session)
    is_refused = any(each.state == REFUSED for each in shown)
    return 1 if is_refused and (chosen or not any(each.edit for each in found)) else 0


def _list_cases(
    loaded: LoadedSuite, targets: Sequence[_EvalSetFile], settings: Settings, session: Session
) -> Iterator[Case]:
    files = find_recordings(loaded, settings, session.services.workspace)
    runs = read_recorded_runs(
        files, loaded, _read_all(targets), settings, session.services, accepts_new=True
    )
    if runs.broken:
        raise InputError(runs.broken)
    yield from map(runs.matcher.make_case, runs.list_traces())


def _open_eval_sets(
    loaded: LoadedSuite, settings: Settings, workspace: Workspace
) -> tuple[_EvalSetFile, ...]:
    """Open the eval sets of the command line, else of the config; new cases go to the first."""
    paths: list[ResolvedPath] = []
    for named in settings.eval_sets:
        found = find_matching_paths(workspace.cwd, named) or (Path(named),)
        paths += [workspace.resolve_given(each, named=f"--eval-set {named}") for each in found]
    own = () if settings.eval_sets else (loaded.suite.eval_sets or (DEFAULT_EVAL_SET,))
    place = loaded.suite.place_of("eval_set")
    for named in own:
        folder = Path(loaded.locator.folder)
        found = find_matching_paths(folder, named) or (folder / named,)
        paths += [workspace.resolve(each, named=named, place=place) for each in found]
    targets = [
        _open_eval_set(path, workspace) for path in {each.path: each for each in paths}.values()
    ]
    if targets[0].is_old_form:
        place = Place(file=targets[0].name)
        raise InputError.from_message(OLD_FORM, place=place, hint=OLD_FORM_HINT)
    return tuple(targets)


def _open_eval_set(path: ResolvedPath, workspace: Workspace) -> _EvalSetFile:
    name = workspace.display_path(path.path)
    text = ""
    if is_file(path.path):
        data = read_file(path, name=name, limit_bytes=MAX_EVAL_SET_BYTES)
        text = decode_utf8(data, file=name)
    elif is_folder(path.path):
        hint = f"name a file to write, e.g. {name}/cases.yaml"
        raise InputError.from_message(f"{name} is a folder", hint=hint)
    elif "*" in path.path.name:
        raise InputError.from_message(f"no file matches {name}", hint="name a file to write")
    return _EvalSetFile(path=path, name=name, text=text)


def _read_all(targets: Sequence[_EvalSetFile]) -> EvalSet | None:
    read = (each.read(each.text) for each in targets)
    return join_eval_sets([each for each in read if each is not None])


def _find_candidates(
    cases: Iterator[Case], targets: Sequence[_EvalSetFile], options: AcceptOptions
) -> Iterator[_Candidate]:
    """Yield a candidate per eval case; further runs of the same case are left out."""
    owners = dict(_find_owners(targets))
    target = targets[0]
    seen: set[str] = set()
    dialogues: set[tuple[str, ...]] = set()
    for case in cases:
        problem = find_acceptance_problem(case) or find_remaining_secret(case, options)
        file = case.trace.place.file
        if case.expected is not None:
            name = case.expected.id
            if name in seen:
                continue
            seen.add(name)
            own, index = owners[name]
            yield _compare(case, index, own, options, problem)
            continue
        dialogue = tuple(turn.user_text for turn in case.trace.turns)
        named = case.trace.eval_case_id
        if problem and not case.trace.turns:
            yield _Candidate(
                id=named or case.id, state=REFUSED, file=file, target=target, reason=problem
            )
            continue
        # Cases that were recorded with ids of their own may ask the same.
        if (dialogue in dialogues) if named is None else (named in seen):
            continue
        dialogues.add(dialogue)
        name = name_new_case(case, [*owners, *seen])
        seen.add(name)
        yield _Candidate(
            id=name,
            state=REFUSED if problem else NEW,
            file=file,
            target=target,
            reason=problem,
            edit=None if problem else _make_addition(name, case, target, options),
        )


def _find_owners(
    targets: Sequence[_EvalSetFile],
) -> Iterator[tuple[str, tuple[_EvalSetFile, int]]]:
    """Yield the id of each case, its eval set, and its position in it."""
    for target in targets:
        eval_set = target.read(target.text)
        for index, case in enumerate(() if eval_set is None else eval_set.cases):
            yield case.id, (target, index)


def _make_addition(
    name: str, case: Case, target: _EvalSetFile, options: AcceptOptions
) -> Callable[[str], str]:
    if target.is_own_format:
        written = write_case(name, case, options)
        return lambda text: add_case(text, written, file=target.name)
    turns, stem = redact_turns(case, options), target.path.path.name.partition(".")[0]
    return lambda text: adk_eval_set.add_case(text, name, turns, set_id=stem)


def _compare(
    case: Case, index: int, target: _EvalSetFile, options: AcceptOptions, problem: str
) -> _Candidate:
    """Compare a run with its eval case, which is at ``index``."""
    name = "" if case.expected is None else case.expected.id
    file = case.trace.place.file
    edit: Callable[[str], str] | None = None
    is_new = False
    if not problem and target.is_own_format:
        former = list_written_cases(target.text, file=target.name)[index]
        is_new = _only_asks(former)
        try:
            updated = (
                write_case(name, case, options) if is_new else update_case(former, case, options)
            )
        except EvaluatorError as error:
            problem = f"{error}"
        else:
            if updated != former:
                edit = lambda text: replace_case(text, index, updated, file=target.name)  # noqa: E731
    elif not problem and case.expected is not None:
        turns = redact_turns(case, options)
        if differs_from_eval_case(turns, case.expected) and target.is_old_form:
            problem = f"{target.name}: {OLD_FORM}"
        elif differs_from_eval_case(turns, case.expected):
            edit = lambda text: adk_eval_set.replace_case(text, index, turns)  # noqa: E731
    changed = NEW if is_new else CHANGED
    state = REFUSED if problem else SAME if edit is None else changed
    return _Candidate(
        id=name, state=state, file=file, reason=problem, index=index, edit=edit, target=target
    )


def _only_asks(written: JsonObject) -> bool:
    """Whether an eval case expects nothing yet."""
    turns = written.get("turns")
    if not isinstance(turns, list):
        return written.keys() == {"id", "input"}
    is_question = (isinstance(each, Mapping) and each.keys() == {"input"} for each in turns)
    return written.keys() == {"id", "turns"} and all(is_question)


def _choose(found: Sequence[_Candidate], command: AcceptCommand) -> frozenset[str]:
    """Return the ids of the cases that are named, or of all.

    Raises:
        InputError: a name is that of no case.
    """
    ids = [each.id for each in found]
    if command.every:
        return frozenset(ids)
    chosen: set[str] = set()
    for name in command.names:
        matching = {each for each in ids if each == name or fnmatchcase(each, name)}
        if not matching:
            hint = suggest_name(name, ids) or f"cases: {', '.join(ids)}"
            raise InputError.from_message(f"no run of a case {quote_name(name)}", hint=hint)
        chosen |= matching
    return frozenset(chosen)


def _is_accepted(candidate: _Candidate, command: AcceptCommand, chosen: frozenset[str]) -> bool:
    if candidate.edit is None or (candidate.state == CHANGED and not command.update):
        return False
    if command.every or command.names:
        return candidate.id in chosen
    if command.ask is None:
        return False
    return command.ask(f"Accept {candidate.id}? [y/N] ").strip().lower() in ("y", "yes")


def _check_choice(
    found: Sequence[_Candidate], chosen: frozenset[str], command: AcceptCommand
) -> None:
    """Check that the command line names what to accept, if there is anything to accept.

    Raises:
        InputError: it does not.
    """
    waiting = [
        each for each in found if each.edit is not None and (each.id in chosen or not chosen)
    ]
    changed = [each.id for each in waiting if each.state == CHANGED]
    if chosen and changed:
        names = ", ".join(f"`{each}`" for each in changed)
        message = f"no case accepted: the calls or answers of {names} changed"
        raise InputError.from_message(message, hint="pass --update to accept the new ones")
    if waiting and not chosen and command.ask is None:
        message = "no case accepted: there is no terminal to ask in"
        hint = "name cases, or pass --all" + (", and --update for changed ones" if changed else "")
        raise InputError.from_message(message, hint=hint)


def _show(candidate: _Candidate, before: str, after: str, session: Session) -> None:
    reason = f": {candidate.reason}" if candidate.reason else ""
    title = escape_for_log_line(f"{candidate.state}: {candidate.id} ({candidate.file}){reason}")
    lines = [title]
    own, changed = before.splitlines(), after.splitlines()
    if candidate.index is not None and candidate.target.is_own_format and candidate.edit:
        # Without the cases around it.
        name = candidate.target.name
        first, last, _ = find_case_lines(before, candidate.index, file=name)
        own, changed = own[first:last], changed[first : len(changed) - len(own) + last]
    context = 0 if candidate.index is None else CONTEXT_LINES
    diff = list(unified_diff(own, changed, n=context, lineterm=""))[2:]
    lines += [f"  {escape_for_log(line)}" for line in diff if not line.startswith("@@")]
    write_to_stream(neutralize_commands("\n".join(lines) + "\n"), session.out)


def _write(targets: Sequence[_EvalSetFile], texts: Mapping[str, str], workspace: Workspace) -> None:
    """Write eval sets, after reading what is written.

    Raises:
        InputError: one cannot be written.
    """
    for each in targets:
        each.read(texts[each.name])
    for each in targets:
        try:
            make_folder(each.path.path.parent, workspace.root)
            write_file_atomically(each.path.path, texts[each.name].encode(), owner=workspace.root)
        except OSError as error:
            message = f"{each.name} cannot be written: {error.strerror}"
            raise InputError.from_message(message) from None


def _summarize(
    found: Sequence[_Candidate],
    written: Sequence[_Candidate],
    targets: Sequence[_EvalSetFile],
    session: Session,
) -> None:
    numbers = Counter(each.target.name for each in written)
    lines = [
        f"Accepted {format_count(number, 'case')} in {name}" for name, number in numbers.items()
    ]
    if not written:
        names = " and ".join(each.name for each in targets)
        lines = [f"No case accepted; {names} {'is' if len(targets) == 1 else 'are'} unchanged"]
    changed = [each for each in found if each.state == CHANGED and each not in written]
    if changed and written:
        names = ", ".join(each.id for each in changed)
        lines.append(f"changed: {names}; pass --update to accept the new calls and answers")
    lines += map(_advise_on_refusal, (each for each in found if each.state == REFUSED))
    _print_lines(dict.fromkeys(lines), session)


def _advise_on_refusal(refused: _Candidate) -> str:
    if OLD_FORM in refused.reason:
        return f"{refused.target.name}: {OLD_FORM_HINT}"
    if refused.reason.startswith(REMOVED_FROM_ANSWER):
        return f"{REMOVED_FROM_ANSWER}: {REMOVED_HINT}"
    if "has a secret" in refused.reason:
        return REDACT_HINT
    return f"refused runs must be recorded again; see `agentci show {shlex.quote(refused.file)}`"


def _describe_use(
    accepted: Sequence[_EvalSetFile],
    targets: Sequence[_EvalSetFile],
    loaded: LoadedSuite,
    command: AcceptCommand,
    settings: Settings,
    session: Session,
) -> Iterator[str]:
    """Yield what compares the accepted cases, or what is missing for that.

    Args:
        accepted: the eval sets to which cases were written.
        targets: all eval sets; without an accepted case, only what is missing for them is named.
    """
    workspace, run = session.services.workspace, "agentci run"
    suites: Sequence[LoadedSuite] = ()
    with suppress(InputError):
        suites = load_suites(settings, session.services)
    if loaded.suite.file == COMMAND_LINE.file:
        paths = (os.path.relpath(each.path.path, workspace.cwd) for each in accepted)
        run = shlex.join([*run.split(), *(word for each in paths for word in ("--eval-set", each))])
    else:
        readers = find_eval_set_readers(
            suites or read_input_suites(settings, session.services), workspace
        )
        unread = [
            each
            for each in accepted or targets
            if each.path.path not in readers and is_file(each.path.path)
        ]
        for each in unread:
            yield format_problem(_make_unread_problem(each, loaded, workspace))
        if unread:
            return
    if command.has_answers and any(each.is_own_format for each in accepted):
        named = [NamedEvalSet(path=each.path, place=COMMAND_LINE) for each in accepted]
        are_read = False
        with suppress(InputError):
            eval_set = load_eval_sets(named, workspace)
            are_read = any(not [*find_unread_answers(each.suite, eval_set)] for each in suites)
        yield f"`{run}` compares their calls{' and answers' if are_read else UNREAD_ANSWERS}"


def _make_unread_problem(
    eval_set: _EvalSetFile, loaded: LoadedSuite, workspace: Workspace
) -> Problem:
    path = eval_set.path.path
    named = os.path.relpath(path, loaded.locator.folder)
    hint = f"add `eval_set: {named}`"
    if loaded.suite.eval_sets:
        hint = f"add {named} to `eval_set`"
    elif not path.is_relative_to(workspace.root):
        hint = f"pass `--eval-set {path}` to `agentci run`"
    return Problem(
        message=f"no config reads {eval_set.name}, so that no run is compared with its cases",
        place=loaded.suite.place,
        hint=hint,
        severity="warning",
    )


def _print_lines(lines: Iterable[str], session: Session) -> None:
    write_to_stream("".join(f"{escape_for_log_line(line)}\n" for line in lines), session.out)
