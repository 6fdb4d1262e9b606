"""Insert parts of an eval file from other files: cases, included evaluators, custom types."""

import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct, field

from agentci._util.text.json_text import is_shallow
from agentci.config import yaml_nodes
from agentci.config.agentv.case_formats import parse_csv_cases
from agentci.config.agentv.evaluators import make_unique_name
from agentci.config.agentv.files import FileResolver, ReferencedFile
from agentci.config.discovery import CASE_KEYS, TRACE_FILE_HINT
from agentci.config.yaml_document import YamlDocument, make_document, read_tree
from agentci.config.yaml_nodes import (
    MappingEntry,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    plain_data,
)
from agentci.config.yaml_parse import MAX_DEPTH
from agentci.errors import InputError, RecordingError
from agentci.evaluators.agentv.registry import AGENTV_TYPES, UNSUPPORTED_TYPES, normalize_type_name
from agentci.model.values import Place, Problem, replace
from agentci.recordings.json_documents import (
    INVALID_JSON_HINT,
    Document,
    make_nesting_error,
    read_documents,
)
from agentci.recordings.registry import is_recording

# The key for cases from JSON Lines in AgentV 2 and in AgentV 4, which has assertions.
SEED_CASES_KEY: Final = "cases"
V4_CASES_KEY: Final = "tests"
V4_KEYS: Final = ("assertions", "assert")
JSONL_HINT: Final = "each line must be one case as JSON, without comments"


def read_jsonl(data: bytes, *, file: str, sidecar: YamlDocument | None) -> YamlDocument:
    """Read a JSON Lines eval file as if it were YAML.

    It is read as AgentV 4 if it or its sidecar uses the keys of that version.

    Args:
        sidecar: the YAML file with settings for all cases; its positions are kept.

    Raises:
        InputError: a line is not JSON, the sidecar lists cases, or the file is a recorded run.
    """
    if is_recording(data):
        message = "the file has no cases"
        raise InputError.from_message(message, place=Place(file=file), hint=TRACE_FILE_HINT)
    cases = parse_json_lines(data, file=file)
    shared = {} if sidecar is None else dict(sidecar.root.fields)
    if own := [shared[key] for key in CASE_KEYS if key in shared]:
        raise InputError.from_message(
            f"this file and {file} both have cases",
            place=own[0].place,
            hint=f"run this file instead of {file}, or remove its cases",
        )
    parts = (*cases.items, *(() if sidecar is None else (sidecar.root,)))
    is_v4 = any(yaml_nodes.find_value(part, key) is not None for part in parts for key in V4_KEYS)
    key = V4_CASES_KEY if is_v4 else SEED_CASES_KEY
    root = yaml_nodes.make_mapping_from_entries(
        {**shared, key: MappingEntry(place=cases.place, value=cases)}, cases.place
    )
    return make_document(root, file=file, problems=() if sidecar is None else sidecar.problems)


def parse_json_lines(data: bytes, *, file: str) -> SequenceNode:
    """Parse the cases of a JSON Lines file, one per line.

    Raises:
        InputError: a line is not JSON, or there are no lines.
    """
    top = Place(file=file)
    data = data.removeprefix(BOM_UTF8)
    if not data.strip():
        raise InputError.from_message("the file has no cases", place=top)
    try:
        read = [_make_case_node(each, file) for each in read_documents(iter([data]), file=file)]
    except RecordingError as error:
        is_broken = error.problem.hint == INVALID_JSON_HINT
        problem = replace(error.problem, hint=JSONL_HINT) if is_broken else error.problem
        raise InputError([problem]) from None
    return yaml_nodes.make_sequence(read, top)


def _make_case_node(document: Document, file: str) -> Node:
    if not is_shallow(document.value, MAX_DEPTH):
        raise make_nesting_error(file, document.line)
    return yaml_nodes.make_node(document.value, Place(file=file, line=document.line))


URL_PREFIX: Final = "file://"
JSONL_EXTENSION: Final = ".jsonl"
CSV_EXTENSION: Final = ".csv"
# A program that makes cases, with the name of its function.
CASES_PROGRAM: Final = re.compile(r"(?P<path>.*\.(?:mjs|cjs|js|mts|cts|ts|py))(?::[^/:]+)?")
# Other keys with cases, since AgentV 5.
SCENARIOS_KEY: Final = "scenarios"
IMPORTS_KEY: Final = "imports"
SUITE_HINT: Final = "run those eval files as well: `agentci run FILE FILE`"
# How a scenario's row and its test are joined; of all other keys, the test's value counts.
JOINED_KEYS: Final = ("vars", "metadata", "assert")


