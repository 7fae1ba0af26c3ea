"""Uploads SIZE bytes COUNT times at once over one connection of HTTP/2: parallel.py URL COUNT SIZE

Prints a line for each: the status, or the error.
"""

import asyncio
import sys

import httpx

url, count, size = sys.argv[1:]
body = b"x" * int(size)


async def upload(client):
    try:
        answer = await client.post(url, content=body)
    except httpx.HTTPError as error:
        return repr(error)
    return answer.status_code if answer.http_version == "HTTP/2" else answer.http_version


async def main():
    async with httpx.AsyncClient(http2=True, verify=False, timeout=60) as client:
        # A first request, so that all others find its connection.
        await client.get(url + "/none")
        for told in await asyncio.gather(*(upload(client) for _ in range(int(count)))):
            print(told)


asyncio.run(main())
