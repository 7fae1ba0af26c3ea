/// Why a figure cannot be read, as far as the log has it.
#[derive(Debug, Default)]
pub(super) struct Unread {
    logged: Option<String>,
}

impl Unread {
    /// Takes in a reading. Returns what the log should have of it: the first failure, one for another
    /// reason, and the end of failures.
    pub fn note(&mut self, read: Result<(), &str>) -> Option<String> {
        match read {
            Ok(()) => {
                self.logged.take()?;
                Some("a figure is read again".to_owned())
            }
            Err(why) if self.logged.as_deref() == Some(why) => None,
            Err(why) => {
                self.logged = Some(why.to_owned());
                Some(format!("a figure cannot be read: {why}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_logged_once_until_it_is_another_one_or_over() {
        let mut unread = Unread::default();
        let readings = [
            (Ok(()), None),
            (Err("refused"), Some("a figure cannot be read: refused")),
            (Err("refused"), None),
            (Err("silent"), Some("a figure cannot be read: silent")),
            (Err("silent"), None),
            (Ok(()), Some("a figure is read again")),
            (Ok(()), None),
            (Err("silent"), Some("a figure cannot be read: silent")),
        ];
        for (nth, (read, logged)) in readings.into_iter().enumerate() {
            assert_eq!(unread.note(read).as_deref(), logged, "{nth}");
        }
    }
}
