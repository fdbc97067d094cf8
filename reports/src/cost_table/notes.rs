//! The notes of one table: gathered while its lines are made, then merged and numbered in the
//! order in which a reader meets them.

use super::Group;

/// Notes as they came, in any order.
#[derive(Debug, Default)]
pub(super) struct Notes(Vec<Note>);

/// One sentence, and the column that it is about; `None` for the line as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Note {
    whose: Option<String>,
    text: String,
}

impl Notes {
    /// The place of a note about a line, which is added when it is new.
    pub(super) fn of_line(&mut self, text: &str) -> usize {
        self.add(Note { whose: None, text: text.to_owned() })
    }

    /// The place of a note about one column of a line.
    pub(super) fn of_column(&mut self, title: &str, text: &str) -> usize {
        self.add(Note { whose: Some(title.to_owned()), text: text.to_owned() })
    }

    fn add(&mut self, note: Note) -> usize {
        match self.0.iter().position(|known| *known == note) {
            Some(index) => index,
            None => {
                self.0.push(note);
                self.0.len() - 1
            }
        }
    }

    /// Merges notes that differ in their numbers or columns alone, gives all that lines refer to
    /// their numbers, and returns their texts; the first is number 1. `others` are the columns
    /// beside the reference: what is true of all of them needs no names.
    pub(super) fn number(self, groups: &mut [Group], others: usize) -> Vec<String> {
        let mut merged: Vec<Vec<&Note>> = Vec::new();
        let lists = groups.iter_mut().flat_map(|group| {
            let remarks = group.remarks.iter_mut().map(|remark| &mut remark.notes);
            group.lines.iter_mut().map(|line| &mut line.notes).chain(remarks)
        });
        for list in lists {
            let mut numbers: Vec<usize> = Vec::new();
            for note in list.iter().filter_map(|&index| self.0.get(index)) {
                let alike = |known: &Vec<&Note>| known.first().is_some_and(|k| k.is_like(note));
                let place = merged.iter().position(alike).unwrap_or_else(|| {
                    merged.push(Vec::new());
                    merged.len() - 1
                });
                if !merged[place].contains(&note) {
                    merged[place].push(note);
                }
                numbers.push(place + 1);
            }
            numbers.sort_unstable();
            numbers.dedup();
            *list = numbers;
        }
        merged.iter().map(|notes| text(notes, others)).collect()
    }
}

impl Note {
    /// Whether it says the same of something else.
    fn is_like(&self, other: &Self) -> bool {
        let same = |(one, other): (&Piece<'_>, &Piece<'_>)| match (one, other) {
            (Piece::Words(one), Piece::Words(other)) => one == other,
            (Piece::Number(_), Piece::Number(_)) => true,
            _ => false,
        };
        let (one, another) = (pieces(&self.text), pieces(&other.text));
        self.whose.is_some() == other.whose.is_some()
            && one.len() == another.len()
            && one.iter().zip(&another).all(same)
    }
}

/// A piece of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece<'a> {
    Words(&'a str),
    Number(&'a str),
}

/// A sentence, cut where numbers begin and end. A digit inside a word, as in `p99`, is no number.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut words = 0;
    let mut at = 0;
    let bytes = text.as_bytes();
    while at < bytes.len() {
        let inside = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'.');
        if !bytes[at].is_ascii_digit() || inside {
            at += 1;
            continue;
        }
        let start = at;
        let digit = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_digit);
        while digit(at) || (matches!(bytes.get(at), Some(b'.' | b',')) && digit(at + 1)) {
            at += 1;
        }
        pieces.push(Piece::Words(&text[words..start]));
        pieces.push(Piece::Number(&text[start..at]));
        words = at;
    }
    pieces.push(Piece::Words(&text[words..]));
    pieces
}

/// One sentence of several that are alike: a number that differs becomes its range.
fn text(notes: &[&Note], others: usize) -> String {
    let Some(first) = notes.first() else { return String::new() };
    let mut whose: Vec<&str> = notes.iter().filter_map(|note| note.whose.as_deref()).collect();
    whose.dedup();
    let mut out = String::new();
    if !whose.is_empty() && (whose.len() < others || others < 2) {
        out.push_str(&whose.join("; "));
        out.push_str(": ");
    }
    let all: Vec<Vec<Piece<'_>>> = notes.iter().map(|note| pieces(&note.text)).collect();
    for (index, piece) in pieces(&first.text).into_iter().enumerate() {
        match piece {
            Piece::Words(words) => out.push_str(words),
            Piece::Number(_) => {
                let mut numbers: Vec<&str> = all
                    .iter()
                    .filter_map(|pieces| match pieces.get(index) {
                        Some(Piece::Number(number)) => Some(*number),
                        _ => None,
                    })
                    .collect();
                numbers.sort_by(|one, other| value(one).total_cmp(&value(other)));
                match (numbers.first(), numbers.last()) {
                    (Some(low), Some(high)) if low != high => {
                        out.push_str(&format!("{low} to {high}"));
                    }
                    (low, _) => out.push_str(low.copied().unwrap_or_default()),
                }
            }
        }
    }
    out
}

fn value(number: &str) -> f64 {
    number.replace(',', "").parse().unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::super::{Line, Remark};
    use super::*;

    fn line(notes: &[usize]) -> Line {
        let (name, notes) = ("line".to_owned(), notes.to_vec());
        Line { name, indent: 1, unit: "", entries: Vec::new(), notes }
    }

    fn group(lines: Vec<Line>) -> Group {
        Group { title: "", how: String::new(), lines, remarks: Vec::new() }
    }

    #[test]
    fn notes_are_numbered_in_the_order_of_reading() {
        let mut notes = Notes::default();
        let (late, early) = (notes.of_line("late"), notes.of_line("early"));
        notes.of_line("nobody refers to this");
        let mut groups = [group(vec![line(&[early]), line(&[late, early])])];
        groups[0].remarks.push(Remark { text: String::new(), notes: vec![late] });
        assert_eq!(notes.number(&mut groups, 3), ["early", "late"]);
        assert_eq!(groups[0].lines[0].notes, [1]);
        assert_eq!(groups[0].lines[1].notes, [1, 2]);
        assert_eq!(groups[0].remarks[0].notes, [2]);
    }

    #[test]
    fn notes_that_differ_in_numbers_alone_become_one_with_a_range() {
        let mut notes = Notes::default();
        let all: Vec<usize> = [94, 102, 100]
            .iter()
            .map(|share| notes.of_line(&format!("busy for {share} % of p99")))
            .collect();
        let mut groups = [group(vec![line(&all)])];
        assert_eq!(notes.number(&mut groups, 3), ["busy for 94 to 102 % of p99"]);
        assert_eq!(groups[0].lines[0].notes, [1]);
    }

    #[test]
    fn what_is_true_of_every_variant_names_none() {
        let mut notes = Notes::default();
        let some = [notes.of_column("a", "noisy"), notes.of_column("b", "noisy")];
        let mut groups = [group(vec![line(&some)])];
        assert_eq!(notes.number(&mut groups, 3), ["a; b: noisy"]);
        let mut notes = Notes::default();
        let all = [notes.of_column("a", "noisy"), notes.of_column("b", "noisy")];
        let mut groups = [group(vec![line(&all)])];
        assert_eq!(notes.number(&mut groups, 2), ["noisy"]);
    }
}
