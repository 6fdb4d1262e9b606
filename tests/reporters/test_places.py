"""Places as readers see them."""

from agentci.model.place import COMMAND_LINE, Place
from agentci.reporters import places


def test_the_command_line_is_known_by_the_name_that_configs_give_it() -> None:
    assert COMMAND_LINE.file == places.COMMAND_LINE


def test_a_file_keeps_its_line_and_column() -> None:
    place = Place(file="a.yaml", line=3, column=2)
    assert places.in_a_file(place) is place
    assert places.where(place) == "a.yaml:3:2"
    assert places.where(COMMAND_LINE) == "command line"
