"""pg8000: everything by extended messages, each part with a Sync of its own."""

from importlib.metadata import version

import pg8000.native
from operations import DATABASE, HOST, PASSWORD, PLAIN, PORT, SCRAM, TRUSTED, serve

PARAMETER = "SELECT name FROM zoo WHERE id = :id"


class Client:
    def __init__(self):
        self.connection = None
        self.statement = None

    def connect(self, user, ssl_context):
        if self.connection:
            self.connection.close()
        self.connection = pg8000.native.Connection(
            user,
            host=HOST,
            port=int(PORT),
            database=DATABASE,
            password=PASSWORD,
            ssl_context=ssl_context,
        )

    def perform(self, operation):
        match operation:
            case "connect":
                self.connect(TRUSTED, False)
            case "connect, TLS offered":
                self.connect(TRUSTED, None)
            case "connect, SCRAM":
                self.connect(SCRAM, False)
            case "plain query":
                self.connection.run(PLAIN)
            case "parameter query" | "again":
                self.connection.run(PARAMETER, id=1)
            case "prepare":
                self.statement = self.connection.prepare(PARAMETER)
            case "prepared query":
                self.statement.run(id=1)
            case "transaction of 3 queries":
                self.connection.run("START TRANSACTION")
                for number in (1, 2, 3):
                    self.connection.run(PARAMETER, id=number)
                self.connection.run("COMMIT")
            case _:
                raise ValueError("unknown operation")


serve(f"pg8000 {version('pg8000')}", Client().perform)
