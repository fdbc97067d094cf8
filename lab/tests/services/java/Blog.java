// A blog in Java: the JDK's own HTTP server and pgjdbc, one connection for each worker thread.

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Executors;

public final class Blog {
    private interface Page {
        String body(Session session) throws SQLException;
    }

    /** A connection and the statements that were prepared on it. */
    private static final class Session {
        final Connection connection;
        final Map<String, PreparedStatement> statements = new HashMap<>();

        Session() throws SQLException {
            String url = "jdbc:postgresql://" + env("PGHOST") + ":" + env("PGPORT") + "/";
            String options = env("PGDATABASE") + "?sslmode=disable";
            connection = DriverManager.getConnection(url + options, env("PGUSER"), env("PGPASSWORD"));
        }

        PreparedStatement with(String sql, int parameter) throws SQLException {
            PreparedStatement statement = statements.get(sql);
            if (statement == null) {
                statement = connection.prepareStatement(sql);
                statements.put(sql, statement);
            }
            if (parameter > 0) {
                statement.setInt(1, parameter);
            }
            return statement;
        }

        String query(String sql, int parameter) throws SQLException {
            StringBuilder text = new StringBuilder();
            try (ResultSet rows = with(sql, parameter).executeQuery()) {
                while (rows.next()) {
                    text.append(rows.getString(1)).append('\n');
                }
            }
            return text.toString();
        }
    }

    private static String env(String name) {
        return System.getenv(name);
    }

    private static final ThreadLocal<Session> SESSION = new ThreadLocal<>();

    /** One query. */
    private static String index(Session session) throws SQLException {
        return session.query("SELECT title FROM posts ORDER BY id LIMIT 10", 0);
    }

    /** Three queries, one of them in a transaction. */
    private static String detail(Session session) throws SQLException {
        String title = "SELECT title || name FROM posts JOIN authors ON authors.id = author";
        String body = session.query(title + " WHERE posts.id = ?", 1);
        body += session.query("SELECT text FROM comments WHERE post = ? ORDER BY id", 1);
        session.connection.setAutoCommit(false);
        session.with("UPDATE posts SET seen = seen + 1 WHERE id = ?", 1).executeUpdate();
        session.connection.commit();
        session.connection.setAutoCommit(true);
        return body;
    }

    /** One query for the authors, and one for each of them. */
    private static String authors(Session session) throws SQLException {
        StringBuilder body = new StringBuilder();
        for (String id : session.query("SELECT id FROM authors ORDER BY id", 0).split("\n")) {
            String count = "SELECT count(*) FROM posts WHERE author = ?";
            body.append(session.query(count, Integer.parseInt(id)));
        }
        return body.toString();
    }

    private static void answer(HttpExchange exchange, Page page) throws IOException {
        int status = 200;
        String text;
        try {
            if (SESSION.get() == null) {
                SESSION.set(new Session());
            }
            text = page.body(SESSION.get());
        } catch (SQLException error) {
            status = 500;
            text = error.getMessage();
        }
        byte[] body = text.getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(status, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    public static void main(String[] arguments) throws IOException {
        String[] bind = env("BIND").split(":");
        InetSocketAddress address = new InetSocketAddress(bind[0], Integer.parseInt(bind[1]));
        HttpServer server = HttpServer.create(address, 128);
        server.createContext("/posts", exchange -> answer(exchange, Blog::index));
        server.createContext("/posts/1", exchange -> answer(exchange, Blog::detail));
        server.createContext("/authors", exchange -> answer(exchange, Blog::authors));
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.start();
    }
}
