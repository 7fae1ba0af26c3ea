//! Controls the terminal while `drip top` refreshes.

use std::io::{self, Read, stdin, stdout};
use std::{iter, thread};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc::{Receiver, channel};

use crate::output::write;

/// Switches to the alternate screen, hides the cursor, and turns line wrapping off.
const OPEN: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
/// Undoes [`OPEN`].
const CLOSE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";
/// Byte of Ctrl-C, which is read as a key.
const INTERRUPT: u8 = 3;

/// The terminal while the state is shown. Dropping the value restores the terminal.
pub(super) struct Screen {
    /// Previous settings of the terminal; `None` if standard input is not a terminal.
    before: Option<Termios>,
    /// Receives a message when the user presses a key that quits.
    quit: Receiver<()>,
}

impl Screen {
    /// Takes over the terminal.
    pub(super) fn open() -> io::Result<Self> {
        let before = tcgetattr(stdin()).ok();
        if let Some(before) = &before {
            let mut modes = before.clone();
            // Each key is read at once and not echoed, and Ctrl-C sends no signal.
            modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
            tcsetattr(stdin(), OptionalActions::Now, &modes)?;
        }
        let quit = read_keys();
        let screen = Self { before, quit };
        write(OPEN)?;
        Ok(screen)
    }

    /// Draws the lines of `text` that fit on the screen.
    pub(super) fn draw(text: &str) -> io::Result<()> {
        let size = tcgetwinsize(stdout())?;
        let lines = text.lines().chain(iter::repeat(""));
        let lines = lines.take(size.ws_row.into()).map(|line| {
            let line: String = line.chars().take(size.ws_col.into()).collect();
            // Erases the rest of the previous line here.
            format!("\x1b[K{line}")
        });
        let lines: Vec<String> = lines.collect();
        // From the upper left corner.
        write(&format!("\x1b[H{}", lines.join("\r\n")))
    }

    /// Completes when the user presses `q` or Ctrl-C.
    pub(super) async fn quit(&mut self) {
        if self.quit.recv().await.is_none() {
            // Standard input has ended: only signals end the program.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A failure means that the terminal has closed, so nothing else can be done.
        let _closed = write(CLOSE);
        if let Some(before) = &self.before {
            let _restored = tcsetattr(stdin(), OptionalActions::Now, before);
        }
    }
}

/// Returns a channel with a message for each key that quits. A thread reads the keys until the
/// process ends.
fn read_keys() -> Receiver<()> {
    let (sender, receiver) = channel(1);
    thread::spawn(move || {
        let mut key = [0];
        while let Ok(1) = stdin().read(&mut key) {
            if matches!(key[0], b'q' | INTERRUPT) && sender.blocking_send(()).is_err() {
                return;
            }
        }
    });
    receiver
}
