"""psycopg2: parameters become text on the client's side."""

import psycopg2
from operations import DATABASE, HOST, PASSWORD, PLAIN, PORT, SCRAM, TRUSTED, serve

PARAMETER = "SELECT name FROM zoo WHERE id = %s"


class Client:
    def __init__(self):
        self.connection = None

    def connect(self, user, sslmode):
        if self.connection:
            self.connection.close()
        self.connection = psycopg2.connect(
            host=HOST,
            port=PORT,
            dbname=DATABASE,
            user=user,
            password=PASSWORD,
            sslmode=sslmode,
        )
        self.connection.autocommit = True

    def query(self, sql, parameters=None):
        with self.connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            return cursor.fetchall()

    def transaction(self):
        self.connection.autocommit = False
        with self.connection:
            for number in (1, 2, 3):
                self.query(PARAMETER, (number,))
        self.connection.autocommit = True

    def perform(self, operation):
        match operation:
            case "connect":
                self.connect(TRUSTED, "disable")
            case "connect, TLS offered":
                self.connect(TRUSTED, "prefer")
            case "connect, SCRAM":
                self.connect(SCRAM, "disable")
            case "plain query":
                self.query(PLAIN)
            case "parameter query" | "again":
                self.query(PARAMETER, (1,))
            case "transaction of 3 queries":
                self.transaction()
            case _:
                raise ValueError("unknown operation")


serve(f"psycopg2 {psycopg2.__version__}", Client().perform)
