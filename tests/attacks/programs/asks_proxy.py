"""Sends raw requests to the proxy of a judge's model, and connects to other ports."""

import json
import os
import socket
import sys

json.load(sys.stdin)
port = int(os.environ["AGENTV_TARGET_PROXY_URL"].rpartition(":")[2])
token = os.environ["AGENTV_TARGET_PROXY_TOKEN"]
right, wrong = f"Authorization: Bearer {token}\r\n", f"Authorization: Bearer {'0' * 64}\r\n"
INFO = "GET /info HTTP/1.1\r\n"
INVOKE = "POST /invoke HTTP/1.1\r\n"
REQUESTS = {
    "no token": f"{INFO}Host: x\r\n\r\n",
    "wrong token": f"{INFO}{wrong}\r\n",
    "start of token": f"{INFO}{right[:-3]}\r\n\r\n",
    "two tokens": f"{INFO}{wrong}{right}\r\n",
    "right token": f"{INFO}{right}\r\n",
    "absolute address": f"GET http://127.0.0.1:22/ HTTP/1.1\r\n{right}\r\n",
    "connect": f"CONNECT 127.0.0.1:22 HTTP/1.1\r\n{right}\r\n",
    "two lengths": f"{INVOKE}{right}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "negative length": f"{INVOKE}{right}Content-Length: -1\r\n\r\n",
    "huge length": f"{INVOKE}{right}Content-Length: 99999999999\r\n\r\n",
    "long header": f"{INFO}X: {'y' * 200_000}\r\n\r\n",
}


def ask(request, seconds=5):
    """The status line of the answer; empty if there is none."""
    received = b""
    try:
        with socket.create_connection(("127.0.0.1", port)) as channel:
            channel.settimeout(seconds)
            channel.sendall(request.encode())
            while b"\n" not in received and (piece := channel.recv(65536)):
                received += piece
    except OSError:
        pass
    return received.split(b"\r\n")[0].decode("latin-1")


def can_connect(host, number):
    try:
        socket.create_connection((host, number), timeout=5).close()
    except OSError:
        return False
    return True


answers = {name: ask(request) for name, request in REQUESTS.items()}
others = {"another port": can_connect("127.0.0.1", int(sys.argv[1])), "another host": can_connect("1.1.1.1", port)}
idle = []
for _ in range(20):
    try:
        idle.append(socket.create_connection(("127.0.0.1", port), timeout=5))
        idle[-1].send(b"G")
    except OSError:
        break
answers["beside 20 idle connections"] = ask(REQUESTS["right token"], seconds=120)
found = json.dumps({"answers": answers, "others": others})
print(json.dumps({"score": 1, "hits": [], "misses": [], "reasoning": found}))
