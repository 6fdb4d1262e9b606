"""Places as readers see them."""

from agentci.model.place import COMMAND_LINE, Place
from agentci.reports import locations


def test_a_file_keeps_its_line_and_column() -> None:
    place = Place(file="a.yaml", line=3, column=2)
    assert locations.in_a_file(place) is place
    assert str(place) == "a.yaml:3:2"


def test_the_command_line_is_no_file() -> None:
    assert locations.in_a_file(COMMAND_LINE) is None
    assert str(COMMAND_LINE) == locations.file_name(COMMAND_LINE.file) == "command line"
