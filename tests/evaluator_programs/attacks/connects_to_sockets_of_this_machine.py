import socket

from attack import SCENE, attempt

attempt(
    {
        "Docker": lambda: socket.socket(socket.AF_UNIX).connect("/var/run/docker.sock") or 1,
        "the engine's socket": lambda: socket.socket(socket.AF_UNIX).connect(SCENE["engine"]) or 1,
        "an abstract socket": lambda: socket.socket(socket.AF_UNIX).connect(SCENE["abstract"]) or 1,
    }
)
