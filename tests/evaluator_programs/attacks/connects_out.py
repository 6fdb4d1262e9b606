import os
import socket
import subprocess
import sys

from attack import SCENE, attempt


def tcp(family, host):
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.settimeout(5)
        client.connect((host, SCENE["ports"][host]))
        return True


def udp(family, host):
    with socket.socket(family, socket.SOCK_DGRAM) as client:
        return client.sendto(b"x", (host, 53))


def dns():
    return socket.getaddrinfo("localhost.example", 80) or True


def grandchild():
    program = (
        "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5).close()"
    )
    command = [sys.executable, "-I", "-c", program, str(SCENE["ports"]["127.0.0.1"])]
    return subprocess.run(["setsid", *command], stderr=subprocess.DEVNULL).returncode == 0


def node():
    program = "require('net').connect(+process.argv[1], '127.0.0.1', () => process.exit(7))"
    port = str(SCENE["ports"]["127.0.0.1"])
    return subprocess.run(["node", "-e", program, port], stderr=-3, stdout=-3).returncode == 7


attempt(
    {
        "TCP": lambda: tcp(socket.AF_INET, "127.0.0.1"),
        "TCP over IPv6": lambda: tcp(socket.AF_INET6, "::1"),
        "UDP": lambda: udp(socket.AF_INET, "127.0.0.1"),
        "UDP over IPv6": lambda: udp(socket.AF_INET6, "::1"),
        "DNS": dns,
        "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
        "packets": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW),
        "a grandchild": grandchild,
        "Node.js": node,
        "Docker": lambda: socket.socket(socket.AF_UNIX).connect("/var/run/docker.sock") or 1,
        "the engine's socket": lambda: socket.socket(socket.AF_UNIX).connect(SCENE["engine"]) or 1,
        "an abstract socket": lambda: socket.socket(socket.AF_UNIX).connect(SCENE["abstract"]) or 1,
    }
)
