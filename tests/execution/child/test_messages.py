"""Messages arrive whole, or not at all."""

import json
import socket

from agentci.execution.child.messages import LENGTH, receive, send, send_json


def test_a_message_arrives_as_it_was_sent() -> None:
    ours, its = socket.socketpair()
    with ours, its:
        message = {"command": [b"\xff"], "text": "\u00e9", "user": None}
        send(ours, message)
        assert receive(its) == message


def test_an_answer_is_json_whatever_it_says() -> None:
    ours, its = socket.socketpair()
    with ours, its:
        said = {
            "code": -9,
            "may_remain": False,
            "failure": {"errno": None, "reason": 'a "\\\n\x00'},
        }
        send_json(ours, said | {"more": "\u00e9\udcff"})
        content = its.recv(1000)
    assert LENGTH.unpack_from(content) == (len(content) - LENGTH.size,)
    assert json.loads(content[LENGTH.size :]) == said | {"more": "\\xe9\\udcff"}


def test_an_end_in_the_middle_is_no_message() -> None:
    ours, its = socket.socketpair()
    with its:
        ours.sendall(b"\0\0\0\x10half")
        ours.close()
        assert receive(its) is None


def test_a_reset_is_an_end() -> None:
    ours, its = socket.socketpair()
    with its:
        its.sendall(b"unread")
        ours.close()
        assert receive(its) is None
