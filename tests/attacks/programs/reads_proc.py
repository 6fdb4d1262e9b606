import os

from attempts import attempt, report

NAMES = [
    *("environ", "mem", "maps", "smaps", "auxv", "stack", "syscall", "pagemap", "fd", "fdinfo"),
    *("map_files", "cwd/x", "root/etc/shadow", "root/etc/gshadow"),
]


def read(path):
    if os.path.isdir(path):
        return os.listdir(path) or None
    with open(path, "rb") as file:
        return file.read(64) or None


others = [name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
for process in others:
    for name in (*NAMES, f"task/{process}/environ"):
        path = f"/proc/{process}/{name}"
        attempt(path, lambda: read(path))
    for name in ("fd/1", "cwd", "exe", "root"):
        path = f"/proc/{process}/{name}"
        attempt(f"link {path}", lambda: os.readlink(path))
report(others=len(others))
