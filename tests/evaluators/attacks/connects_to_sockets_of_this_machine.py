import socket

from attack import SCENE, attempt

attempt(
    {
        "the engine's socket": lambda: socket.socket(socket.AF_UNIX).connect(SCENE["engine"]) or 1,
        "an abstract socket": lambda: socket.socket(socket.AF_UNIX).connect(SCENE["abstract"]) or 1,
    }
)
