"""A page and a WebSocket that echoes: the address to listen on is the argument."""

import asyncio
import http
import sys

from websockets.asyncio.server import serve


def page(connection, request):
    if request.path == "/":
        response = connection.respond(http.HTTPStatus.OK, "<!doctype html><title>echo</title>")
        del response.headers["Content-Type"]
        response.headers["Content-Type"] = "text/html"
        return response
    if request.path == "/refused":
        return connection.respond(http.HTTPStatus.FORBIDDEN, "no\n")
    return None


async def echo(socket):
    async for message in socket:
        if message == "close":
            await socket.close(4001, "as asked")
            return
        await socket.send(message)


async def main():
    host, port = sys.argv[1].rsplit(":", 1)
    async with serve(echo, host, int(port), process_request=page, max_size=None):
        print("ready", flush=True)
        await asyncio.get_running_loop().create_future()


asyncio.run(main())
