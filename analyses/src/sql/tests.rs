//! Texts as clients send them, and the statements that are found in them.

use super::*;

fn check(sql: &str, expected: &[(Class, &str)]) {
    let found = statements(sql.as_bytes());
    let found: Vec<_> = found.iter().map(|s| (s.class, s.text.as_str())).collect();
    assert_eq!(found, expected, "{sql}");
}

#[test]
fn values_become_question_marks_and_lists_become_one() {
    use Class::User;
    check(
        "select a.b, 'it''s' from t where c = 12.5e3",
        &[(User, "select a.b, ? from t where c = ?")],
    );
    check(
        "select 1 from t where id in (1, 2,3) and x in ($1,$2)",
        &[(User, "select ? from t where id in (?…) and x in (?…)")],
    );
    check(
        "insert into t(a,b) values (1,'x'),(2,'y')",
        &[(User, "insert into t(a, b) values (?…)")],
    );
    check(
        "select count(*)\n\tfrom t -- why\n where a >= -1 /* a /* b */ c */ limit $1",
        &[(User, "select count(*) from t where a >= ? limit $1")],
    );
    check("select E'a\\'b;', \"odd;name\", $q$;$q$", &[(User, "select ?, \"odd;name\", $$…$$")]);
}

#[test]
fn a_text_is_cut_at_its_semicolons() {
    use Class::{Transaction, User};
    check(
        "begin; select 'a;b';; commit;",
        &[(Transaction, "begin"), (User, "select ?"), (Transaction, "commit")],
    );
}

#[test]
fn nothing_but_comments_is_empty() {
    for sql in ["", " ; ", "-- ping", "/* ping */", "/* unfinished"] {
        check(sql, &[(Class::Empty, "")]);
    }
}

#[test]
fn statements_are_told_apart_by_what_they_are_for() {
    let cases = [
        ("START TRANSACTION READ ONLY", Class::Transaction),
        ("savepoint a", Class::Transaction),
        ("set transaction isolation level serializable", Class::Transaction),
        ("SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE", Class::Transaction),
        ("DISCARD ALL", Class::Reset),
        ("RESET ALL", Class::Reset),
        ("SELECT pg_advisory_unlock_all()", Class::Reset),
        ("DO $$ BEGIN IF x THEN UNLISTEN *; END IF; END; $$", Class::Reset),
        ("close c1", Class::User),
        ("CLOSE ALL", Class::Reset),
        ("DEALLOCATE s1", Class::Prepare),
        ("prepare s as select 1", Class::Prepare),
        ("SET TIME ZONE 'UTC'", Class::Setting),
        ("show server_version", Class::Setting),
        ("with a as (select 1) select * from a", Class::User),
    ];
    for (sql, class) in cases {
        assert_eq!(statements(sql.as_bytes())[0].class, class, "{sql}");
    }
}

#[test]
fn select_1_looks_like_a_check_and_a_select_from_a_table_does_not() {
    let looks = |sql: &str| statements(sql.as_bytes())[0].looks_like_a_check();
    assert!(looks("SELECT 1"));
    assert!(looks("/* ping */ select 1;"));
    assert!(!looks("select 1 from t"));
}