class ExternalCases(Struct, kw_only=True):
    """Reads the cases that an eval file keeps in other files.

    Attributes:
        problems: errors in those files.
    """

    files: FileResolver
    problems: list[Problem] = field(default_factory=list)

    def collect(self, root: MappingNode) -> MappingNode:
        """Add the cases of `scenarios` and `imports` to `tests`."""
        sources = [root.fields[key] for key in (SCENARIOS_KEY, IMPORTS_KEY) if key in root.fields]
        if not sources:
            return root
        own = yaml_nodes.find_value(root, V4_CASES_KEY)
        expanded = () if own is None else self.expand(own)
        found = [*(expanded.items if isinstance(expanded, SequenceNode) else ())]
        found += self._read_imports(yaml_nodes.find_value(root, IMPORTS_KEY))
        found += self._join_scenarios(yaml_nodes.find_value(root, SCENARIOS_KEY))
        fields = {
            key: each
            for key, each in root.fields.items()
            if key not in (SCENARIOS_KEY, IMPORTS_KEY)
        }
        place = (sources[0] if own is None else root.fields[V4_CASES_KEY]).place
        fields[V4_CASES_KEY] = MappingEntry(
            place=place, value=yaml_nodes.make_sequence(found, place)
        )
        return yaml_nodes.make_mapping_from_entries(fields, root.place)

    def _read_imports(self, imports: Node | None) -> Iterator[Node]:
        suites = yaml_nodes.find_value(imports, "suites")
        if suites is not None:
            self._warn("`imports.suites` has no effect", suites.place, SUITE_HINT)
        listed = yaml_nodes.find_value(imports, V4_CASES_KEY)
        for each in _list_items(listed):
            yield from self._read_import(each, "path")

    def _read_import(self, entry: Node, key: str) -> Iterator[Node]:
        """Read the files of cases that an entry names, as a text or with ``key``."""
        named = yaml_nodes.find_value(entry, key) if isinstance(entry, MappingNode) else entry
        if yaml_nodes.find_value(entry, "select") is not None:
            hint = "all cases are evaluated; select some with --case and --tag"
            self._warn("`select` has no effect", entry.place, hint)
        if isinstance(named, ScalarNode) and isinstance(named.value, str) and named.value.strip():
            yield from self._read_files(named.value, named)
        else:
            self._add_error("an import needs the `path` of a file of cases", entry.place)

    def _join_scenarios(self, scenarios: Node | None) -> Iterator[Node]:
        """Each row of a scenario's `config` with each of its `tests`, as in AgentV."""
        listed = (each for item in _list_items(scenarios) for each in self._read_scenarios(item))
        taken: set[str] = set()
        for number, scenario in enumerate(listed, start=1):
            parts = (yaml_nodes.find_value(scenario, key) for key in ("config", V4_CASES_KEY))
            match [*parts]:
                case [SequenceNode() as rows, SequenceNode() as tests]:
                    yield from _join_rows(rows, tests, number, taken)
                case _:
                    message = "a scenario needs the lists `config` and `tests`"
                    self._add_error(message, scenario.place)

    def _read_scenarios(self, item: Node) -> Iterator[Node]:
        if not isinstance(item, ScalarNode):
            yield item
            return
        try:
            sources = self.files.cases(str(item.value).removeprefix(URL_PREFIX), item.place)
        except InputError as error:
            self.problems += error.problems
            return
        for source in sources:
            root, problems = read_tree(source.data, file=source.file)
            self.problems += problems
            yield from _list_items(yaml_nodes.find_value(root, SCENARIOS_KEY) or root)

    def _warn(self, message: str, place: Place, hint: str) -> None:
        self.problems.append(Problem(message=message, place=place, hint=hint, severity="warning"))

    def _add_error(self, message: str, place: Place, hint: str | None = None) -> None:
        self.problems.append(Problem(message=message, place=place, hint=hint))

    def expand(self, cases: Node) -> Node:
        """Replace paths in the list ``cases`` with the cases they name; keep other nodes."""
        match cases:
            case ScalarNode(value=str(named)) if named.strip():
                return yaml_nodes.make_sequence(self._read_files(named, cases), cases.place)
            case SequenceNode():
                return yaml_nodes.make_sequence(
                    (each for item in cases.items for each in self._expand_item(item)), cases.place
                )
            case _:
                return cases

    def _expand_item(self, item: Node) -> Iterator[Node]:
        if isinstance(item, ScalarNode) and isinstance(item.value, str) and item.value.strip():
            yield from self._read_files(item.value, item)
        elif yaml_nodes.find_value(item, INCLUDE_KEY) is None:
            yield item
        elif yaml_nodes.find_text(item, "type") == "suite":
            self._warn("an included eval file has no effect", item.place, SUITE_HINT)
        else:
            yield from self._read_import(item, INCLUDE_KEY)

    def _read_files(self, named: str, node: ScalarNode) -> Iterator[Node]:
        """Read the cases of all files that match ``named``."""
        named = named.removeprefix(URL_PREFIX)
        if program := CASES_PROGRAM.fullmatch(named):
            hint = "save the cases that it makes as .json or .jsonl, and name that file"
            message = f"the cases of program {program['path']} are not read: no program makes cases"
            self._add_error(message, node.place, hint=hint)
            return
        try:
            sources = self.files.cases(named, node.place)
        except InputError as error:
            self.problems += error.problems
            return
        for source in sources:
            try:
                yield from self._read_file(source)
            except InputError as error:
                self.problems += error.problems

    def _read_file(self, source: ReferencedFile) -> Iterator[Node]:
        if source.file.endswith(JSONL_EXTENSION):
            yield from parse_json_lines(source.data, file=source.file).items
            return
        if source.file.endswith(CSV_EXTENSION):
            folder = self.files.folder(None, Place(file=source.file))
            yield from parse_csv_cases(
                source.data, file=source.file, path=source.path, folder=folder
            ).items
            return
        root, problems = read_tree(source.data, file=source.file)
        self.problems += problems
        inner = yaml_nodes.find_value(root, V4_CASES_KEY) if source.file.endswith(".json") else None
        listed = root if inner is None else inner
        if source.case_id is not None:
            yield _with_folder_id(root, source.case_id)
        elif isinstance(listed, SequenceNode):
            yield from listed.items
        else:
            raise InputError.from_message(
                "a file of cases must be a list",
                place=root.place,
                hint="pass eval files to `agentci run` separately",
            )


