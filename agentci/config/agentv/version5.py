"""Rewrite eval files of AgentV 5 as AgentV 4 would have written them."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from math import prod
from typing import Final

from msgspec import Struct, field

from agentci._util.text.javascript import stringify_json
from agentci._util.text.suggest import quote_name
from agentci.config.agentv.evaluators import TRANSFORM_KEY, make_unique_name
from agentci.config.agentv.external_files import IMPORTS_KEY, SCENARIOS_KEY
from agentci.config.agentv.files import FileResolver
from agentci.config.agentv.shared_values import (
    CASE_PLACEHOLDER,
    INPUT_KEY,
    INPUT_KEYS,
    PROMPTS_KEY,
    TURNS_KEY,
    CaseSubstitution,
    PromptReader,
    name_case,
)
from agentci.config.yaml_document import read_tree
from agentci.config.yaml_nodes import (
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    change_items,
    change_texts,
    find_first,
    find_text,
    find_value,
    make_mapping,
    make_mapping_from_entries,
    make_node,
    make_sequence,
    plain_data,
    replace_values,
)
from agentci.errors import InputError
from agentci.evaluators.agentv.llm_judge import wrap_criteria
from agentci.evaluators.agentv.registry import normalize_type_name
from agentci.model.values import JsonObject, Problem

TESTS_KEY: Final = "tests"
DEFAULTS_KEY: Final = "default_test"
ASSERT_KEY: Final = "assert"
LIST_KEYS: Final = ("assertions", ASSERT_KEY)
EXPECTED_KEY: Final = "expected_output"
# Of one case with lists of variables.
MAX_EXPANDED_CASES: Final = 10_000
# Files with one of these keys are of AgentV 5, in which `vars` apply to evaluators, too.
VERSION_KEYS: Final = (
    *(PROMPTS_KEY, DEFAULTS_KEY, "evaluate_options"),
    *(SCENARIOS_KEY, IMPORTS_KEY, "providers", "environment"),
)
OPTIONS_KEY: Final = "options"
ENVIRONMENT_KEY: Final = "env"
EXECUTION_KEY: Final = "execution"
RUN_OPTIONS_KEY: Final = "evaluate_options"
REPEAT_KEY: Final = "repeat"
# AgentV 4's names of the strategies by which repeated runs of a case pass.
STRATEGIES: Final = {
    "pass_any": "pass_at_k",
    "mean": "mean",
    "confidence_interval": "confidence_interval",
}
READ_DEFAULTS: Final = (*LIST_KEYS, "vars", "threshold", "metadata", OPTIONS_KEY)
URL_PREFIX: Final = "file://"
# Keys of an evaluator whose placeholders are those of prompts and programs.
UNSUBSTITUTED_KEYS: Final = ("prompt", "script", "command", "config", TRANSFORM_KEY)
NOT_PREFIX: Final = "not-"
# A variable with a filter or an operator after it, which AgentV evaluates as a template.
EXPRESSION: Final = re.compile(
    r"(?<!\$)\{\{-?\s*([A-Za-z_][A-Za-z0-9_.]*)\s*[^A-Za-z0-9_.\s{}][^{}]*\}\}"
)
RUBRIC_LIST_KEYS: Final = ("criteria", "rubrics")
RUBRIC_TYPE: Final = "llm_rubric"
SET_TYPE: Final = "assert_set"
SKILL_TYPE: Final = "skill_trigger"
FORBIDDING_TYPES: Final = (SKILL_TYPE, "trajectory:tool_used")
# Types of evaluators that read a `config`.
CONFIGURED_TYPES: Final = (SET_TYPE, "code_judge", "python", "javascript", "webhook", "similar")
GOAL_TYPE: Final = "trajectory:goal_success"
GOAL_PROMPT: Final = """Rate how well the run of the agent achieves this goal:
{goal}

