"""A blog in Python: plain WSGI under gunicorn's workers, psycopg 3 and its pool."""

import json
import os

from psycopg_pool import ConnectionPool

pool = None


def connections():
    """The worker's own pool: made after the fork."""
    global pool
    if pool is None:
        conninfo = os.environ["DATABASE_URL"] + "?sslmode=disable"
        pool = ConnectionPool(conninfo, min_size=1, max_size=1, open=True)
    return pool


def index():
    """One query."""
    with connections().connection() as connection:
        posts = connection.execute("SELECT id, title FROM posts ORDER BY id LIMIT 10")
        return posts.fetchall()


def detail():
    """Three queries. psycopg opens a transaction around whatever one connection does."""
    with connections().connection() as connection:
        post = connection.execute(
            "SELECT title, name FROM posts JOIN authors ON authors.id = author"
            " WHERE posts.id = %s",
            (1,),
        ).fetchone()
        comments = connection.execute(
            "SELECT text FROM comments WHERE post = %s ORDER BY id", (1,)
        ).fetchall()
        connection.execute("UPDATE posts SET seen = seen + 1 WHERE id = %s", (1,))
        return [post, comments]


def authors():
    """One query for the authors, and one for each of them."""
    with connections().connection() as connection:
        ids = connection.execute("SELECT id FROM authors ORDER BY id").fetchall()
        count = "SELECT count(*) FROM posts WHERE author = %s"
        return {id: connection.execute(count, (id,)).fetchone()[0] for (id,) in ids}


PAGES = {"/posts": index, "/posts/1": detail, "/authors": authors}


def application(request, start_response):
    page = PAGES.get(request["PATH_INFO"])
    body = json.dumps(page() if page else None).encode()
    status = "200 OK" if page else "404 Not Found"
    length = ("Content-Length", str(len(body)))
    start_response(status, [("Content-Type", "application/json"), length])
    return [body]
