import os

for number in range(2_000_000):
    open(f"{os.environ['TMPDIR']}/{number}", "w").close()
