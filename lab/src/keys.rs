//! Keys of the terminal, one by one, and the terminal given back as it was.

use std::io::{IsTerminal, Read, stdin};

use nix::libc;

use crate::ui::Ui;

/// The terminal as it was. Whoever made this value gives it back when it goes, whichever process
/// has changed it meanwhile; a copy that was forked does nothing then.
#[derive(Debug)]
pub struct Keys {
    before: Option<libc::termios>,
    owner: u32,
    ui: Ui,
}

impl Keys {
    /// Remembers the terminal that standard input is, where it is one.
    #[must_use]
    pub fn remember(ui: &Ui) -> Self {
        let before = stdin().is_terminal().then(attributes).flatten();
        Self { before, owner: std::process::id(), ui: ui.clone() }
    }

    /// Hands over each key as it is pressed, and shows none; Ctrl-C stays what it is.
    pub fn one_by_one(&self) {
        if let Some(mut raw) = self.before {
            raw.c_lflag &= !(libc::ICANON | libc::ECHO);
            // A read gives what is there, and does not wait.
            (raw.c_cc[libc::VMIN], raw.c_cc[libc::VTIME]) = (0, 0);
            set(&raw);
        }
    }

    /// Whether `q` was pressed since the last time; never where there is no terminal.
    #[must_use]
    pub fn quit(&self) -> bool {
        let mut pressed = [0; 64];
        let read = self.before.and_then(|_| stdin().lock().read(&mut pressed).ok());
        pressed.iter().take(read.unwrap_or(0)).any(|key| matches!(key, b'q' | b'Q'))
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if let Some(before) = &self.before
            && self.owner == std::process::id()
        {
            set(before);
            self.ui.show_cursor();
        }
    }
}

fn attributes() -> Option<libc::termios> {
    // SAFETY: plain integers, which the call fills in.
    let mut attributes = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes to a value of the right type.
    let done = unsafe { libc::tcgetattr(libc::STDIN_FILENO, &raw mut attributes) };
    (done == 0).then_some(attributes)
}

fn set(attributes: &libc::termios) {
    // SAFETY: the kernel reads a value of the right type. A terminal that is gone needs nothing.
    let _gone = unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, attributes) };
}
