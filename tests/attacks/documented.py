"""Effects of attacks that are documented as not prevented, in docs/security.md."""

from typing import Final

from tests.attacks.job import Mode

# With a shared user, a program can change permissions and times of the user's files, ...
FILES: Final = frozenset({"chmod", "utime", "setxattr"})
# ... and lower the priority of the user's processes.
PRIORITIES: Final = frozenset(
    {
        *("setpriority of parent", "ioprio_set of parent"),
        *("sched_setaffinity of parent", "sched_setscheduler of parent"),
    }
)
# System calls that succeed, and reach only the program itself or what everyone may see.
HARMLESS_CALLS: Final = frozenset(
    {
        *("landlock_create_ruleset", "modify_ldt", "memfd_secret", "get_mempolicy", "personality"),
        *("process_madvise", "adjtimex", "get_robust_list of parent", "lookup_dcookie", "mseal"),
        *("statmount", "listmount"),
    }
)
# A bound end of a socket pair cannot be reached: its address is closed to all others.
HARMLESS_SOCKETS: Final = frozenset({"pair, then bind"})


def with_shared_user(mode: Mode, effects: frozenset[str]) -> frozenset[str]:
    """The effects where a program shares agentci's user, otherwise none."""
    return effects if mode == "user" else frozenset()


# The protocol of agentevals reads numbers in texts, and so do we in verdicts of models.
NUMBERS_IN_TEXTS: Final = frozenset({"text"})
