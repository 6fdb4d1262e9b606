import ctypes
import os

from attack import SCENE, attempt

LIBC = ctypes.CDLL(None, use_errno=True)


def mem():
    return os.open(f"/proc/{SCENE['pid']}/mem", os.O_RDONLY) > 0


def maps():
    return open(f"/proc/{SCENE['pid']}/maps").read()


def trace():
    return LIBC.ptrace(16, SCENE["pid"], 0, 0) == 0


def vm_read():
    class Vector(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]

    buffer = ctypes.create_string_buffer(8)
    here = Vector(ctypes.addressof(buffer), 8)
    there = Vector(id(SCENE), 8)
    read = LIBC.process_vm_readv(SCENE["pid"], ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    return read >= 0 or ctypes.get_errno() == 14  # a wrong address would be its only mistake


attempt({"mem": mem, "maps": maps, "ptrace": trace, "process_vm_readv": vm_read})
