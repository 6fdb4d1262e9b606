"""Find config files by name, folder or glob, detect their kind, and name the files of outputs."""

import glob
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import count
from pathlib import Path, PurePath
from typing import Final

from agentci._util.text.suggest import find_nearest, quote_name
from agentci._util.workspace import ResolvedPath, Workspace, is_file, is_folder
from agentci.config.yaml_document import YamlDocument
from agentci.errors import InputError
from agentci.model.values import COMMAND_LINE, Json, Place, Problem
from agentci.recordings.registry import EVAL_SET_KEYS

# All names that AgentV versions have used for the list of cases.
CASE_KEYS: Final = ("evalcases", "cases", "eval_cases", "tests")
# Keys that also hold cases, or name files of them, since AgentV 5.
CASE_SOURCE_KEYS: Final = (*CASE_KEYS, "scenarios", "imports")
# The key for cases in agentci's own format, the keys of a case, and those that AgentV has not.
OWN_CASES_KEY: Final = "eval_cases"
OWN_EXPECTATION_KEYS: Final = frozenset({"calls", "answer", "checks"})
OWN_CASE_KEYS: Final = frozenset({"id", "input", "turns", *OWN_EXPECTATION_KEYS})
# The key for the cases in `evals.json` of Agent Skills.
SKILL_CASES_KEY: Final = "evals"

TRACE_FILE_KEYS: Final = frozenset({"resourceSpans", "batches", "data", "spanId", "traceId"})

TRACE_FILE_HINT: Final = (
    "this is a recorded run: list it as `traces` of a config, or pass it with --traces"
)


# Some of those in results.json.
REPORT_KEYS: Final = frozenset({"schema_version", "decision", "totals"})
EVALUATOR_KEYS: Final = ("evaluators", "checks")
# A config has at least one of them, or a file of eval cases, which may have checks of their own.
CONFIG_KEYS: Final = (*EVALUATOR_KEYS, "results")
EVAL_SET_KEY: Final = "eval_set"
# Where `agentci init` and `agentci accept` write eval cases, unless the config names an eval set.
DEFAULT_EVAL_SET: Final = "evals/cases.yaml"
CASE_FILE_SUFFIXES: Final = (".yaml", ".yml")


def is_case_file(name: object) -> bool:
    """Whether a file is an eval set in agentci's own format, by its name."""
    return isinstance(name, str) and name.endswith(CASE_FILE_SUFFIXES)


def may_be_case_file(pattern: object) -> bool:
    """Whether a path or glob may be that of such a file."""
    return is_case_file(pattern) or (isinstance(pattern, str) and pattern.endswith("*"))


def is_eval_file(document: YamlDocument) -> bool:
    """Whether the file lists cases but no evaluators or checks, and is not an eval set."""
    keys = document.data.keys()
    if not keys.isdisjoint(EVALUATOR_KEYS) or _is_eval_set(document):
        return False
    return not keys.isdisjoint((*CASE_SOURCE_KEYS, SKILL_CASES_KEY))


def _is_eval_set(document: YamlDocument) -> bool:
    """Whether the file is an eval set of ADK, or one of agentci's own, which AgentV cannot run."""
    if not document.data.keys().isdisjoint(EVAL_SET_KEYS):
        return True
    cases = document.data.get(OWN_CASES_KEY)
    if document.data.keys() != {OWN_CASES_KEY} or not isinstance(cases, list):
        return False
    keys = {key for case in cases if isinstance(case, Mapping) for key in case}
    return bool(keys) and (keys <= OWN_CASE_KEYS or not keys.isdisjoint(OWN_EXPECTATION_KEYS))


def make_eval_set_error(file: str) -> InputError:
    """The error of an eval set that is given as a config."""
    return InputError.from_message(
        "the file is an eval set, not a config",
        place=Place(file=file),
        hint=f"name it as `eval_set:` of a config, or pass it with `--eval-set {file}`",
    )


def reject_eval_set(document: YamlDocument) -> None:
    """Check that a config is not an eval set.

    Raises:
        InputError: it is one.
    """
    if _is_eval_set(document):
        raise make_eval_set_error(document.file)


