"""An application as many have it: four processes, each with one request at a time, and SQLite.

app.py ADDRESS DATABASE WAIT_MS LOCK_MS WRITES

Each request counts rows, and waits for another service: WAIT_MS on average, exponential. A part of them, WRITES
from 0 to 1, then writes, and holds the database's only lock for LOCK_MS. It ends with the process that started it.
"""

import os
import random
import socket
import sqlite3
import sys
import time

PROCESSES = 4
ROWS = 2000


def fill(database):
    with sqlite3.connect(database) as connection:
        connection.execute("pragma journal_mode = wal")
        connection.execute("create table goods (id integer primary key, price integer, sold integer)")
        rows = ((row, row * 7919 % 1000, 0) for row in range(ROWS))
        connection.executemany("insert into goods values (?, ?, ?)", rows)


def work(database, wait, lock, writes):
    (count,) = database.execute("select count(*) from goods where price < ?", (random.randrange(1000),)).fetchone()
    time.sleep(random.expovariate(1 / wait))
    if random.random() < writes:
        # Waits for the lock as SQLite does: it looks again after 1, 2, 5 ms, and so on.
        database.execute("begin immediate")
        database.execute("update goods set sold = sold + 1 where id = ?", (random.randrange(ROWS),))
        time.sleep(lock)
        database.execute("commit")
    return str(count).encode()


def answer(connection, *settings):
    connection.settimeout(10)
    head = b""
    while b"\r\n\r\n" not in head:
        piece = connection.recv(8192)
        if not piece:
            return
        head += piece
    body = work(*settings)
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
    connection.sendall(head + body)


def serve(listener, parent, path, *settings):
    database = sqlite3.connect(path, timeout=60, isolation_level=None)
    database.execute("pragma synchronous = off")
    while os.getppid() == parent:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        except BlockingIOError:
            continue
        with connection:
            try:
                answer(connection, database, *settings)
            except OSError:
                # The client has left.
                pass


address, path, *numbers = sys.argv[1:]
wait, lock, writes = (float(number) for number in numbers)
fill(path)
host, port = address.rsplit(":", 1)
listener = socket.create_server((host, int(port)), backlog=1024)
listener.settimeout(1)
parent, starter = os.getpid(), os.getppid()
for _ in range(PROCESSES):
    if os.fork() == 0:
        random.seed()
        serve(listener, parent, path, wait / 1000, lock / 1000, writes)
        os._exit(0)
listener.close()
while os.getppid() == starter:
    time.sleep(0.5)