[[ ## tool_calls ## ]]
{{{{ tool_calls }}}}

[[ ## candidate_answer ## ]]
{{{{ candidate_answer }}}}"""


def is_version5(root: MappingNode, cases: Node | None) -> bool:
    """Whether the file is of AgentV 5, by its keys or by the first of its ``cases``."""
    listed = any(key in root.fields for key in (TESTS_KEY, SCENARIOS_KEY, IMPORTS_KEY))
    return listed and (
        any(key in root.fields for key in VERSION_KEYS)
        or any(map(_is_version5_case, cases.items if isinstance(cases, SequenceNode) else ()))
    )


def _is_version5_case(case: Node) -> bool:
    """Whether a case has its input only among its variables, or names evaluators by `metric`."""
    own = find_first(case, INPUT_KEYS)
    if own is None and find_value(find_value(case, "vars"), "input") is not None:
        return True
    listed = find_first(case, LIST_KEYS)
    entries = listed.items if isinstance(listed, SequenceNode) else ()
    return any(find_value(each, "metric") is not None for each in entries)


def read_environment(root: MappingNode) -> dict[str, str]:
    """The variables that the file sets under `env`, as texts."""
    given = find_value(root, ENVIRONMENT_KEY)
    fields = given.fields if isinstance(given, MappingNode) else {}
    return {key: find_text(given, key) for key in fields}


class Version5Cases(Struct, kw_only=True):
    """Rewrites the cases of one file: prompts, variables and the defaults of all cases.

    Attributes:
        problems: errors in prompts, and warnings about what has no effect.
    """

    root: MappingNode
    files: FileResolver
    problems: list[Problem] = field(default_factory=list)

    def rewrite(self) -> MappingNode:
        """The file with `input` and `expected_output` in each case, and evaluators without vars."""
        prompts = PromptReader(root=self.root, files=self.files, problems=self.problems).read()
        defaults = self._read_defaults()
        shared = self._merge_shared(defaults)
        values: dict[str, Node] = {}
        tests = find_value(self.root, TESTS_KEY)
        listed = tests.items if isinstance(tests, SequenceNode) else ()
        shared_variables, taken = find_value(defaults, "vars"), set[str]()
        cases = tuple(
            each for case in listed for each in self._expand_case(case, shared_variables, taken)
        )
        transforms = any(_find_transform(each) is not None for each in (defaults, *cases))
        moves = transforms or any(map(_has_placeholder, shared))
        if shared and not moves:
            values[ASSERT_KEY] = make_sequence(shared, shared[0].place)
        if isinstance(tests, SequenceNode):
            moved = shared if moves else ()
            for case in cases:
                self._check_options(case)
            rewritten = (
                self._rewrite_case(
                    name_case(case, prompt if len(prompts) > 1 else None),
                    defaults,
                    prompt=prompt.node,
                    shared=moved,
                )
                for case in cases
                for prompt in prompts
            )
            values[TESTS_KEY] = make_sequence(rewritten, tests.place)
        threshold = find_value(defaults, "threshold")
        if threshold is not None and "threshold" not in self.root.fields:
            values["threshold"] = threshold
        trials = self._read_repeat()
        if trials is not None:
            values[EXECUTION_KEY] = trials
        dropped = {PROMPTS_KEY, DEFAULTS_KEY, *(LIST_KEYS if shared else ())}
        fields = {key: each for key, each in self.root.fields.items() if key not in dropped}
        root = make_mapping_from_entries(fields, self.root.place)
        return replace_values(root, values)

    def _read_defaults(self) -> Node | None:
        """`default_test`, which may be the path of a file."""
        given = find_value(self.root, DEFAULTS_KEY)
        if not isinstance(given, ScalarNode) or not isinstance(given.value, str):
            return given
        named = given.value.removeprefix(URL_PREFIX).removeprefix("ref://")
        try:
            text = self.files.read(named, given.place).text
        except InputError as error:
            self.problems += error.problems
            return None
        root, problems = read_tree(text.encode(), file=named)
        self.problems += problems
        return root

    def _merge_shared(self, defaults: Node | None) -> tuple[Node, ...]:
        """The evaluators of all cases: those of the file, then those of `default_test`."""
        if isinstance(defaults, MappingNode):
            self._check_options(defaults)
            for key in defaults.fields:
                if key not in READ_DEFAULTS:
                    self._warn(f"`{key}` of `{DEFAULTS_KEY}` has no effect", defaults, key)
        lists = [_find_list(owner) for owner in (self.root, defaults)]
        return tuple(
            each for found in lists if isinstance(found, SequenceNode) for each in found.items
        )

    def _rewrite_case(
        self, case: Node, defaults: Node | None, *, prompt: Node | None, shared: tuple[Node, ...]
    ) -> Node:
        if not isinstance(case, MappingNode):
            return case
        fields = {key: each for key, each in case.fields.items() if key != OPTIONS_KEY}
        root = make_mapping_from_entries(fields, case.place)
        values = _rewrite_input(case, defaults, prompt)
        if criteria := _find_criteria(replace_values(case, values)):
            values["criteria"] = criteria
        names = dict.fromkeys(_list_values(values["vars"])) if "vars" in values else {}
        for key in (INPUT_KEY, EXPECTED_KEY):
            if key in values:
                self._reject_expressions(values[key], {**names})
        return replace_values(root, {**values, **self._rewrite_list(case, defaults, shared)})

    def _rewrite_list(
        self, case: MappingNode, defaults: Node | None, shared: tuple[Node, ...]
    ) -> dict[str, Node]:
        """The evaluators of a case, with its variables and transforms, by their key."""
        variables = _merge(find_value(defaults, "vars"), find_value(case, "vars"))
        own = _find_list(case)
        skips = find_value(find_value(case, "execution"), "skip_defaults")
        added = () if isinstance(skips, ScalarNode) and skips.value is True else shared
        own_items = own.items if isinstance(own, SequenceNode) else ()
        given = _find_transform(case) or _find_transform(defaults)
        transform = None if find_value(case, TURNS_KEY) is not None else given
        criteria = find_value(case, "criteria")
        if transform is not None and criteria is not None and not (own_items or added):
            own_items = (criteria,)  # AgentV evaluates the criteria, too
        if not (own_items or added):
            return {}
        listed = make_sequence((*own_items, *added), own.place if own else case.place)
        key = next((each for each in LIST_KEYS if find_value(case, each)), ASSERT_KEY)
        return {key: _add_transform(self._substitute(listed, variables), transform, variables)}

    def _expand_case(self, case: Node, shared: Node | None, taken: set[str]) -> Iterator[Node]:
        """One case per text of each variable that is a list of texts, as in AgentV.

        Args:
            shared: variables of all cases.
            taken: ids of such cases so far; a repeated one gets a number.
        """
        variables = _merge(shared, find_value(case, "vars"))
        if not isinstance(case, MappingNode) or not isinstance(variables, MappingNode):
            yield case
            return
        choices = [_list_choices(each.value) for each in variables.fields.values()]
        count = prod(map(len, choices))
        if count > MAX_EXPANDED_CASES:
            message = f"lists in `vars` make {count} cases of one"
            hint = f"at most {MAX_EXPANDED_CASES} are made"
            self.problems.append(Problem(message=message, place=variables.place, hint=hint))
            return
        for combination in product(*choices):
            values = dict(zip(variables.fields, combination, strict=True))
            given_values = replace_values(variables, values)
            chosen = _fill(given_values, given_values)  # variables may name others
            changed: dict[str, Node] = {"vars": chosen}
            name = given = find_text(case, "id")
            if given:
                name = str(plain_data(_fill(make_node(given, case.place), chosen)))
            if given and count > 1:
                name = make_unique_name(name, taken)
                taken.add(name)
            if name != given:
                changed["id"] = make_node(name, case.fields["id"].value.place)
            yield replace_values(case, changed)

    def _read_repeat(self) -> Node | None:
        """`execution` with the trials that `evaluate_options.repeat` asks for; None without it."""
        execution = find_value(self.root, EXECUTION_KEY)
        given = find_value(find_value(self.root, RUN_OPTIONS_KEY), REPEAT_KEY)
        if given is None or find_value(execution, "trials") is not None:
            return None
        fields = _list_values(given) if isinstance(given, MappingNode) else {"count": given}
        strategy = find_text(given, "strategy") or "pass_any"
        if strategy not in STRATEGIES:
            message = f"`{REPEAT_KEY}` with the strategy {quote_name(strategy)} has no effect"
            hint = f"known strategies: {', '.join(STRATEGIES)}"
            self.problems.append(
                Problem(message=message, place=given.place, hint=hint, severity="warning")
            )
            return None
        fields = {key: each for key, each in fields.items() if key in ("count", "cost_limit_usd")}
        fields["strategy"] = make_node(STRATEGIES[strategy], given.place)
        trials = {"trials": make_mapping(fields, given.place)}
        if isinstance(execution, MappingNode):
            return replace_values(execution, trials)
        return make_mapping(trials, given.place)

    def _check_options(self, owner: Node) -> None:
        """Warn about options that have no effect: all but `transform`, which needs one output."""
        options = find_value(owner, OPTIONS_KEY)
        has_turns = find_value(owner, TURNS_KEY) is not None
        for key, entry in options.fields.items() if isinstance(options, MappingNode) else ():
            if key != TRANSFORM_KEY or has_turns:
                place = entry.place
                message = f"`{OPTIONS_KEY}.{key}` has no effect"
                self.problems.append(Problem(message=message, place=place, severity="warning"))

    def _substitute(self, entries: SequenceNode, variables: Node | None) -> SequenceNode:
        """Replace variables in evaluators, except in prompts and programs."""
        data = None if variables is None else plain_data(variables)
        known: JsonObject = data if isinstance(data, dict) else {}
        substitution = CaseSubstitution(values={**known, "vars": known}, keeps_unknown=True)

        def fill(node: Node) -> Node:
            self._reject_expressions(node, known)
            return substitution.substitute(node)

        return change_items(entries, lambda entry: _substitute_entry(entry, fill))

    def _reject_expressions(self, node: Node, known: JsonObject) -> None:
        """Report filters and operators after variables, which would stay as they are."""

        def check(text_node: ScalarNode, text: str) -> Node:
            for match in EXPRESSION.finditer(text):
                if match[1].partition(".")[0] in (*known, "vars"):
                    message = f"`{match[0]}` is not replaced: only names are, without filters"
                    hint = "write the value as a variable of its own"
                    problem = Problem(message=message, place=text_node.place, hint=hint)
                    self.problems += () if problem in self.problems else (problem,)
            return text_node

        change_texts(node, check)

    def _warn(self, message: str, owner: MappingNode, key: str, *, hint: str | None = None) -> None:
        place = owner.fields[key].place
        self.problems.append(Problem(message=message, place=place, hint=hint, severity="warning"))


def rewrite_evaluators(entries: Node) -> Node:
    """Rewrite the entries of a list that use names or types of AgentV 5; keep other nodes."""
    return change_items(entries, _rewrite_entry) if isinstance(entries, SequenceNode) else entries


def _rewrite_entry(entry: Node) -> Node:
    kind = find_value(entry, "type")
    if not isinstance(entry, MappingNode) or not isinstance(kind, ScalarNode):
        return entry
    fields = {key: each.value for key, each in entry.fields.items()}
    if "metric" in fields:
        metric = fields.pop("metric")
        fields.setdefault("name", metric)
    name = str(kind.value)
    if name.startswith(NOT_PREFIX):
        name = name.removeprefix(NOT_PREFIX)
        fields["type"] = make_node(name, kind.place)
        _negate(fields, name, kind)
    normalized = normalize_type_name(name)
    rewrite = REWRITTEN_TYPES.get(normalized)
    if rewrite is not None:
        rewrite(fields, kind)
    if normalized == SET_TYPE:
        _share_config(fields)
    if {key: each.value for key, each in entry.fields.items()} == fields:
        return entry
    kept = {key: each for key, each in entry.fields.items() if key in fields}
    return replace_values(make_mapping_from_entries(kept, entry.place), fields)


def _negate(fields: dict[str, Node], name: str, kind: Node) -> None:
    """Invert an entry; a list of tools or skills forbids each of them."""
    value = fields.get("value")
    if isinstance(value, SequenceNode) and normalize_type_name(name) in FORBIDDING_TYPES:
        fields["value"] = change_items(value, _forbid)
    elif normalize_type_name(name) == SKILL_TYPE:
        fields["should_trigger"] = make_node(value=False, place=kind.place)
    else:
        negates = fields.get("negate")
        twice = isinstance(negates, ScalarNode) and negates.value is True
        fields["negate"] = make_node(not twice, kind.place)


def _forbid(name: Node) -> Node:
    fields = {"pattern": name, "max": make_node(0, name.place)}
    return make_mapping(fields, name.place) if isinstance(name, ScalarNode) else name


def _rewrite_rubric(fields: dict[str, Node], kind: Node) -> None:
    """`llm-rubric`: its value is a list of criteria, or text that replaces the case's criteria."""
    fields["type"] = make_node("llm_judge", kind.place)
    _rename(fields, "provider", "target")
    _rename(fields, "threshold", "min_score")
    value = fields.pop("value", None)
    if isinstance(value, MappingNode):
        inner = find_first(value, RUBRIC_LIST_KEYS)
        value = inner if isinstance(inner, SequenceNode) else make_sequence([value], value.place)
    if isinstance(value, SequenceNode):
        fields["rubrics"] = change_items(value, _drop_operator)
    elif isinstance(value, ScalarNode) and "prompt" in fields:
        fields["rubrics"] = make_sequence([value], value.place)
    elif isinstance(value, ScalarNode) and isinstance(value.value, str):
        # It may name the expected output, but is not a whole prompt.
        fields["prompt"] = make_node(wrap_criteria(value.value), value.place)
    elif value is not None:
        fields["prompt"] = value


def _drop_operator(criterion: Node) -> Node:
    """Leave out how a criterion was classified."""
    if not isinstance(criterion, MappingNode) or "operator" not in criterion.fields:
        return criterion
    fields = {key: each for key, each in criterion.fields.items() if key != "operator"}
    return make_mapping_from_entries(fields, criterion.place)


def _rewrite_goal(fields: dict[str, Node], kind: Node) -> None:
    """`trajectory:goal-success`: a judge that sees tool calls and answer."""
    value = fields.pop("value", None)
    goal = find_value(value, "goal") or value
    fields["type"] = make_node("llm_judge", kind.place)
    _rename(fields, "provider", "target")
    _rename(fields, "threshold", "min_score")
    if isinstance(goal, ScalarNode) and isinstance(goal.value, str):
        fields["prompt"] = make_node(GOAL_PROMPT.format(goal=goal.value), goal.place)


def _share_config(fields: dict[str, Node]) -> None:
    """`assert-set`: its members with a `config` inherit that of the set."""
    shared = fields.pop("config", None)
    for key in LIST_KEYS:
        members = fields.get(key)
        if isinstance(members, SequenceNode) and shared is not None:
            fields[key] = change_items(members, partial(_inherit_config, shared))


def _inherit_config(shared: Node, member: Node) -> Node:
    name = normalize_type_name(find_text(member, "type").removeprefix(NOT_PREFIX))
    if not isinstance(member, MappingNode) or name not in CONFIGURED_TYPES:
        return member
    config = _merge(shared, find_value(member, "config"))
    return member if config is None else replace_values(member, {"config": config})


def _rewrite_cost(fields: dict[str, Node], _: Node) -> None:
    """`cost`: AgentV 5 names the limit as other limits."""
    _rename(fields, "threshold", "budget")


def _rename(fields: dict[str, Node], old: str, new: str) -> None:
    if old in fields and new not in fields:
        fields[new] = fields.pop(old)


REWRITTEN_TYPES: Final[Mapping[str, Callable[[dict[str, Node], Node], None]]] = {
    RUBRIC_TYPE: _rewrite_rubric,
    GOAL_TYPE: _rewrite_goal,
    "cost": _rewrite_cost,
}


def _find_criteria(case: MappingNode) -> Node | None:
    """The texts among the evaluators of a case, for rubrics that state nothing; None without any.

    AgentV asks the judge without any criteria.
    """
    listed = _find_list(case)
    entries = listed.items if isinstance(listed, SequenceNode) else ()
    texts = [str(each.value) for each in entries if isinstance(each, ScalarNode)]
    has_own = any(find_value(case, key) is not None for key in ("criteria", EXPECTED_KEY))
    if has_own or not texts or not any(map(_states_nothing, entries)):
        return None
    return make_node("\n".join(texts), case.place)


def _states_nothing(entry: Node) -> bool:
    kind = normalize_type_name(find_text(entry, "type").removeprefix(NOT_PREFIX))
    stated = find_first(entry, ("value", "prompt", *RUBRIC_LIST_KEYS))
    return kind == RUBRIC_TYPE and stated is None


def _fill(node: Node, variables: Node) -> Node:
    """``node`` with its placeholders of variables replaced."""
    data = plain_data(variables)
    known: JsonObject = data if isinstance(data, dict) else {}
    fill = CaseSubstitution(values={**known, "vars": known}, keeps_unknown=True)
    return fill.substitute(node)


def _list_choices(value: Node) -> tuple[Node, ...]:
    """The texts of a list of texts, each of which makes a case; else only the value."""
    items = value.items if isinstance(value, SequenceNode) else ()
    first = items[0] if items else None
    is_list = isinstance(first, ScalarNode) and isinstance(first.value, str)
    return items if is_list else (value,)


def _rewrite_input(
    case: MappingNode, defaults: Node | None, prompt: Node | None
) -> dict[str, Node]:
    """The variables, the metadata, the input and the expected output of a case."""
    variables = _merge(find_value(defaults, "vars"), find_value(case, "vars"))
    values: dict[str, Node] = {}
    if variables is not None:
        # Prompts may name `vars.NAME`.
        inner = make_mapping({"vars": variables}, variables.place)
        values["vars"] = replace_values(inner, _list_values(variables))
    metadata = _merge(find_value(defaults, "metadata"), find_value(case, "metadata"))
    if metadata is not None:
        values["metadata"] = metadata
    own_input = find_value(variables, "input")
    asked = prompt if prompt is not None else own_input
    if asked is not None and find_value(case, "input") is None:
        values["input"] = asked
    expected = find_value(variables, EXPECTED_KEY)
    if expected is not None and find_value(case, EXPECTED_KEY) is None:
        values[EXPECTED_KEY] = expected
    return values


def _find_transform(owner: Node | None) -> Node | None:
    return find_value(find_value(owner, OPTIONS_KEY), TRANSFORM_KEY)


def _add_transform(
    entries: SequenceNode, transform: Node | None, variables: Node | None
) -> SequenceNode:
    """Put the transform of a case before those of its evaluators, with its variables.

    Texts of the list become one evaluator, as they do without a transform.
    """
    texts = [each for each in entries.items if isinstance(each, ScalarNode)]
    if transform is not None and texts:
        place = texts[0].place
        text_fields = {
            "type": make_node("rubrics", place),
            "criteria": make_sequence(texts, place),
            "weight": make_node(len(texts), place),
        }
        joined = make_mapping(text_fields, place)
        kept = [*(each for each in entries.items if not isinstance(each, ScalarNode)), joined]
        return _add_transform(make_sequence(kept, entries.place), transform, variables)

    def add(entry: Node) -> Node:
        own = find_value(entry, TRANSFORM_KEY)
        steps = [each for each in (transform, own) if each is not None]
        if not steps or not isinstance(entry, MappingNode):
            return entry
        fields: dict[str, Node] = {"steps": make_sequence(steps, steps[0].place)}
        if variables is not None:
            fields["vars"] = variables
        return replace_values(entry, {TRANSFORM_KEY: make_mapping(fields, steps[0].place)})

    return change_items(entries, add)


def _find_list(owner: Node | None) -> Node | None:
    """The evaluators of a part of the file; a single one is a list, too."""
    found = find_first(owner, LIST_KEYS)
    is_single = isinstance(found, MappingNode) or (
        isinstance(found, ScalarNode) and isinstance(found.value, str)
    )
    return make_sequence([found], found.place) if found is not None and is_single else found


def _list_values(node: Node) -> dict[str, Node]:
    fields = node.fields if isinstance(node, MappingNode) else {}
    return {key: each.value for key, each in fields.items()}


def _merge(shared: Node | None, own: Node | None) -> Node | None:
    """Merge two mappings; values of ``own`` take precedence."""
    if isinstance(shared, MappingNode) and isinstance(own, MappingNode):
        return replace_values(shared, _list_values(own))
    return shared if own is None else own


def _substitute_entry(entry: Node, fill: Callable[[Node], Node]) -> Node:
    if not isinstance(entry, MappingNode):
        return fill(entry)
    values: dict[str, Node] = {}
    for key, value in _list_values(entry).items():
        if key in LIST_KEYS and isinstance(value, SequenceNode):
            values[key] = change_items(value, lambda each: _substitute_entry(each, fill))
        elif key not in UNSUBSTITUTED_KEYS:
            filled = fill(value)
            is_number = isinstance(filled, ScalarNode) and isinstance(filled.value, int | float)
            if key == "value" and is_number and filled is not value:
                filled = make_node(stringify_json(plain_data(filled)), filled.place)
            values[key] = filled
    return replace_values(entry, values)


def _has_placeholder(node: Node) -> bool:
    match node:
        case ScalarNode(value=str(text)):
            return CASE_PLACEHOLDER.search(text) is not None
        case MappingNode():
            return any(_has_placeholder(each.value) for each in node.fields.values())
        case SequenceNode():
            return any(map(_has_placeholder, node.items))
        case _:
            return False
