//! A terminal, with `drip top` in it.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

use crate::support::drip;
use crate::support::launch::launch;
use crate::top::screen;

/// Number of tries of 20 ms each: long enough on a busy machine.
const TRIES: usize = 750;

pub struct Pty {
    keyboard: File,
    /// Kept open to check the state of the terminal afterwards.
    terminal: File,
    before: Termios,
    shown: Arc<Mutex<Vec<u8>>>,
    size: (u16, u16),
    process: Child,
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Pty {
    /// Starts `drip top ADDRESS` in a terminal of this many columns and lines.
    pub fn top(address: &str, size: (u16, u16)) -> Self {
        let (keyboard, terminal) = terminal();
        resize(&terminal, size);
        let before = tcgetattr(&terminal).unwrap();
        let input = || terminal.try_clone().unwrap();
        // Its own session on this terminal. Otherwise it would read the size of the tests'
        // terminal.
        let mut program = drip();
        program.args(["top", address]);
        let process = launch(&program, "terminal")
            .stdin(input())
            .stderr(input())
            .spawn()
            .unwrap();
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (mut reader, seen) = (keyboard.try_clone().unwrap(), Arc::clone(&shown));
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                seen.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        Self {
            keyboard,
            terminal,
            before,
            shown,
            size,
            process,
        }
    }

    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    pub fn resize(&mut self, size: (u16, u16)) {
        self.size = size;
        resize(&self.terminal, size);
    }

    pub fn raw(&self) -> Vec<u8> {
        self.shown.lock().unwrap().clone()
    }

    pub fn screen(&self) -> String {
        let (columns, lines) = self.size;
        screen::lines(&self.raw(), columns.into(), lines.into()).join("\n")
    }

    /// Returns the screen, once it contains all of `texts`.
    pub fn wait_for(&self, texts: &[&str]) -> String {
        for _ in 0..TRIES {
            let screen = self.screen();
            if texts.iter().all(|text| screen.contains(text)) {
                return screen;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("no {texts:?} in\n{}", self.screen());
    }

    pub fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.process.id()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), signal).unwrap();
    }

    /// Waits for the end, and checks that the terminal is restored.
    pub fn ended(mut self) -> ExitStatus {
        let status = (0..TRIES).find_map(|_| {
            thread::sleep(Duration::from_millis(20));
            self.process.try_wait().unwrap()
        });
        let status = status.expect("it ends");
        let after = tcgetattr(&self.terminal).unwrap();
        let modes = |of: &Termios| (of.input_modes, of.output_modes, of.local_modes);
        assert_eq!(modes(&after), modes(&self.before));
        let restored = |raw: &[u8]| {
            let text = String::from_utf8_lossy(raw).into_owned();
            let last = |what: &str| text.rfind(what);
            last("\x1b[?1049l") > last("\x1b[?1049h") && last("\x1b[?25h") > last("\x1b[?25l")
        };
        // Its last output may still be in flight.
        let there = (0..TRIES).any(|_| {
            thread::sleep(Duration::from_millis(20));
            restored(&self.raw())
        });
        assert!(there, "{:?}", String::from_utf8_lossy(&self.raw()));
        status
    }
}

/// Opens a new terminal: the test's end, and the program's end.
pub fn terminal() -> (File, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    // Without O_NOCTTY this would become the controlling terminal of a session that has none.
    let flags = OFlags::RDWR | OFlags::NOCTTY;
    let terminal = rustix::fs::open(&name, flags, Mode::empty()).unwrap();
    (master.into(), terminal.into())
}

fn resize(terminal: &File, (columns, lines): (u16, u16)) {
    let size = Winsize {
        ws_row: lines,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(terminal, size).unwrap();
}
