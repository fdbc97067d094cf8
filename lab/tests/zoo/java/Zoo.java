// pgjdbc: says its version, then performs one operation for each line that it reads, and answers
// `done` or `failed` and why.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Properties;

public final class Zoo {
    private static final String PLAIN = "SELECT count(*) FROM zoo";

    private Connection connection;
    private PreparedStatement parameter;
    private PreparedStatement cached;

    private static String env(String name) {
        return System.getenv("ZOO_" + name);
    }

    private void connect(String user, String sslmode, boolean quiet) throws SQLException {
        if (connection != null) {
            connection.close();
        }
        Properties settings = new Properties();
        settings.setProperty("user", env(user));
        settings.setProperty("password", env("PASSWORD"));
        settings.setProperty("sslmode", sslmode);
        if (quiet) {
            settings.setProperty("assumeMinServerVersion", "9.0");
            settings.setProperty("ApplicationName", "zoo");
        }
        String server = env("HOST") + ":" + env("PORT") + "/" + env("DATABASE");
        connection = DriverManager.getConnection("jdbc:postgresql://" + server, settings);
        parameter = connection.prepareStatement("SELECT name FROM zoo WHERE id = ?");
        cached = connection.prepareStatement("SELECT name FROM zoo WHERE id > ?");
    }

    private void run(PreparedStatement statement, int times) throws SQLException {
        for (int id = 1; id <= times; id++) {
            statement.setInt(1, id);
            try (ResultSet rows = statement.executeQuery()) {
                rows.next();
            }
        }
    }

    private void plain() throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.executeQuery(PLAIN).close();
        }
    }

    private void transaction() throws SQLException {
        connection.setAutoCommit(false);
        run(cached, 3);
        connection.commit();
        connection.setAutoCommit(true);
    }

    private void batch() throws SQLException {
        connection.setAutoCommit(false);
        try (PreparedStatement update =
                connection.prepareStatement("UPDATE zoo SET name = name WHERE id = ?")) {
            for (int id = 1; id <= 5; id++) {
                update.setInt(1, id);
                update.addBatch();
            }
            update.executeBatch();
        }
        connection.commit();
        connection.setAutoCommit(true);
    }

    private void perform(String operation) throws SQLException {
        switch (operation) {
            case "connect" -> connect("TRUSTED", "disable", false);
            case "connect, TLS offered" -> connect("TRUSTED", "prefer", false);
            case "connect, SCRAM" -> connect("SCRAM", "disable", false);
            case "connect, version and name given" -> connect("TRUSTED", "disable", true);
            case "plain query" -> plain();
            case "parameter query", "again", "run 5", "run 6" -> run(parameter, 1);
            case "runs 3 and 4" -> run(parameter, 2);
            case "prepare a query" -> run(cached, 6);
            case "transaction of 3 cached queries" -> transaction();
            case "isValid" -> connection.isValid(1);
            case "batch of 5 in a transaction", "batch again" -> batch();
            default -> throw new SQLException("unknown operation");
        }
    }

    public static void main(String[] arguments) throws Exception {
        String driver = org.postgresql.util.DriverInfo.DRIVER_VERSION;
        System.out.println("pgjdbc " + driver + ", Java " + System.getProperty("java.version"));
        Zoo zoo = new Zoo();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            try {
                zoo.perform(line.trim());
                System.out.println("done");
            } catch (SQLException error) {
                System.out.println("failed " + error.getMessage().replace('\n', ' '));
            }
        }
    }
}
