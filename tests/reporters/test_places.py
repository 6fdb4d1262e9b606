"""Places as readers see them."""

from agentci.model.place import COMMAND_LINE, Place
from agentci.reporters import places


def test_a_file_keeps_its_line_and_column() -> None:
    place = Place(file="a.yaml", line=3, column=2)
    assert places.in_a_file(place) is place
    assert str(place) == "a.yaml:3:2"


def test_the_command_line_is_no_file() -> None:
    assert places.in_a_file(COMMAND_LINE) is None
    assert str(COMMAND_LINE) == places.file_name(COMMAND_LINE.file) == "command line"
