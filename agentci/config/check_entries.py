"""Read items of `checks:` in a config into their models, and build their evaluators."""

from collections.abc import Callable, Iterator, Mapping

from agentci.config.checks import LONG_FORM, VALUE_KEY, CheckItem
from agentci.config.entries import EVERY_SCORE_REACHES_ZERO, THRESHOLD_KEY
from agentci.config.schema import Schema
from agentci.config.yaml_document import YamlDocument
from agentci.evaluators.checks.check import CheckContext, CheckEvaluator
from agentci.evaluators.checks.entries import CheckEntry
from agentci.evaluators.checks.names import SWITCHES
from agentci.evaluators.checks.registry import CHECKS, build_check
from agentci.evaluators.evaluator_type import TextFile
from agentci.evaluators.fields import TokenPriceSpec
from agentci.evaluators.trajectory.matchers import KeyPath
from agentci.model.values import Place, Problem, replace

ReadPart = Callable[..., tuple[CheckEntry | None, tuple[Problem, ...]]]


def read_check_entry(
    item: CheckItem, document: YamlDocument, read_part: ReadPart
) -> tuple[CheckEntry | None, tuple[Problem, ...]]:
    """Read an item into its model.

    Args:
        read_part: reads a part of the document, as in ``validate``.
    """
    model = CHECKS[item.kind].entry
    written = document.value(item.path)
    if not isinstance(written, Mapping):
        return model.model_validate({LONG_FORM: item.kind, VALUE_KEY: True}), ()
    if LONG_FORM in written:
        entry, problems = read_part(document, model, at=item.path, noun="check")
        return entry, _suggest_options(problems, item, document)
    kind = str(item.value[-1])
    data = {LONG_FORM: kind, VALUE_KEY: document.value(item.value)}

    def make_schema() -> Schema:
        schema = model.model_json_schema()
        value = schema["properties"][VALUE_KEY]
        return {"$defs": schema.get("$defs", {}), "type": "object", "properties": {kind: value}}

    entry, problems = read_part(
        document, model, at=item.path, noun="check", data=data, make_schema=make_schema
    )
    return entry, _suggest_options(problems, item, document)


def _suggest_options(
    problems: tuple[Problem, ...], item: CheckItem, document: YamlDocument
) -> tuple[Problem, ...]:
    """Suggest the long form for options that were written as the value."""
    value, options = document.value(item.value), CHECKS[item.kind].entry.model_fields
    if not isinstance(value, Mapping) or not value or not value.keys() <= options.keys():
        return problems
    place = document.place_of(item.value)
    given = "true" if item.kind in SWITCHES else "..."
    more = ", ".join(f"{key}: ..." for key in value if key != VALUE_KEY)
    hint = f"write `{{check: {item.kind}, value: {given}, {more}}}`"
    return tuple(replace(each, hint=hint) if each.place == place else each for each in problems)


def build_check_evaluator(
    item: CheckItem,
    entry: CheckEntry,
    document: YamlDocument,
    read: Callable[[str, Place], TextFile],
    read_variable: Callable[[str, Place], str],
    prices: Mapping[str, TokenPriceSpec],
) -> CheckEvaluator:
    """Build the evaluator of an item.

    Args:
        read: reads a file that the config names at a place.
        read_variable: returns the value of an environment variable that it names at a place.

    Raises:
        InputError: its value is invalid.
    """

    def find_place(path: KeyPath = (), *, key: bool = False) -> Place:
        return document.place_of((*item.value, *path), key=key)

    context = CheckContext(
        name=item.name,
        place=item.place,
        find_place=find_place,
        read=lambda named: read(named, find_place()),
        read_variable=lambda named: read_variable(named, find_place()),
        prices=prices,
    )
    return build_check(item.kind, entry, context)


def find_zero_thresholds(
    item: CheckItem, check: CheckEvaluator, document: YamlDocument
) -> Iterator[Problem]:
    """Warn about a required check that no score can fail."""
    if check.identity.threshold == 0 and check.identity.required:
        written = [(*item.path, THRESHOLD_KEY), (*item.value, THRESHOLD_KEY)]
        yield Problem(
            message=f"check {item.name}: {EVERY_SCORE_REACHES_ZERO}",
            place=document.place_of(next(filter(document.has, written), item.path)),
            hint="raise it, or write `required: false` if the check only informs",
            severity="warning",
        )
