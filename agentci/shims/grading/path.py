"""Where the program is that calls graders; it can be run by itself, with source text on stdin."""

import os
from typing import Final

GRADE: Final = os.path.join(os.path.dirname(os.path.realpath(__file__)), "grade.py")
