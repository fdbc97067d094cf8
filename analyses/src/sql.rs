//! What kind of statement an SQL text is, and the text without its values.
//!
//! A light lexer: it knows comments (nested too), the four kinds of quotes, numbers and words.
//! It does not parse. So it cannot tell a function that writes from one that reads, takes
//! `a - 1` and `a -1` for different texts, leaves keywords in the case they were typed in, and
//! reads a backslash as an escape only within `E'…'`.

mod lexer;
#[cfg(test)]
mod tests;

use lexer::{Token, Tokens};

/// What a statement is for, as far as its text tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The service's own work.
    User,
    /// Begins, ends or divides a transaction.
    Transaction,
    /// Clears the session's state, as pools do when a connection comes back.
    Reset,
    /// Prepares or forgets a statement.
    Prepare,
    /// Reads or sets a parameter of the session, or the types that it knows.
    Setting,
    /// Nothing but white space and comments.
    Empty,
}

/// One statement of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// What it is for.
    pub class: Class,
    /// The text with every value as `?`, lists of values as `(?…)`, without comments.
    pub text: String,
}

impl Statement {
    /// Whether it looks like a check that the connection lives: the rule is that the whole
    /// statement is `SELECT` and one value, and nothing else. A service may mean it.
    #[must_use]
    pub fn looks_like_a_check(&self) -> bool {
        self.text.eq_ignore_ascii_case("select ?")
    }
}

/// Splits a text at its semicolons. A text of nothing but comments is one empty statement.
#[must_use]
pub fn statements(sql: &[u8]) -> Vec<Statement> {
    let mut all = Vec::new();
    let mut tokens: Vec<Token<'_>> = Vec::new();
    for token in Tokens::new(sql) {
        match token {
            Token::Semicolon if tokens.is_empty() => {}
            Token::Semicolon => {
                all.push(statement(&tokens));
                tokens.clear();
            }
            token => tokens.push(token),
        }
    }
    if !tokens.is_empty() || all.is_empty() {
        all.push(statement(&tokens));
    }
    all
}

/// What a command tag says of a statement whose text is not known.
#[must_use]
pub fn class_of_tag(tag: &[u8]) -> Class {
    match tag {
        b"BEGIN"
        | b"START TRANSACTION"
        | b"COMMIT"
        | b"ROLLBACK"
        | b"SAVEPOINT"
        | b"RELEASE"
        | b"PREPARE TRANSACTION"
        | b"COMMIT PREPARED"
        | b"ROLLBACK PREPARED" => Class::Transaction,
        b"DISCARD ALL" | b"CLOSE CURSOR ALL" | b"UNLISTEN" | b"RESET" => Class::Reset,
        b"PREPARE" | b"DEALLOCATE" | b"DEALLOCATE ALL" => Class::Prepare,
        b"SET" | b"SHOW" => Class::Setting,
        _ => Class::User,
    }
}

