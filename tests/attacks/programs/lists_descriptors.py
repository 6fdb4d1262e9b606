import os

from attempts import report

FOLDER = "/proc/self/fd"
found = {}
for name in os.listdir(FOLDER):
    try:
        found[int(name)] = os.readlink(f"{FOLDER}/{name}")
    except FileNotFoundError:
        pass  # the descriptor with which the folder was listed
report(descriptors=found)
