//! Cuts an SQL text into tokens.

/// A token; comments and white space are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A keyword or name.
    Word(&'a [u8]),
    /// A name in double quotes, with them.
    Quoted(&'a [u8]),
    /// A string or number.
    Value,
    /// A string in dollar quotes, with them.
    Block(&'a [u8]),
    /// `$1`, with the dollar.
    Parameter(&'a [u8]),
    /// Any other byte.
    Sign(u8),
    Semicolon,
}

impl Token<'_> {
    /// Whether it is a block of code that stops listening.
    pub(super) fn hides_unlisten(&self) -> bool {
        match self {
            Self::Block(code) => {
                code.windows(8).any(|window| window.eq_ignore_ascii_case(b"unlisten"))
            }
            _ => false,
        }
    }
}

pub(super) struct Tokens<'a> {
    rest: &'a [u8],
    /// Whether the token before ends an operand, so that a sign after it is an operator.
    after_operand: bool,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(sql: &'a [u8]) -> Self {
        Self { rest: sql, after_operand: false }
    }

    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    fn skip_blank(&mut self) {
        loop {
            let blank = self.rest.iter().take_while(|byte| is_blank(**byte)).count();
            self.take(blank);
            if self.rest.starts_with(b"--") {
                let line = self.rest.iter().position(|&b| b == b'\n').unwrap_or(self.rest.len());
                self.take(line);
            } else if self.rest.starts_with(b"/*") {
                let length = block_comment(self.rest);
                self.take(length);
            } else {
                return;
            }
        }
    }

    fn number(&mut self) {
        let digits = self
            .rest
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_'))
            .count();
        self.take(digits);
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.skip_blank();
        let &first = self.rest.first()?;
        let second = self.rest.get(1).copied().unwrap_or(0);
        let token = match first {
            b';' => {
                self.take(1);
                Token::Semicolon
            }
            b'\'' => {
                let length = quoted(self.rest, b'\'', false);
                self.take(length);
                Token::Value
            }
            b'E' | b'e' | b'B' | b'b' | b'X' | b'x' | b'N' | b'n' if second == b'\'' => {
                self.take(1);
                let length = quoted(self.rest, b'\'', first.eq_ignore_ascii_case(&b'e'));
                self.take(length);
                Token::Value
            }
            b'"' => {
                let length = quoted(self.rest, b'"', false);
                Token::Quoted(self.take(length))
            }
            b'$' if second.is_ascii_digit() => {
                let digits = self.rest[1..].iter().take_while(|b| b.is_ascii_digit()).count();
                Token::Parameter(self.take(1 + digits))
            }
            b'$' => match dollar_quoted(self.rest) {
                Some(length) => Token::Block(self.take(length)),
                None => Token::Sign(self.take(1)[0]),
            },
            b'0'..=b'9' => {
                self.number();
                Token::Value
            }
            b'.' if second.is_ascii_digit() && !self.after_operand => {
                self.number();
                Token::Value
            }
            // A sign before a number, where an operand is due, belongs to the number.
            b'-' | b'+' if second.is_ascii_digit() && !self.after_operand => {
                self.take(1);
                self.number();
                Token::Value
            }
            _ if is_word(first) => {
                let length = self
                    .rest
                    .iter()
                    .take_while(|&&byte| is_word(byte) || byte.is_ascii_digit() || byte == b'$')
                    .count();
                Token::Word(self.take(length))
            }
            _ => Token::Sign(self.take(1)[0]),
        };
        self.after_operand = match token {
            Token::Value | Token::Quoted(_) | Token::Parameter(_) | Token::Block(_) => true,
            Token::Sign(sign) => matches!(sign, b')' | b']'),
            // `a -1` subtracts, `limit -1` does not; the lexer takes the first for granted.
            Token::Word(_) => true,
            Token::Semicolon => false,
        };
        Some(token)
    }
}

fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b || byte == 0
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

/// Length of a quoted piece, its quotes included; a doubled quote is one of its characters.
fn quoted(bytes: &[u8], quote: u8, backslash: bool) -> usize {
    let mut at = 1;
    while let Some(&byte) = bytes.get(at) {
        if backslash && byte == b'\\' {
            at += 2;
        } else if byte == quote {
            if bytes.get(at + 1) != Some(&quote) {
                return at + 1;
            }
            at += 2;
        } else {
            at += 1;
        }
    }
    bytes.len()
}

/// Length of a piece in dollar quotes, if one starts here.
fn dollar_quoted(bytes: &[u8]) -> Option<usize> {
    let tag_end =
        1 + bytes[1..].iter().take_while(|&&byte| is_word(byte) || byte.is_ascii_digit()).count();
    if bytes.get(tag_end) != Some(&b'$') {
        return None;
    }
    let tag = &bytes[..=tag_end];
    let body = &bytes[tag_end + 1..];
    let end = body.windows(tag.len()).position(|window| window == tag);
    Some(end.map_or(bytes.len(), |end| tag_end + 1 + end + tag.len()))
}

/// Length of a comment that may hold others.
fn block_comment(bytes: &[u8]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                at += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    bytes.len()
}
