"""Places and paths as reports show them."""

from agentci.model.values import COMMAND_LINE, Place
from agentci.reports import groups_and_totals


def test_file_place_keeps_line_and_column() -> None:
    place = Place(file="a.yaml", line=3, column=2)
    assert groups_and_totals.place_in_file(place) is place
    assert str(place) == "a.yaml:3:2"


def test_command_line_is_not_a_file() -> None:
    assert groups_and_totals.place_in_file(COMMAND_LINE) is None
    assert str(COMMAND_LINE) == groups_and_totals.format_path(COMMAND_LINE.file) == "command line"
