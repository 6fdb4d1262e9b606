"""Places and paths as reports show them."""

from agentci.model.values import COMMAND_LINE, Place
from agentci.reports import report_format


def test_file_place_keeps_line_and_column() -> None:
    place = Place(file="a.yaml", line=3, column=2)
    assert report_format.place_in_file(place) is place
    assert str(place) == "a.yaml:3:2"


def test_command_line_is_not_a_file() -> None:
    assert report_format.place_in_file(COMMAND_LINE) is None
    assert str(COMMAND_LINE) == report_format.format_path(COMMAND_LINE.file) == "command line"
