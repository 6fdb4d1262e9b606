import os

from attempts import CONFIG, report


def fill(folder):
    """Write to files that have no name any more, and return the MiB that could be written."""
    written = 0
    try:
        for _ in range(2):
            kept.append(open(f"{folder}/deleted", "wb"))
            os.unlink(kept[-1].name)
            for _ in range(600):
                kept[-1].write(bytes(1 << 20))
                written += 1
    except OSError:
        pass
    return written


kept = []
report(mebibytes=[fill(folder or os.environ["TMPDIR"]) for folder in CONFIG["folders"]])