def _with_folder_id(case: Node, folder: str) -> Node:
    """A case with the name of its folder as its id, unless it has one."""
    if not isinstance(case, MappingNode) or yaml_nodes.find_value(case, "id") is not None:
        return case
    return yaml_nodes.replace_values(case, {"id": yaml_nodes.make_node(folder, case.place)})


def _list_items(node: Node | None) -> tuple[Node, ...]:
    """The items of a list; a single value is its only item."""
    if isinstance(node, SequenceNode):
        return node.items
    return () if node is None else (node,)


def _join_rows(
    rows: SequenceNode, tests: SequenceNode, scenario: int, taken: set[str]
) -> Iterator[Node]:
    """Join each row with each test.

    Args:
        taken: the ids so far; a repeated one gets a number.
    """
    for row_number, row in enumerate(rows.items, start=1):
        for number, test in enumerate(tests.items, start=1):
            if not isinstance(row, MappingNode) or not isinstance(test, MappingNode):
                yield test
                continue
            own, shared = (yaml_nodes.find_text(each, "id") for each in (test, row))
            ending = f"__scenario_test_{number}" if len(tests.items) > 1 else ""
            default = f"scenario-{scenario}-{row_number}-{number}"
            name = own or (f"{shared}{ending}" if shared else default)
            name = make_unique_name(name, taken)
            taken.add(name)
            case = yaml_nodes.replace_values(row, _join_values(row, test))
            yield yaml_nodes.replace_values(case, {"id": yaml_nodes.make_node(name, test.place)})


def _join_values(row: MappingNode, test: MappingNode) -> dict[str, Node]:
    """The values of ``test``, joined with those of ``row`` where both count."""
    values = {key: each.value for key, each in test.fields.items()}
    for key in JOINED_KEYS:
        match (yaml_nodes.find_value(row, key), values.get(key)):
            case (MappingNode() as shared, MappingNode() as own):
                inner = {name: each.value for name, each in own.fields.items()}
                values[key] = yaml_nodes.replace_values(shared, inner)
            case (SequenceNode() as shared, SequenceNode() as own):
                values[key] = yaml_nodes.make_sequence((*shared.items, *own.items), own.place)
            case _:
                pass
    return values