def check_eval_config(document: YamlDocument) -> None:
    """Check that a file is an eval config, with evaluators, checks or results.

    Raises:
        InputError: the file is an eval set, has no evaluators, or lists cases like an AgentV eval
            file.
    """
    keys = document.data.keys()
    reject_eval_set(document)
    case_keys = [key for key in CASE_KEYS if key in keys]
    own_keys = [key for key in EVALUATOR_KEYS if key in keys]
    if keys >= REPORT_KEYS:
        raise InputError.from_message(
            "the file is a report of agentci, not a config",
            place=Place(file=document.file),
            hint="pass it to `agentci show`, `merge` or `compare`",
        )
    if own_keys and case_keys:
        raise InputError.from_message(
            f"the file is both an eval config (`{own_keys[0]}`) and an eval file "
            f"(`{case_keys[0]}`)",
            place=Place(file=document.file),
            hint="split it into two files; evaluators for all cases of an eval file belong below "
            "`execution`",
        )
    if keys.isdisjoint(CONFIG_KEYS) and not _names_case_file(document.data.get(EVAL_SET_KEY)):
        raise InputError.from_message(
            "the file has no `evaluators`, `checks` or `results`",
            place=Place(file=document.file),
            hint=_find_similar_key(keys),
        )


def _names_case_file(eval_set: Json) -> bool:
    return any(map(may_be_case_file, eval_set if isinstance(eval_set, list) else [eval_set]))


def _find_similar_key(keys: AbstractSet[str]) -> str:
    if EVAL_SET_KEY in keys:
        return "add `evaluators:` or `checks:`; ADK eval sets have no checks of their own"
    for key in keys:
        if meant := find_nearest(key, (*EVALUATOR_KEYS, *CASE_KEYS)):
            return f"did you mean `{meant}` instead of {quote_name(key)}?"
    if TRACE_FILE_KEYS & keys:
        return TRACE_FILE_HINT
    if old := [key for key in ("custom_evaluators", "metrics") if key in keys]:
        return f"`{old[0]}` of older configs is now part of `evaluators`"
    return (
        "for a config add `evaluators:` or `checks:`, such as `checks: [no_secrets]`; for an eval "
        "file `tests:`"
    )


CONFIG_NAMES = ("agentci.yaml", "eval_config.yaml")
CONFIG_FOLDER = ".agentci"
CONFIG_SUFFIX = ".eval"
CONFIG_PATTERNS = "agentci.yaml, eval_config.yaml, .agentci/*.yaml, **/*.eval.yaml"
SKIPPED_FOLDERS = frozenset(
    {"node_modules", "vendor", "third_party", "venv", "site-packages", "__pycache__"}
)


def find_configs(
    given: Sequence[str], workspace: Workspace
) -> tuple[tuple[Path, ...], tuple[Problem, ...]]:
    """Find configs by file, folder or glob; by default, all below the working directory.

    Returns:
        The configs found, and a problem for each argument that is missing or may not be read.
    """
    found: dict[str, Path] = {}
    problems: list[Problem] = []
    for text in given or (".",):
        configs: list[Path] = []
        for path in find_matching_paths(workspace.cwd, text):
            if is_folder(path):
                configs += _find_configs_in(path)
            else:
                configs.append(path)
        if not configs:
            problems.append(_no_config_problem(text, workspace))
        for config in configs:
            try:
                workspace.resolve_given(config)
            except InputError as error:
                problems += error.problems
            else:
                found.setdefault(workspace.display_path(config), config)
    return tuple(found.values()), tuple(problems)


def find_matching_paths(
    base: Path, pattern: str, *, folders: list[Path] | None = None
) -> tuple[Path, ...]:
    """Find paths below ``base`` by literal name or by glob, sorted.

    An existing name is taken literally, so that files with ``[`` in their names are found. A file
    named ``*`` is only listed first; otherwise it would hide all other matches. Folders are found
    by literal name only. ``**`` descends to any depth but follows no links, which may form cycles.

    Args:
        folders: gets the folders that a glob without ``**`` matches and that are left out.
    """
    literal = base / pattern
    if is_folder(literal):
        return (literal,)
    found = {Path("/") if pattern.startswith("/") else base}
    parts = [part for part in pattern.split("/") if part]
    for part in (*parts, "*") if parts[-1:] == ["**"] else parts:
        found = {path for folder in found for path in _match_step(folder, part)}
    files = [path for path in found if not is_folder(path)]
    if folders is not None and len(files) < len(found) and "**" not in parts:
        folders += sorted(found.difference(files))
    return tuple(sorted(files, key=lambda path: (path != literal, path)))


