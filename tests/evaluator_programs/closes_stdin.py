"""Closes stdin before anything can be read from it, and takes its time."""

import os
import time

os.close(0)
time.sleep(0.1)
print('{"score": 1.0}')
