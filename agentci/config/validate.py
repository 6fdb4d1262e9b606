"""Everything that is wrong with a config, each at its place, in the order of the file."""

from collections.abc import Iterable, Sequence
from typing import Final

from agentci.config.detect import check_kind
from agentci.config.model_errors import rejections
from agentci.config.rules import cross_checks
from agentci.config.schema import Types
from agentci.config.yaml_document import YamlDocument
from agentci.errors import InputError
from agentci.evaluators.registry import EVALUATOR_TYPES
from agentci.model.problem import Problem

MAX_LISTED: Final = 1000


def complaints(document: YamlDocument, types: Types = EVALUATOR_TYPES) -> tuple[Problem, ...]:
    """All problems of a config, notices included; without errors the models accept it.

    Args:
        types: of evaluators, those that there are.
    """
    try:
        check_kind(document)
    except InputError as error:
        return (*document.problems, *error.problems)
    problems = [*document.problems, *_shape(document, types), *cross_checks(document)]
    return in_order(problems)


def in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Each problem once, file by file in the order of its lines; of a flood only the beginning."""
    each = dict.fromkeys(problems)
    files = list(dict.fromkeys(p.place.file for p in each if p.place is not None))
    ordered = sorted(each, key=lambda problem: _position(problem, files))
    if len(ordered) <= MAX_LISTED:
        return tuple(ordered)
    listed = ordered[:MAX_LISTED]
    is_broken = any(problem.severity == "error" for problem in ordered)
    more = Problem(
        message=f"only the first {MAX_LISTED:,} problems are listed",
        place=listed[-1].place,
        severity="error" if is_broken else "notice",
    )
    return (*listed, more)


def _shape(document: YamlDocument, types: Types) -> list[Problem]:
    """Breaches of the schema, or what the models know beyond it."""
    rejected = rejections(document, types)
    if not rejected:
        return []
    # A value that YAML itself has trouble with is not complained about twice.
    known = {each.place for each in document.problems if each.severity == "error"}
    breaches = _violations(document, types)
    places = {breach.place for breach in breaches}
    beyond = [each.problem for each in rejected if each.is_beyond_schema]
    others = [problem for problem in beyond if problem.place not in places]
    found = [*breaches, *others] or [each.problem for each in rejected]
    return [problem for problem in found if problem.place not in known]


def _violations(document: YamlDocument, types: Types) -> tuple[Problem, ...]:
    # The models say whether there is anything to report; jsonschema is loaded to report it well.
    from agentci.config.schema_errors import violations  # noqa: PLC0415

    return violations(document, types)


def _position(problem: Problem, files: Sequence[str]) -> tuple[int, int, int]:
    place = problem.place
    if place is None:
        return (-1, 0, 0)
    return (files.index(place.file), place.line, place.column or 0)
