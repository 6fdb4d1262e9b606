import socket

from attempts import CONFIG, attempt, report


def connect(address):
    socket.socket(socket.AF_UNIX).connect(address)
    return "connected"


def send(address):
    return socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", address)


for address in CONFIG["addresses"]:
    attempt(f"connect {address!r}", lambda: connect(address))
    attempt(f"send {address!r}", lambda: send(address))
report()
