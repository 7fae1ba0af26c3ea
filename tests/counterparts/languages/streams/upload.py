"""Uploads a file COUNT times over HTTP/2, each time on a new connection: upload.py URL FILE COUNT

Prints the status of each, or the error.
"""

import sys

import httpx

url, file, count = sys.argv[1:]
with open(file, "rb") as opened:
    body = opened.read()
for _ in range(int(count)):
    with httpx.Client(http2=True, verify=False, timeout=60) as client:
        try:
            answer = client.post(url, content=body)
            assert answer.http_version == "HTTP/2", answer.http_version
            print(answer.status_code)
        except httpx.HTTPError as error:
            print(repr(error))
