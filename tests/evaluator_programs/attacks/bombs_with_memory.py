from attack import attempt

LIMIT = 2 * 1024**3


def take():
    held, size = [], 0
    while size < LIMIT:
        held.append(bytearray(b"x") * (16 * 1024**2))
        size += 16 * 1024**2
    return True


attempt({"memory": take})