def find_given_files(
    patterns: Sequence[str], workspace: Workspace, *, folders: list[Path] | None = None
) -> dict[str, tuple[ResolvedPath, ...]]:
    """The files of the command line, by pattern.

    Args:
        folders: as for ``find_matching_paths``.

    Raises:
        InputError: a link in the workspace leads out of it.
    """
    return {
        each: tuple(
            workspace.resolve_given(path, named=each, place=COMMAND_LINE)
            for path in find_matching_paths(workspace.cwd, each, folders=folders)
        )
        for each in patterns
    }


def _match_step(folder: Path, part: str) -> Iterator[Path]:
    """The paths in ``folder`` that match one part of a pattern."""
    if part == "**":
        yield from _walk_folders(folder)
    elif os.path.lexists(folder / part) and not {"*", "?"} & set(part):
        yield folder / part
    else:
        names = glob.iglob(part, root_dir=folder)  # noqa: PTH207 (skips hidden files, never raises)
        yield from (folder / name for name in names)


def _walk_folders(folder: Path, *, skipped: frozenset[str] = frozenset()) -> Iterator[Path]:
    """Yield ``folder`` and all folders below it by name, without hidden folders and links."""
    waiting = [folder]
    while waiting:
        parent = waiting.pop()
        yield parent
        with suppress(OSError), os.scandir(parent) as entries:
            names = (each.name for each in entries if each.is_dir(follow_symlinks=False))
            shown = (name for name in names if not name.startswith(".") and name not in skipped)
            waiting += (parent / name for name in sorted(shown, reverse=True))


def _no_config_problem(text: str, workspace: Workspace) -> Problem:
    where = "the working directory" if text == "." else workspace.display_path(workspace.cwd / text)
    if is_folder(workspace.cwd / text):
        named = [Path(text) / each for each in CONFIG_NAMES]
        if Path(text).suffix in CASE_FILE_SUFFIXES:
            named.insert(0, Path(text))
        if folder := next((each for each in named if is_folder(workspace.cwd / each)), None):
            message = f"{workspace.display_path(workspace.cwd / folder)} is a folder"
            return Problem(
                message=message, hint="name a config in it, or put a config in its place"
            )
        misnamed = next(_find_configs_in(workspace.cwd / text, extension=".yml"), None)
        if misnamed is not None:
            name = workspace.display_path(misnamed)
            return Problem(
                message=f"no config found in {where}",
                hint=f"rename {name} to {name.removesuffix('.yml')}.yaml, or pass its path",
            )
        return Problem(
            message=f"no config found in {where}",
            hint=(
                f"looked for {CONFIG_PATTERNS}; `agentci init` writes one, or pass the path of a "
                "config, or --metric"
            ),
        )
    if "*" in text:
        return Problem(message=f"no config matches {where}", hint="check the glob")
    return Problem(message=f"{where} does not exist", hint="pass the path of a config")


def _find_configs_in(folder: Path, extension: str = ".yaml") -> Iterator[Path]:
    for name in CONFIG_NAMES:
        path = (folder / name).with_suffix(extension)
        if is_file(path):
            yield path
    yield from find_matching_paths(folder, f"{CONFIG_FOLDER}/*{extension}")
    for parent in _walk_folders(folder, skipped=SKIPPED_FOLDERS):
        yield from find_matching_paths(parent, f"*{CONFIG_SUFFIX}{extension}")


# Endings of output files, after the name of the eval file.
OUTPUT_SUFFIXES: Final = (".outputs.jsonl", ".outputs.json")
EVAL_FILE_SUFFIXES: Final = (".eval.yaml", ".eval.yml", ".yaml", ".yml", ".jsonl")


def get_eval_file_stem(name: str) -> str:
    """The name of an eval file without its suffix."""
    bare = (name.removesuffix(each) for each in EVAL_FILE_SUFFIXES if name.endswith(each))
    return next(bare, PurePath(name).stem)


def make_output_names(configs: Iterable[str]) -> Mapping[str, str]:
    """The name of the output file of each config; equal names are numbered."""
    names: dict[str, str] = {}
    for config in dict.fromkeys(configs):
        stem = get_eval_file_stem(PurePath(config).name)
        numbered = (
            f"{stem}{'' if number == 1 else f'-{number}'}{OUTPUT_SUFFIXES[0]}"
            for number in count(1)
        )
        names[config] = next(name for name in numbered if name not in names.values())
    return names