INCLUDE_KEY: Final = "include"
INCLUDED_LIST_KEYS: Final = V4_KEYS
# The same limit as in AgentV.
MAX_INCLUDE_DEPTH: Final = 3


class IncludedEvaluators(Struct, kw_only=True):
    """Expands `include` entries in lists of evaluators.

    Attributes:
        problems: errors in the included files.
    """

    files: FileResolver
    problems: list[Problem] = field(default_factory=list)

    def expand(self, entries: Node, *, chain: tuple[str, ...] = ()) -> Node:
        """Expand all `include` entries in the list ``entries``; keep other nodes.

        Args:
            chain: absolute paths of the files that led to this list.
        """
        if not isinstance(entries, SequenceNode):
            return entries
        written = (each for entry in entries.items for each in self._expand_entry(entry, chain))
        return yaml_nodes.make_sequence(written, entries.place)

    def _expand_entry(self, entry: Node, chain: tuple[str, ...]) -> Iterator[Node]:
        named = yaml_nodes.find_value(entry, INCLUDE_KEY)
        if not isinstance(entry, MappingNode) or named is None or len(entry.fields) > 1:
            yield entry
            return
        try:
            yield from self._read_included(named, chain)
        except InputError as error:
            self.problems += error.problems

    def _read_included(self, named: Node, chain: tuple[str, ...]) -> tuple[Node, ...]:
        if not isinstance(named, ScalarNode) or not isinstance(named.value, str) or not named.value:
            raise InputError.from_message("`include` must be the name of a file", place=named.place)
        source = self.files.template(named.value, named.place, beside=chain[-1] if chain else None)
        if source.path in chain:
            raise _make_include_error(f"{named.value} includes itself", named.place)
        if len(chain) == MAX_INCLUDE_DEPTH:
            raise _make_include_error(
                f"files are included more than {MAX_INCLUDE_DEPTH} levels deep", named.place
            )
        entries = self.expand(self._read_entries(source), chain=(*chain, source.path))
        return entries.items if isinstance(entries, SequenceNode) else ()

    def _read_entries(self, source: ReferencedFile) -> Node:
        root, problems = read_tree(source.data, file=source.file)
        self.problems += problems
        found = (yaml_nodes.find_value(root, key) for key in INCLUDED_LIST_KEYS)
        entries = next((each for each in found if each is not None), None)
        if not isinstance(entries, SequenceNode):
            raise InputError.from_message(
                f"an included file needs a list of `{INCLUDED_LIST_KEYS[0]}`",
                place=root.place if entries is None else entries.place,
            )
        return entries


def _make_include_error(message: str, place: Place) -> InputError:
    return InputError.from_message(message, place=place, hint="list the evaluators directly")


class CustomTypes(Struct, frozen=True, kw_only=True):
    """Replaces entries of custom types with code judges that run the program of the type."""

    files: FileResolver

    def expand(self, entries: Node) -> Node:
        """Replace entries of custom types in the list ``entries``; keep other nodes."""
        if not isinstance(entries, SequenceNode):
            return entries
        names: set[str] = set()
        return yaml_nodes.change_items(entries, lambda entry: self._expand_entry(entry, names))

    def _expand_entry(self, entry: Node, names: set[str]) -> Node:
        """Replace one entry; ``names`` collects the names generated so far."""
        data = plain_data(entry)
        kind = data.get("type") if isinstance(data, Mapping) else None
        if not isinstance(entry, MappingNode) or not isinstance(kind, str):
            return entry
        path = (
            None
            if normalize_type_name(kind) in (*AGENTV_TYPES, *UNSUPPORTED_TYPES)
            else self.files.assertion(kind)
        )
        if path is None:
            return entry
        place = entry.fields["type"].value.place
        values = {
            "type": yaml_nodes.make_node("code_judge", place),
            "command": yaml_nodes.make_node(["bun", "run", path], place),
        }
        if yaml_nodes.find_value(entry, "name") is None:
            name = make_unique_name(kind, names)
            names.add(name)
            values["name"] = yaml_nodes.make_node(name, place)
        return yaml_nodes.replace_values(entry, values)
