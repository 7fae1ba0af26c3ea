"""An origin that tells what it reads by WSGI: the address to listen on is the argument."""

import sys
from http.cookies import SimpleCookie
from urllib.parse import parse_qs
from wsgiref.simple_server import WSGIRequestHandler, make_server


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


def origin(environ, start_response):
    cookies = SimpleCookie(environ.get("HTTP_COOKIE", ""))
    told = {
        # As Flask has it.
        "method": environ["REQUEST_METHOD"].upper(),
        "field": environ.get("HTTP_X_API_KEY", ""),
        "client": environ.get("HTTP_X_FORWARDED_FOR", ""),
        "host": environ.get("HTTP_HOST", ""),
        "cookie": cookies["my_key"].value if "my_key" in cookies else "",
        "argument": parse_qs(environ.get("QUERY_STRING", "")).get("my_key", [""])[-1],
    }
    body = "".join(f"{name}={value}\n" for name, value in told.items()).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


host, port = sys.argv[1].rsplit(":", 1)
make_server(host, int(port), origin, handler_class=Quiet).serve_forever()
