import os

with open(f"{os.environ['TMPDIR']}/large", "wb") as file:
    for _ in range(4096):
        file.write(bytes(1 << 20))
