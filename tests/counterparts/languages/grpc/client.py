"""Calls of gRPC through a gateway: `client.py ADDRESS [--root FILE] WHAT [COUNT [SECONDS]]`.

Prints a line of JSON for each outcome, and fails where something is wrong that needs no other process to see.
"""

import json
import queue
import sys
import time

import grpc

PATIENCE = 60


def channel(arguments):
    address = arguments.pop(0)
    if arguments[0] != "--root":
        return grpc.insecure_channel(address)
    arguments.pop(0)
    root = open(arguments.pop(0), "rb").read()
    options = (("grpc.ssl_target_name_override", "a.test"),)
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(root), options)


class Echo:
    def __init__(self, channel):
        self.unary = channel.unary_unary("/test.Echo/Unary")
        self.server_stream = channel.unary_stream("/test.Echo/ServerStream")
        self.client_stream = channel.stream_unary("/test.Echo/ClientStream")
        self.both_ways = channel.stream_stream("/test.Echo/BothWays")


def fails_with(call, code, details):
    try:
        call()
    except grpc.RpcError as error:
        assert error.code() == code, error
        assert error.details() == details, error
        return dict(error.trailing_metadata())
    raise AssertionError("it did not fail")


def kinds(echo):
    """All four kinds of calls, with metadata, large messages and errors."""
    note = (("x-note", "first"), ("x-bin-bin", b"\x00\x01"))
    answer, call = echo.unary.with_call(b"hello", timeout=PATIENCE, metadata=note)
    assert answer == b"HELLO"
    assert dict(call.initial_metadata())["seen-note"] == "first"
    assert dict(call.trailing_metadata()) == {"trailing": "yes", "trailing-bin": b"\x00\xff"}

    large = b"x" * 3_000_000
    assert echo.unary(large, timeout=PATIENCE) == large.upper()
    assert echo.unary(b"", timeout=PATIENCE) == b""

    numbers = echo.server_stream(b"2000", timeout=PATIENCE)
    assert [int(number) for number in numbers] == list(range(2000))

    pieces = [b"%d," % number for number in range(2000)] + [b"y" * 1_000_000]
    assert echo.client_stream(iter(pieces), timeout=PATIENCE) == b"".join(pieces).upper()

    # Each message is answered before the next one is sent.
    outbox = queue.Queue()
    answers = echo.both_ways(iter(outbox.get, None), timeout=PATIENCE)
    for number in range(100):
        outbox.put(b"message %d" % number)
        assert next(answers) == b"MESSAGE %d" % number
    outbox.put(None)
    assert list(answers) == []

    for name in ("NOT_FOUND", "UNAVAILABLE", "RESOURCE_EXHAUSTED"):
        def call():
            echo.unary(b"x", timeout=PATIENCE, metadata=(("fail", name),))

        trailing = fails_with(call, grpc.StatusCode[name], "told to fail: 100 %")
        assert trailing["trailing"] == "yes", trailing

    streamed = echo.server_stream(b"1000000", timeout=PATIENCE)
    next(streamed)
    streamed.cancel()
    print(json.dumps({"code": "OK"}))


def idle(echo, _count, seconds):
    """A call in which both sides are silent for a while, before and after the first message."""
    outbox = queue.Queue()
    late = (("late", "yes"),)
    answers = echo.both_ways(iter(outbox.get, None), timeout=PATIENCE, metadata=late)
    for _ in range(2):
        time.sleep(seconds)
        outbox.put(b"x")
        assert next(answers) == b"X"
    outbox.put(None)
    assert list(answers) == []
    print(json.dumps({"code": "OK"}))


def many(echo, count, seconds):
    """Calls at once, each with this deadline."""
    began = time.monotonic()
    calls = [echo.unary.future(b"x", timeout=seconds) for _ in range(count)]
    ended = {}
    for number, call in enumerate(calls):
        call.add_done_callback(lambda _, number=number: ended.setdefault(number, time.monotonic()))
    for number, call in enumerate(calls):
        outcome = {"code": call.code().name}
        if call.code() != grpc.StatusCode.OK:
            told = dict(call.trailing_metadata())
            outcome["details"] = call.details()
            outcome["pushback"] = told.get("grpc-retry-pushback-ms")
        while number not in ended:
            time.sleep(0.001)
        outcome["took"] = ended[number] - began
        print(json.dumps(outcome))


def in_turn(echo, count, seconds):
    """Calls one after another, a few milliseconds apart."""
    for _ in range(count):
        try:
            echo.unary(b"x", timeout=seconds)
            print(json.dumps({"code": "OK"}), flush=True)
        except grpc.RpcError as error:
            print(json.dumps({"code": error.code().name, "details": error.details()}), flush=True)
        time.sleep(0.005)


def main():
    arguments = sys.argv[1:]
    with channel(arguments) as opened:
        what, *numbers = arguments
        globals()[what](Echo(opened), *(f(it) for f, it in zip((int, float), numbers)))


main()
