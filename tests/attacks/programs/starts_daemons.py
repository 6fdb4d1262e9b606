import os
import signal
import time

from attempts import CONFIG, LIBC, report

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, PR_SET_NAME = 1, 36, 15


def start_daemon(depth):
    if os.fork():
        return
    os.setsid()
    LIBC.prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0)
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    LIBC.prctl(PR_SET_NAME, b"kworker/0:1", 0, 0, 0)
    if depth:
        start_daemon(depth - 1)
    for descriptor in range(3):
        os.close(descriptor)
    for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    os.execve("/bin/sleep", [CONFIG["word"], "600"], {})


def count_daemons():
    count = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline") as file:
                count += CONFIG["word"] in file.read()
        except OSError:
            pass  # it has ended, or is closed
    return count


for _ in range(20):
    start_daemon(3)
for _ in range(1000):
    if count_daemons() == 80:
        break
    time.sleep(0.01)
report(daemons=count_daemons())
