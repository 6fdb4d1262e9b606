"""Where the program is that fills templates."""

import os
from typing import Final

RENDER: Final = os.path.join(os.path.dirname(os.path.realpath(__file__)), "render.py")
