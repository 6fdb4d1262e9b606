"""System calls that could lead out of the sandbox, by their numbers on x86-64."""

import ctypes
import os

from attempts import attempt, report, syscall

PARENT, HERE = os.getppid(), -100
NEW_USER, NEW_MOUNTS, CREATE = 0x10000000, 0x20000, 0o102


def buffer(size=200):
    return ctypes.create_string_buffer(size)


CALLS = {
    # other processes
    "ptrace": (101, 16, PARENT, 0, 0),
    "process_vm_readv": (310, PARENT, 0, 0, 0, 0, 0),
    "process_vm_writev": (311, PARENT, 0, 0, 0, 0, 0),
    "pidfd_getfd": (438, 0, 0, 0),
    "kcmp": (312, PARENT, os.getpid(), 0, 0, 0),
    "process_madvise": (440, 0, 0, 0, 20, 0),
    "process_mrelease": (448, 0, 0),
    "prlimit of parent": (302, PARENT, 7, 0, buffer(16)),
    "setpriority of parent": (141, 0, PARENT, 19),
    "ioprio_set of parent": (251, 1, PARENT, 0x6000),
    "sched_setaffinity of parent": (203, PARENT, 8, ctypes.create_string_buffer(b"\1", 8)),
    "sched_setscheduler of parent": (144, PARENT, 5, buffer(8)),
    "migrate_pages of parent": (256, PARENT, 8, buffer(8), buffer(8)),
    "move_pages of parent": (279, PARENT, 0, 0, 0, 0, 0),
    "get_robust_list of parent": (274, PARENT, 0, 0),
    # keys, and interfaces of the kernel with a history of faults
    "keyctl": (250, 0, 0),
    "add_key": (248, b"user", b"x", b"y", 1, -3),
    "request_key": (249, b"user", b"x", 0, 0),
    "bpf": (321, 0, 0, 0),
    "userfaultfd": (323, 0),
    "io_uring_setup": (425, 8, buffer()),
    "perf_event_open": (298, 0, 0, -1, -1, 0),
    "fanotify_init": (300, 0, 0),
    "lookup_dcookie": (212, 0, 0, 0),
    "memfd_secret": (447, 0),
    "get_mempolicy": (239, 0, 0, 0, 0, 0),
    "modify_ldt": (154, 0, 0, 0),
    "personality": (135, 0x0400000),
    "seccomp with listener": (317, 1, 8, 0),
    "landlock_create_ruleset": (444, 0, 0, 1),
    "lsm_set_self_attr": (460, 0, 0, 0, 0),
    "mseal": (462, 0, 0, 0),
    # mounts, namespaces and handles of files
    "mount": (165, b"none", b"/tmp", b"tmpfs", 0, 0),
    "umount2": (166, b"/proc", 2),
    "pivot_root": (155, b".", b"."),
    "chroot": (161, b"."),
    "fsopen": (430, b"tmpfs", 0),
    "fsconfig": (431, 0, 0, 0, 0, 0),
    "open_tree": (428, HERE, b"/", 1),
    "open_tree_attr": (467, HERE, b"/", 0, 0, 0),
    "move_mount": (429, HERE, b"/", HERE, b"/", 0),
    "mount_setattr": (442, HERE, b"/", 0, 0, 0),
    "statmount": (457, 0, 0, 0, 0),
    "listmount": (458, 0, 0, 0, 0),
    "unshare of users": (272, NEW_USER),
    "unshare of mounts": (272, NEW_MOUNTS),
    "setns": (308, 0, 0),
    "clone3": (435, buffer(88), 88),
    "name_to_handle_at": (303, HERE, b"/", buffer(), buffer(8), 0),
    "open_by_handle_at": (304, HERE, buffer(), 0),
    # shared memory and queues
    "shmget": (29, 1234, 4096, 0o1777),
    "semget": (64, 1234, 1, 0o1777),
    "msgget": (68, 1234, 0o1777),
    "mq_open": (240, b"x", CREATE, 0o600, 0),
    # the machine
    "kexec_load": (246, 0, 0, 0, 0),
    "init_module": (175, 0, 0, b""),
    "finit_module": (313, 0, b"", 0),
    "reboot": (169, 0, 0, 0, 0),
    "swapon": (167, b"/x", 0),
    "acct": (163, b"/tmp/x"),
    "quotactl": (179, 0, 0, 0, 0),
    "syslog": (103, 3, buffer(), 100),
    "iopl": (172, 3),
    "sethostname": (170, b"x", 1),
    "settimeofday": (164, buffer(16), 0),
    "clock_settime": (227, 0, buffer(16)),
    "adjtimex": (159, buffer(300)),
    "vhangup": (153,),
    # other users
    "setuid": (105, 0),
    "setgid": (106, 0),
    "setgroups": (116, 0, 0),
}
for name, (number, *arguments) in CALLS.items():
    attempt(name, lambda: syscall(number, *arguments))
report()
