import socket

from attempts import attempt, report, syscall

FAMILIES = {
    "UNIX": 1, "INET": 2, "AX25": 3, "INET6": 10, "KEY": 15, "NETLINK": 16, "PACKET": 17,
    "RDS": 21, "CAN": 29, "TIPC": 30, "BLUETOOTH": 31, "IUCV": 32, "PHONET": 35, "ALG": 38,
    "VSOCK": 40, "KCM": 41, "QIPCRTR": 42, "SMC": 43, "XDP": 44, "MCTP": 45,
}  # fmt: skip
STREAM, DATAGRAM, RAW, SEQUENCED, STREAM_CLOSED_ON_EXEC = 1, 2, 3, 5, 0x80001


def bind_pair():
    left, _ = socket.socketpair()
    left.bind("\0attack")
    return "bound"


def connect_pair():
    left, _ = socket.socketpair()
    left.connect("/var/run/docker.sock")
    return "connected"


for name, family in FAMILIES.items():
    for kind in (STREAM, DATAGRAM, RAW, SEQUENCED, STREAM_CLOSED_ON_EXEC):
        attempt(f"{name} {kind}", lambda: socket.socket(family, kind).fileno())
attempt("pair of datagrams", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
attempt("pair of INET", lambda: socket.socketpair(socket.AF_INET, socket.SOCK_STREAM))
attempt("pair of TIPC", lambda: socket.socketpair(FAMILIES["TIPC"], socket.SOCK_STREAM))
# With a larger number than the kernel reads, a filter may compare more bits than it.
attempt("family of 64 bits", lambda: syscall(41, (1 << 32) | 2, 1, 0))
attempt("/dev/vsock", lambda: open("/dev/vsock"))
attempt("/dev/net/tun", lambda: open("/dev/net/tun"))
attempt("pair, then connect", connect_pair)
attempt("pair, then bind", bind_pair)
report()
