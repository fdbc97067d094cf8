//! The statements of a capture, by their text without values.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::sql::{self, Class};
use crate::trips::Reason;

/// Texts remembered word for word, so that they are read once.
const TEXTS_LIMIT: usize = 20_000;
/// Distinct statements told apart.
const STATEMENTS_LIMIT: usize = 10_000;
/// Characters of a prepared statement's name that are shown.
const NAME_SHOWN: usize = 40;
/// Bytes of texts that are remembered word for word, and as many of statements: a text can have
/// 64 KiB.
const BYTES_LIMIT: usize = 16 << 20;

/// A text as it was sent, which can hold several statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextId(u32);

/// A statement without its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StatementId(u32);

impl StatementId {
    /// A statement that was prepared before the capture began.
    pub const UNKNOWN: Self = Self(0);
    /// Any statement after the first ten thousand.
    const OTHER: Self = Self(1);
}

/// What a statement cost.
#[derive(Clone, Debug, PartialEq)]
pub struct StatementCost {
    /// The text without values.
    pub sql: String,
    /// Whether this is one statement; otherwise all that could not be told apart, because their
    /// text was never seen or there are too many of them.
    pub told_apart: bool,
    /// Why it was run; `None` for connection set-up.
    pub reason: Option<Reason>,
    /// Whether it looks like a check that the connection lives: `SELECT` and one value.
    pub looks_like_a_check: bool,
    /// Executions in all windows.
    pub executions: u64,
    /// Times that it was prepared, in all windows.
    pub prepared: u64,
    /// Rows in all windows.
    pub rows: u64,
    /// Bytes of those rows' messages.
    pub bytes: u64,
    /// Trips for it in a row on one connection, with no other statement between; the most. One trip
    /// with several executions counts once.
    pub longest_run: u64,
    /// Executions per request; `None` where the number of requests is not known.
    pub per_request: Option<f64>,
}

/// All statements seen.
#[derive(Debug)]
pub struct Statements {
    texts: HashMap<Box<[u8]>, TextId, RandomState>,
    of_text: Vec<Box<[StatementId]>>,
    by_content: HashMap<Box<[StatementId]>, TextId>,
    by_text: HashMap<String, StatementId>,
    list: Vec<Entry>,
    /// Bytes of all keys of `texts`, and of all statements.
    text_bytes: usize,
    list_bytes: usize,
}

#[derive(Debug)]
struct Entry {
    text: String,
    class: Option<Class>,
    check: bool,
    /// Known by the name that it was prepared under alone. Another connection may use the same
    /// name for another statement.
    by_name: bool,
}

/// How often a statement was run in windows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) executions: u64,
    pub(super) set_up: u64,
    pub(super) prepared: u64,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) longest_run: u64,
}

impl Default for Statements {
    fn default() -> Self {
        let entry = |text: &str, class| Entry {
            text: text.to_owned(),
            class,
            check: false,
            by_name: false,
        };
        Self {
            texts: HashMap::default(),
            of_text: Vec::new(),
            by_content: HashMap::new(),
            by_text: HashMap::new(),
            text_bytes: 0,
            list_bytes: 0,
            list: vec![
                entry("(prepared before the capture)", None),
                entry("(other statements)", Some(Class::User)),
            ],
        }
    }
}

impl Statements {
    /// The text as a number. Texts that differ in their values alone have the same one.
    pub fn text(&mut self, sql: &[u8]) -> TextId {
        if let Some(&text) = self.texts.get(sql) {
            return text;
        }
        let ids: Box<[_]> = sql::statements(sql).into_iter().map(|s| self.intern(s)).collect();
        let text = if let Some(&known) = self.by_content.get(&ids) {
            known
        } else if self.of_text.len() >= TEXTS_LIMIT || self.text_bytes > BYTES_LIMIT {
            return TextId(u32::MAX);
        } else {
            let text = TextId(self.of_text.len() as u32);
            self.text_bytes += 2 * size_of_val(&*ids);
            self.of_text.push(ids.clone());
            self.by_content.insert(ids, text);
            text
        };
        if self.texts.len() < TEXTS_LIMIT && self.text_bytes + sql.len() <= BYTES_LIMIT {
            self.text_bytes += sql.len();
            self.texts.insert(sql.into(), text);
        }
        text
    }

    /// The first statement of a text.
    #[must_use]
    pub fn first(&self, text: TextId) -> StatementId {
        self.nth(text, 0)
    }

