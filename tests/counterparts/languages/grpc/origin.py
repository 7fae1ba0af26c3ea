"""A gRPC server with one method of each kind, at the address in its first argument.

Certificate and key may follow. It answers each message in capitals. Of the metadata, `fail` names a status to end
the call with, `pause` a number of seconds to wait before each message, and `late` keeps the head back until the
first message. It prints `ready`, and the time of each call. SIGTERM stops it gracefully.
"""

import signal
import sys
import time
from concurrent import futures

import grpc


def begin(context):
    # In one piece, because calls run on several threads.
    sys.stdout.write(f"call {time.monotonic()}\n")
    sys.stdout.flush()
    told = dict(context.invocation_metadata())
    if "late" not in told:
        context.send_initial_metadata((("seen-note", told.get("x-note", "")),))
    context.set_trailing_metadata((("trailing", "yes"), ("trailing-bin", b"\x00\xff")))
    if "fail" in told:
        context.abort(grpc.StatusCode[told["fail"]], "told to fail: 100 %")
    return float(told.get("pause", "0"))


def unary(message, context):
    time.sleep(begin(context))
    return message.upper()


def server_stream(message, context):
    pause = begin(context)
    for number in range(int(message)):
        time.sleep(pause)
        yield b"%d" % number


def client_stream(messages, context):
    time.sleep(begin(context))
    return b"".join(message.upper() for message in messages)


def both_ways(messages, context):
    pause = begin(context)
    for message in messages:
        time.sleep(pause)
        yield message.upper()


def main():
    address = sys.argv[1]
    server = grpc.server(futures.ThreadPoolExecutor(64))
    handlers = {
        "Unary": grpc.unary_unary_rpc_method_handler(unary),
        "ServerStream": grpc.unary_stream_rpc_method_handler(server_stream),
        "ClientStream": grpc.stream_unary_rpc_method_handler(client_stream),
        "BothWays": grpc.stream_stream_rpc_method_handler(both_ways),
    }
    service = grpc.method_handlers_generic_handler("test.Echo", handlers)
    server.add_generic_rpc_handlers((service,))
    if len(sys.argv) > 2:
        pair = [open(name, "rb").read() for name in (sys.argv[3], sys.argv[2])]
        bound = server.add_secure_port(address, grpc.ssl_server_credentials([tuple(pair)]))
    else:
        bound = server.add_insecure_port(address)
    assert bound, address
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    server.start()
    print("ready", flush=True)
    signal.sigwait({signal.SIGTERM})
    server.stop(10).wait()


main()
