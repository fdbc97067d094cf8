//! The mouth: the only file that writes to the terminal.
//!
//! Results go to standard output, talk and progress to standard error. Control characters of
//! foreign text are shown, not obeyed. A reader that has gone away is no error.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Where output goes and how it may look. Clones share one screen.
#[derive(Clone, Debug)]
pub struct Ui {
    bars: MultiProgress,
    talk_is_terminal: bool,
    colour: bool,
}

impl Default for Ui {
    fn default() -> Self {
        Self::new()
    }
}

impl Ui {
    /// The terminal as it is: bars where standard error is one, colour where standard output is
    /// one and `NO_COLOR` is not set.
    #[must_use]
    pub fn new() -> Self {
        let talk_is_terminal = io::stderr().is_terminal();
        let colour = io::stdout().is_terminal()
            && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let target = if talk_is_terminal {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        Self { bars: MultiProgress::with_draw_target(target), talk_is_terminal, colour }
    }

    /// Whether results may be coloured.
    #[must_use]
    pub fn colour(&self) -> bool {
        self.colour
    }

    /// Columns of the terminal that results go to; 100 where they go to a pipe or a file.
    #[must_use]
    pub fn columns(&self) -> usize {
        let size = terminal_size::terminal_size_of(io::stdout());
        size.map_or(100, |(terminal_size::Width(columns), _)| usize::from(columns))
    }

    /// Whether results go to a terminal.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Writes a result for another program, byte by byte.
    pub fn bytes(&self, bytes: &[u8]) {
        self.bars.suspend(|| {
            let mut out = io::stdout().lock();
            // Whoever read us may have had enough (`| head`): success.
            let _gone = out.write_all(bytes).and_then(|()| out.flush());
        });
    }

    /// Prints a result: text that is ours, with foreign parts already escaped.
    pub fn result(&self, text: &str) {
        self.bars.suspend(|| {
            let mut out = io::stdout().lock();
            // Whoever read us may have had enough (`| head`): success.
            let _gone = out.write_all(text.as_bytes());
            if !text.ends_with('\n') {
                let _gone = out.write_all(b"\n");
            }
            let _gone = out.flush();
        });
    }

    /// Whether results go to a terminal, where a picture can be drawn over the one before.
    #[must_use]
    pub fn draws(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Draws a picture over the one before, which had `before` lines; how many lines it has. What
    /// the terminal has no room for is left out. Lines must fit its columns.
    pub fn draw(&self, picture: &str, before: usize) -> usize {
        let size = terminal_size::terminal_size_of(io::stdout());
        let room = size.map_or(24, |(_, terminal_size::Height(rows))| usize::from(rows));
        let lines: Vec<&str> = picture.lines().take(room.saturating_sub(1)).collect();
        let mut text = String::from("\r\u{1b}[?25l");
        if before > 0 {
            let _never = write!(text, "\u{1b}[{before}A");
        }
        for (at, line) in lines.iter().enumerate() {
            // The first line is the title.
            let _never = match at == 0 && self.colour {
                true => write!(text, "\u{1b}[1m{line}\u{1b}[0m\u{1b}[K\r\n"),
                false => write!(text, "{line}\u{1b}[K\r\n"),
            };
        }
        text.push_str("\u{1b}[J");
        self.result_as_it_is(&text);
        lines.len()
    }

    /// Shows the cursor again.
    pub fn show_cursor(&self) {
        if self.draws() {
            self.result_as_it_is("\u{1b}[?25h");
        }
    }

    fn result_as_it_is(&self, text: &str) {
        self.bars.suspend(|| {
            let mut out = io::stdout().lock();
            let _gone = out.write_all(text.as_bytes());
            let _gone = out.flush();
        });
    }

    /// Says something to the person who waits.
    pub fn say(&self, text: &str) {
        let text = printable(text);
        self.bars.suspend(|| {
            let _gone = writeln!(io::stderr().lock(), "{text}");
        });
    }

    /// Says that something will be missing or is doubtful.
    pub fn warn(&self, text: &str) {
        self.say(&format!("warning: {text}"));
    }

    /// Says why the command failed.
    pub fn fail(&self, text: &str) {
        self.say(&format!("error: {text}"));
    }

    /// Announces work whose length is not known: a spinner, or a line at its begin.
    #[must_use]
    pub fn work(&self, title: &str) -> Progress {
        self.progress(title, None)
    }

    /// Announces `length` steps: a bar, or a line at begin and end.
    #[must_use]
    pub fn steps(&self, title: &str, length: u64) -> Progress {
        self.progress(title, Some(length))
    }

    fn progress(&self, title: &str, length: Option<u64>) -> Progress {
        let title = printable(title).into_owned();
        if !self.talk_is_terminal {
            self.say(&format!("{title} …"));
            return Progress { ui: self.clone(), title, bar: None };
        }
        let bar = self.bars.add(match length {
            Some(length) => ProgressBar::new(length),
            None => ProgressBar::new_spinner(),
        });
        let template = match length {
            Some(_) => "{prefix} {bar:24} {pos}/{len} {wide_msg}",
            None => "{prefix} {spinner} {elapsed} {wide_msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_prefix(title.clone());
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress { ui: self.clone(), title, bar: Some(bar) }
    }
}

/// Work under way. Dropping it takes it off the screen.
#[derive(Debug)]
pub struct Progress {
    ui: Ui,
    title: String,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// One step further.
    pub fn step(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    /// What is being done right now; shown beside a bar only.
    pub fn now(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(printable(what).into_owned());
        }
    }

    /// Ends it with a line that stays.
    pub fn done(self, outcome: &str) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        self.ui.say(&format!("{}: {outcome}", self.title));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Text that a terminal shows and does not obey: control characters, and the invisible ones that
/// turn the direction of writing, become visible escapes. Line feeds stay.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_unsafe(character) {
            let _never = write!(shown, "\\u{{{:x}}}", u32::from(character));
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

fn is_unsafe(character: char) -> bool {
    let turns_direction = matches!(
        character,
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    (character.is_control() && !matches!(character, '\n' | '\t')) || turns_direction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_control_characters_are_shown_and_not_obeyed() {
        assert_eq!(printable("plain\ttext\n"), "plain\ttext\n");
        assert_eq!(printable("\u{1b}[2J\rx\u{9b}"), "\\u{1b}[2J\\u{d}x\\u{9b}");
        assert_eq!(printable("a\u{202e}b"), "a\\u{202e}b");
    }
}