    /// A statement of a text, 0-based; the last one where a rule made one into several.
    #[must_use]
    pub fn nth(&self, text: TextId, index: usize) -> StatementId {
        self.of_text
            .get(text.0 as usize)
            .and_then(|ids| ids.get(index).or(ids.last()))
            .copied()
            .unwrap_or(StatementId::OTHER)
    }

    /// What a statement is for; `None` if its text is not known.
    #[must_use]
    pub fn class(&self, statement: StatementId) -> Option<Class> {
        self.list.get(statement.0 as usize).and_then(|entry| entry.class)
    }

    /// The text without values.
    #[must_use]
    pub fn sql(&self, statement: StatementId) -> &str {
        self.list.get(statement.0 as usize).map_or("", |entry| &entry.text)
    }

    fn intern(&mut self, statement: sql::Statement) -> StatementId {
        if let Some(&known) = self.by_text.get(&statement.text) {
            return known;
        }
        let bytes = self.list_bytes + statement.text.len();
        if self.list.len() >= STATEMENTS_LIMIT || bytes > BYTES_LIMIT {
            return StatementId::OTHER;
        }
        self.list_bytes = bytes;
        let id = StatementId(self.list.len() as u32);
        self.list.push(Entry {
            check: statement.looks_like_a_check(),
            text: statement.text.clone(),
            class: Some(statement.class),
            by_name: false,
        });
        self.by_text.insert(statement.text, id);
        id
    }

    /// A statement that was prepared under this name before the capture began: its text is not
    /// known, but on one connection the name stands for it and for nothing else.
    pub fn named(&mut self, name: &[u8]) -> StatementId {
        let name: String = String::from_utf8_lossy(name)
            .chars()
            .filter(|character| !character.is_control())
            .take(NAME_SHOWN)
            .collect();
        let text = format!("({name}, prepared before the capture: its text is not known)");
        if let Some(&known) = self.by_text.get(&text) {
            return known;
        }
        if self.list.len() >= STATEMENTS_LIMIT {
            return StatementId::UNKNOWN;
        }
        let id = StatementId(self.list.len() as u32);
        self.list.push(Entry { text: text.clone(), class: None, check: false, by_name: true });
        self.by_text.insert(text, id);
        id
    }

    /// Whether nothing but the name of a statement is known.
    #[must_use]
    pub fn is_by_name(&self, statement: StatementId) -> bool {
        self.list.get(statement.0 as usize).is_some_and(|entry| entry.by_name)
    }

    /// What each statement cost that was run or prepared in a window, the most frequent first.
    pub(super) fn costs(&self, tallies: &[Tally], requests: Option<u64>) -> Vec<StatementCost> {
        let mut costs: Vec<_> = self
            .list
            .iter()
            .zip((0..).map(StatementId))
            .zip(tallies)
            .filter(|(_, tally)| tally.executions + tally.prepared > 0)
            .map(|((entry, id), tally)| StatementCost {
                sql: entry.text.clone(),
                told_apart: id != StatementId::UNKNOWN
                    && id != StatementId::OTHER
                    && !entry.by_name,
                reason: entry.reason(tally),
                looks_like_a_check: entry.check,
                executions: tally.executions,
                prepared: tally.prepared,
                rows: tally.rows,
                bytes: tally.bytes,
                longest_run: tally.longest_run,
                per_request: requests.map(|requests| tally.executions as f64 / requests as f64),
            })
            .collect();
        costs.sort_by(|a, b| b.executions.cmp(&a.executions).then_with(|| a.sql.cmp(&b.sql)));
        costs
    }
}

impl Entry {
    fn reason(&self, tally: &Tally) -> Option<Reason> {
        match self.class {
            Some(Class::Setting) if tally.set_up == tally.executions => None,
            None | Some(Class::User | Class::Setting) => Some(Reason::User),
            Some(Class::Transaction) => Some(Reason::Transaction),
            Some(Class::Reset) => Some(Reason::PoolReset),
            Some(Class::Prepare) => Some(Reason::Prepare),
            Some(Class::Empty) => Some(Reason::PoolPing),
        }
    }
}

impl Tally {
    /// The tally of a statement in a list that grows as needed.
    pub(super) fn of(tallies: &mut Vec<Self>, statement: StatementId) -> &mut Self {
        let index = statement.0 as usize;
        if tallies.len() <= index {
            tallies.resize(index + 1, Self::default());
        }
        &mut tallies[index]
    }
}
