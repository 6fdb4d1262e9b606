"""Messages between processes arrive completely or not at all."""

import json
import socket

from agentci.execution.child.socket_messages import LENGTH, receive, send, send_json


def test_message_arrives_unchanged() -> None:
    ours, its = socket.socketpair()
    with ours, its:
        message = {"command": [b"\xff"], "text": "\u00e9", "user": None}
        send(ours, message)
        assert receive(its) == message


def test_special_characters_are_escaped_in_json() -> None:
    ours, its = socket.socketpair()
    with ours, its:
        answer = {
            "code": -9,
            "may_remain": False,
            "failure": {"errno": None, "reason": 'a "\\\n\x00'},
        }
        send_json(ours, answer | {"more": "\u00e9\udcff"})
        content = its.recv(1000)
    assert LENGTH.unpack_from(content) == (len(content) - LENGTH.size,)
    assert json.loads(content[LENGTH.size :]) == answer | {"more": "\\xe9\\udcff"}


def test_truncated_message_is_discarded() -> None:
    ours, its = socket.socketpair()
    with its:
        ours.sendall(b"\0\0\0\x10half")
        ours.close()
        assert receive(its) is None


def test_connection_reset_counts_as_end() -> None:
    ours, its = socket.socketpair()
    with its:
        its.sendall(b"unread")
        ours.close()
        assert receive(its) is None
