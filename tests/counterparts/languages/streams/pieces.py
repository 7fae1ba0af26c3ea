"""Uploads a body in COUNT small pieces over HTTP/2, and asks for another page meanwhile: pieces.py URL COUNT

Prints the status of both.
"""

import asyncio
import sys

import httpx

url, count = sys.argv[1:]


async def pieces():
    for _ in range(int(count)):
        yield b"x" * 50


async def main():
    async with httpx.AsyncClient(http2=True, verify=False, timeout=60) as client:
        uploading = asyncio.create_task(client.post(url, content=pieces()))
        await asyncio.sleep(0)
        other = await client.get(url + "other")
        upload = await uploading
        assert upload.http_version == other.http_version == "HTTP/2"
        print(other.status_code, upload.status_code, upload.text)


asyncio.run(main())
