import socket
import subprocess
import sys

from attack import SCENE, attempt

OTHERS = [port for port in SCENE["ports"].values() if port != SCENE["door"]]
FASTOPEN, MULTIPATH, LO = 0x20000000, 262, b"lo\0"
HERE = "127.0.0.1"

# What it may: without this the rest would prove nothing.
socket.create_connection((HERE, SCENE["door"]), 10).close()


def connects(host, port, seconds=5):
    with socket.create_connection((host, port), seconds):
        return True


def sends(port):
    with socket.socket() as one:
        return one.sendto(b"x", FASTOPEN, (HERE, port))


def sends_a_message(port):
    with socket.socket() as one:
        return one.sendmsg([b"x"], [], FASTOPEN, (HERE, port))


def opens_fast_on_connect(port):
    with socket.socket() as one:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN_CONNECT, 1)
        one.connect((HERE, port))
        return one.send(b"x")


def leaves(device):
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device)
        return True


def is_free():
    with socket.socket() as one:
        return one.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16) != LO


def listens():
    with socket.socket() as one:
        one.listen()
        return True


def binds():
    with socket.socket() as one:
        one.bind((HERE, 0))
        return True


def by_another_program(port):
    line = f"import socket; socket.create_connection(({HERE!r}, {port}), 5)"
    return subprocess.run([sys.executable, "-c", line], stderr=subprocess.DEVNULL).returncode == 0


attempt(
    {
        **{f"port {port}": lambda port=port: connects(HERE, port) for port in OTHERS},
        **{f"{port}, sent to": lambda port=port: sends(port) for port in OTHERS},
        **{f"{port}, by a message": lambda port=port: sends_a_message(port) for port in OTHERS},
        **{f"{port}, opened fast": lambda port=port: opens_fast_on_connect(port) for port in OTHERS},
        **{f"{port}, by another": lambda port=port: by_another_program(port) for port in OTHERS},
        "another machine": lambda: connects("192.0.2.1", 443, 1),
        "another machine at its port": lambda: connects("192.0.2.1", SCENE["door"], 1),
        "sockets that leave this machine": is_free,
        "any device": lambda: leaves(b""),
        "another device": lambda: leaves(b"eth0\0"),
        "IPv6": lambda: connects("::1", SCENE["ports"]["::1"]),
        "IPv6 at its port": lambda: connects("::1", SCENE["door"]),
        "UDP": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        "raw packets": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW),
        "ping": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP),
        "several paths": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, MULTIPATH),
        "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
        "a socket in a folder": lambda: socket.socket(socket.AF_UNIX),
        "being called": listens,
        "a name": binds,
    }
)
