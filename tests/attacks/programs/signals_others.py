import fcntl
import os
import platform
import signal

from attempts import attempt, report, syscall

TGKILL, RT_SIGQUEUEINFO = {"x86_64": (234, 129), "aarch64": (131, 138)}[platform.machine()]
SIGNALS = ("SIGSTOP", "SIGTERM", "SIGKILL", "SIGINT", "SIGHUP", "SIGUSR1")


def kill_by_descriptor(process):
    signal.pidfd_send_signal(os.pidfd_open(process), signal.SIGKILL)
    return "sent"


def kill(process, number):
    os.kill(process, number)
    return "sent"


others = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
for process in others:
    for name in SIGNALS:
        attempt(f"{name} {process}", lambda: kill(process, getattr(signal, name)))
    attempt(f"pidfd {process}", lambda: kill_by_descriptor(process))
    attempt(f"tgkill {process}", lambda: syscall(TGKILL, process, process, 9))
    attempt(f"rt_sigqueueinfo {process}", lambda: syscall(RT_SIGQUEUEINFO, process, 9, 0))
if os.getppid() in others:
    # SIGIO would be sent to the owner of the pipe; setting the owner may succeed.
    try:
        fcntl.fcntl(0, fcntl.F_SETOWN, os.getppid())
    except OSError:
        pass
report(others=len(others))