fn statement(tokens: &[Token<'_>]) -> Statement {
    Statement { class: classify(tokens), text: normalise(tokens) }
}

fn classify(tokens: &[Token<'_>]) -> Class {
    let word = |index: usize| -> String {
        match tokens.get(index) {
            Some(Token::Word(word)) => String::from_utf8_lossy(word).to_ascii_lowercase(),
            _ => String::new(),
        }
    };
    let (first, second) = (word(0), word(1));
    match (first.as_str(), second.as_str()) {
        ("", _) if tokens.is_empty() => Class::Empty,
        ("begin" | "start" | "commit" | "rollback" | "end" | "abort" | "savepoint", _)
        | ("release", _)
        | ("prepare", "transaction") => Class::Transaction,
        ("set", "transaction") | ("set", "session") if mentions(tokens, &["transaction"]) => {
            Class::Transaction
        }
        ("set", "session") if mentions(tokens, &["authorization"]) => Class::Reset,
        ("discard" | "unlisten", _) | ("reset", _) => Class::Reset,
        ("close", "all") => Class::Reset,
        ("prepare" | "deallocate", _) => Class::Prepare,
        // Newer asyncpg hides UNLISTEN in a block, which fails where nothing can listen.
        ("do", _) if tokens.iter().any(Token::hides_unlisten) => Class::Reset,
        ("select", "pg_advisory_unlock_all") => Class::Reset,
        ("set" | "show", _) | ("select", "set_config" | "current_setting") => Class::Setting,
        ("select", _) if mentions(tokens, &["pg_type", "pg_range", "pg_enum"]) => Class::Setting,
        _ => Class::User,
    }
}

fn mentions(tokens: &[Token<'_>], words: &[&str]) -> bool {
    tokens.iter().any(|token| match token {
        Token::Word(word) => {
            words.iter().any(|wanted| word.eq_ignore_ascii_case(wanted.as_bytes()))
        }
        _ => false,
    })
}

fn normalise(tokens: &[Token<'_>]) -> String {
    let mut text = String::new();
    let mut previous: Option<Token<'_>> = None;
    let mut index = 0;
    while let Some(&token) = tokens.get(index) {
        if let Some(length) = value_list(&tokens[index..]) {
            push(&mut text, previous, Token::Sign(b'('));
            text.push_str("?…)");
            index += length;
            // One row of VALUES is as good as a thousand.
            while matches!(tokens.get(index), Some(Token::Sign(b',')))
                && let Some(more) = value_list(&tokens[index + 1..])
            {
                index += 1 + more;
            }
            previous = Some(Token::Sign(b')'));
            continue;
        }
        push(&mut text, previous, token);
        previous = Some(token);
        index += 1;
    }
    text
}

/// Length of a list `(value, value…)` of at least two values that starts here.
fn value_list(tokens: &[Token<'_>]) -> Option<usize> {
    let [Token::Sign(b'('), rest @ ..] = tokens else { return None };
    let mut values = 0;
    let mut at = 0;
    loop {
        match (rest.get(at)?, rest.get(at + 1)?) {
            (Token::Value | Token::Parameter(_), Token::Sign(b',')) => values += 1,
            (Token::Value | Token::Parameter(_), Token::Sign(b')')) if values > 0 => {
                return Some(at + 3);
            }
            _ => return None,
        }
        at += 2;
    }
}

fn push(text: &mut String, previous: Option<Token<'_>>, token: Token<'_>) {
    let tight_before = matches!(token, Token::Sign(b',' | b')' | b'.' | b']' | b':' | b'['));
    let tight_after = match previous {
        None => true,
        Some(Token::Sign(sign)) => matches!(sign, b'(' | b'.' | b'[' | b':'),
        Some(Token::Word(word)) => token == Token::Sign(b'(') && !is_keyword(word),
        Some(_) => false,
    };
    let operator = |token: Token<'_>| match token {
        Token::Sign(sign) => b"+-*/<>=~!@#%^&|?".contains(&sign),
        _ => false,
    };
    let joined = previous.is_some_and(operator) && operator(token);
    if !(tight_before || tight_after || joined) {
        text.push(' ');
    }
    match token {
        Token::Word(word) | Token::Quoted(word) => text.push_str(&String::from_utf8_lossy(word)),
        Token::Value => text.push('?'),
        Token::Block(_) => text.push_str("$$…$$"),
        Token::Parameter(number) => text.push_str(&String::from_utf8_lossy(number)),
        Token::Sign(sign) => text.push(char::from(sign)),
        Token::Semicolon => text.push(';'),
    }
}

/// Words that stand before a bracket without being a function.
fn is_keyword(word: &[u8]) -> bool {
    const WORDS: [&str; 12] =
        ["in", "values", "and", "or", "not", "as", "from", "where", "on", "any", "select", "into"];
    WORDS.iter().any(|keyword| word.eq_ignore_ascii_case(keyword.as_bytes()))
}
