"""Never ends, and says before what it waits for."""

import sys
import time

print("waiting for the model", file=sys.stderr, flush=True)
time.sleep(300)
