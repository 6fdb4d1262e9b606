"""Prompt templates: errors, the names that they use, and that nothing in them is run."""

import pytest
from jinja2 import Environment
from jinja2.meta import find_undeclared_variables

from agentci.errors import InputError
from agentci.evaluators.prompt_template import check_prompt_template
from agentci.model.values import Place

PLACE = Place(file="agentci.yaml", line=3)
NO_VARIABLE = "the prompt uses no variable"
TOO_DEEP = "the prompt template is nested too deeply"


def _find_message(template: str, *, line_counts: bool = False) -> tuple[str, Place | None]:
    with pytest.raises(InputError) as error:
        check_prompt_template(template, PLACE, line_counts=line_counts)
    [found] = error.value.problems
    return found.message, found.place


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("a\nb", f"{NO_VARIABLE}, so that the judge model would not see the response"),
        ("{{ " + "(" * 5_000, TOO_DEEP),
        ("{{ " + "[" * 5_000 + "]" * 5_000 + " }}", TOO_DEEP),
        ("{% if 1 %}" * 5_000 + "{{ a }}" + "{% endif %}" * 5_000, TOO_DEEP),
        ("{{ 1" + "+1" * 5_000 + " }}", TOO_DEEP),
        ("{{ ''" + ".a" * 5_000 + " }}", TOO_DEEP),
        ("{{ " + "9" * 5_000 + " }}{{ a }}", "the prompt template contains a number with too many"),
    ],
)
def test_unusable_template_is_rejected(template: str, problem: str) -> None:
    message, place = _find_message(template)
    assert message.startswith(problem)
    assert place == PLACE


def test_template_error_names_line_of_file() -> None:
    message, place = _find_message("a\nb {{ c", line_counts=True)
    assert message.startswith("template syntax error in the prompt: unexpected end of template")
    assert place == Place(file="agentci.yaml", line=2)


def test_template_error_in_config_names_prompt_line() -> None:
    message, place = _find_message("a\nb {{ c")
    assert message.startswith("template syntax error in the prompt on line 2: unexpected")
    assert place == PLACE


USED = (
    "{{ a }}",
    "{{ a.b['c'] | upper }}",
    "{% set a = a %}{{ a }}",
    "{{ a }}{% set a = 1 %}",
    "{% set a %}{{ b }}{% endset %}",
    "{% if a %}{% endif %}",
    "{% if 1 %}{{ a }}{% endif %}",
    "{% if 1 %}{% elif a %}{% endif %}",
    "{% if 1 %}{% set a = 1 %}{% endif %}{{ a }}",
    "{% if 1 %}{% set a = 1 %}{% elif 2 %}b{% else %}{% set a = 1 %}{% endif %}{{ a }}",
    "{% if 1 %}{% set a = 1 %}{% else %}{% set a = 2 %}{% endif %}{{ a }}",
    "{% for a in b %}{% endfor %}",
    "{% for a in [1] %}{% endfor %}{{ a }}",
    "{% for a in [1] if b %}{% endfor %}",
    "{% for a in [1] %}{{ b }}{% endfor %}",
    "{% for a in [1] %}{% else %}{{ loop }}{% endfor %}",
    "{% for a in [1] %}{% set b = 1 %}{% endfor %}{{ b }}",
    "{{ loop }}",
    "{% with a = 1 %}{% endwith %}{{ a }}",
    "{% with a = b %}{% endwith %}",
    "{% with a = 1, b = a %}{% endwith %}",
    "{% with %}{{ a }}{% endwith %}",
    "{% macro m(a) %}{{ b }}{% endmacro %}",
    "{% macro m(a) %}{% endmacro %}{{ a }}",
    "{% macro m(a=b) %}{% endmacro %}",
    "{{ caller() }}",
    "{% call(a) m() %}{% endcall %}",
    "{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}{{ a }}{% endcall %}",
    "{% filter replace(a, 'b') %}c{% endfilter %}",
    "{% filter upper %}{{ a }}{% endfilter %}",
    "{% block b %}{{ a }}{% endblock %}",
    "{% set ns.a = 1 %}",
    "{% include a %}",
    "{% import a as b %}",
    "{% from a import b %}",
    "{% autoescape true %}{{ a }}{% endautoescape %}",
)
UNUSED = (
    "{% raw %}{{ a }}{% endraw %}",
    "{# {{ a }} #}",
    "{{ 'a' }}{{ range(3) }}",
    "{% set a = 1 %}{{ a }}",
    "{% set a, b = 1, 2 %}{{ a + b }}",
    "{% set a %}b{% endset %}{{ a }}",
    "{% for a in [1] if a %}{{ a }}{{ loop.index }}{% else %}b{% endfor %}",
    "{% with a = 1 %}{{ a }}{% endwith %}",
    "{% macro m(a, b=1) %}{{ a + b }}{{ caller() }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m }}",
    "{% macro m() %}{% endmacro %}{% call(c) m(1) %}{{ c }}{% endcall %}",
    "{% set ns = namespace(a=1) %}{% set ns.a = 2 %}{{ ns.a }}",
    "{% filter upper %}a{% endfilter %}",
    "{% block b %}a{% endblock %}{{ self.b() }}",
    "{% import 'a' as b %}{{ b.c }}{% from 'a' import c, d as e %}{{ c }}{{ e }}",
)


@pytest.mark.parametrize("template", [*USED, *UNUSED])
def test_use_of_variables_is_found_as_by_jinja2(template: str) -> None:
    environment = Environment()
    expected = bool(find_undeclared_variables(environment.parse(template)))
    assert expected is (template in USED)
    if expected:
        check_prompt_template(template, PLACE)
    else:
        assert _find_message(template)[0].startswith(NO_VARIABLE)
