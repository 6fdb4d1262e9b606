"""Placeholders of templates are filled in one pass."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentci._util.text.templates import (
    MissingPlaceholderError,
    fill_placeholders,
    list_template_names,
    list_template_paths,
)
from agentci.model.values import JsonObject

VALUES: JsonObject = {
    "a": "text",
    "n": 1.5,
    "row": {"b c": ["x", {"d": None}]},
    "braces": "{{ a }}",
}


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("{{a}} {{ a }} {{\na\t}}", "text text text"),
        ("{{ n }}", "1.5"),
        ('{{ row["b c"][0] }}', "x"),
        ('{{ row["b c"][1].d }}', "null"),
        ("{{ row }}", '{"b c": ["x", {"d": null}]}'),
        ("{{ braces }}{{ a }}", "{{ a }}text"),
        ("{ a } {{ 1 }} {{ a | upper }} {{}} {{ a", "{ a } {{ 1 }} {{ a | upper }} {{}} {{ a"),
    ],
)
def test_placeholder_is_replaced_by_value_at_path(template: str, filled: str) -> None:
    assert fill_placeholders(template, VALUES) == filled


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ row2 }}", "uses the unknown variable 'row2'; did you mean 'row'?"),
        ("{{ zzzz }}", "uses the unknown variable 'zzzz'; use one of a, n, row, braces"),
        ("{{ row.b_c }}", "uses 'row.b_c', but row has no such part; did you mean 'b c'?"),
        ("{{ row.x }}", "uses 'row.x', but row has no such part"),
        ("{{ row[0] }}", "uses 'row[0]', but row has no such part"),
        ('{{ row["b c"][2] }}', 'but row["b c"] has no such part'),
        ('{{ row["b c"].d }}', "has no such part"),
        ("{{ a[0] }}", "but a has no such part"),
        ("{{ n.real }}", "but n has no such part"),
    ],
)
def test_unknown_path_is_reported(template: str, message: str) -> None:
    with pytest.raises(MissingPlaceholderError) as caught:
        fill_placeholders(template, VALUES)
    assert message in str(caught.value)


def test_unknown_path_without_values_is_reported() -> None:
    with pytest.raises(MissingPlaceholderError, match="use one of"):
        fill_placeholders("{{ a }}", {})


def test_show_function_formats_inserted_values() -> None:
    shown = fill_placeholders("{{ a }}{{ n }}", VALUES, show=lambda path, text: f"<{path}={text}>")
    assert shown == "<a=text><n=1.5>"


def test_unknown_placeholders_can_be_left() -> None:
    left = fill_placeholders("{{ a }} {{ nope }} {{row.x}} {{ n[0] }}", VALUES, leaves_unknown=True)
    assert left == "text {{ nope }} {{row.x}} {{ n[0] }}"


def test_names_of_template_are_listed() -> None:
    assert list_template_names("{{ a }} {{row.x}} {{ a[0] }} {{ 1 }} {{") == ("a", "row")


@given(first=st.text(), second=st.text())
def test_inserted_values_are_not_expanded(first: str, second: str) -> None:
    assert fill_placeholders("{{ a }}|{{ b }}", {"a": first, "b": second}) == f"{first}|{second}"


def test_paths_of_template_are_listed() -> None:
    assert list_template_paths('{{ a }}{{row["b c"][0].d}} {{ a | upper }}') == (
        ("a", ()),
        ("row", ("b c", 0, "d")),
    )
