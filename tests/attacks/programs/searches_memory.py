"""Searches its own memory, of which much is from before the fork, for a secret."""

import re

from attempts import CONFIG, report

# Only ever reversed: the program must not find its own copy.
tails = [bytes(reversed(reverse.encode())) for reverse in CONFIG["reversed"]]
hits, size = [], 0
memory = open("/proc/self/mem", "rb", 0)
for line in open("/proc/self/maps"):
    first, last = (int(each, 16) for each in re.match(r"(\w+)-(\w+)", line).groups())
    if " r" not in line or "[v" in line:
        continue
    try:
        memory.seek(first)
        data = memory.read(last - first)
    except (OSError, ValueError, OverflowError):
        continue
    size += len(data)
    for number, tail in enumerate(tails):
        start, found = bytes(reversed(CONFIG["starts"][number].encode())), data.find(tail)
        while found >= 0:
            if data[:found].endswith(bytes(reversed(start))):
                hits.append(number)
            found = data.find(tail, found + 1)
report(hits=hits, size=size)
