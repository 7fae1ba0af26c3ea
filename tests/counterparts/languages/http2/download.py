"""Downloads URL COUNT times over HTTP/2 without TLS, on one connection: download.py URL COUNT

Prints the status and the number of bytes of each.
"""

import sys

import httpx

url, count = sys.argv[1:]
with httpx.Client(http1=False, http2=True, timeout=20) as client:
    for _ in range(int(count)):
        answer = client.get(url)
        assert answer.http_version == "HTTP/2", answer.http_version
        print(answer.status_code, len(answer.content))
