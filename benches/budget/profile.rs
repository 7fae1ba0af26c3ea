//! Reads callgrind's output: instructions of each function, and numbers of calls.
//!
//! The format is described in valgrind's manual, "Callgrind Format Specification".

use std::collections::HashMap;

/// Profile of one run of a program, by function.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    functions: HashMap<String, Function>,
}

/// The counts of one function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// Instructions of the function itself, without its callees.
    pub instructions: u64,
    /// Calls from functions of another name family.
    ///
    /// An allocator's entry points call each other; that counts as one allocation.
    pub calls: u64,
}

impl Profile {
    /// Adds the counts of one file, which covers one thread.
    pub fn add(&mut self, text: &str) {
        let mut names = HashMap::new();
        let (mut current, mut called) = (String::new(), String::new());
        // The line after `calls=` has the cost of the callees.
        let mut is_inclusive = false;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("fn=") {
                current = full_name(&mut names, name);
            } else if let Some(name) = line.strip_prefix("cfn=") {
                called = full_name(&mut names, name);
            } else if let Some(calls) = line.strip_prefix("calls=") {
                is_inclusive = true;
                if family(&current) != family(&called) {
                    let calls = calls.split(' ').next().and_then(|it| it.parse().ok());
                    self.function(&called).calls += calls.unwrap_or(0);
                }
            } else if line
                .starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first))
            {
                let cost = line.split(' ').nth(1).and_then(|it| it.parse().ok());
                if !std::mem::take(&mut is_inclusive) {
                    self.function(&current).instructions += cost.unwrap_or(0);
                }
            }
        }
    }

    fn function(&mut self, name: &str) -> &mut Function {
        if !self.functions.contains_key(name) {
            self.functions.insert(name.to_owned(), Function::default());
        }
        self.functions.entry(name.to_owned()).or_default()
    }

    /// Returns the instructions of all functions.
    pub fn instructions(&self) -> u64 {
        self.functions.values().map(|it| it.instructions).sum()
    }

    /// Returns the calls of the functions for whose names `is_selected` is true.
    pub fn calls(&self, is_selected: impl Fn(&str) -> bool) -> u64 {
        let selected = self.functions.iter().filter(|(name, _)| is_selected(name));
        selected.map(|(_, function)| function.calls).sum()
    }

    pub fn functions(&self) -> &HashMap<String, Function> {
        &self.functions
    }
}

/// Returns whether a function is an entry point of libc's or mimalloc's allocator.
pub fn allocates(name: &str) -> bool {
    let name = name.strip_prefix("mi_").unwrap_or(name);
    ["malloc", "calloc", "realloc", "posix_memalign"].contains(&name)
}

/// Returns whether a function reads a clock.
pub fn reads_clock(name: &str) -> bool {
    name == "clock_gettime" || name.starts_with("clock_gettime@")
}

/// Returns the first word of a C name, such as `mi` of `mi_malloc` and `_mi_malloc_generic`.
///
/// libc's functions that mimalloc replaces belong to mimalloc's family. A Rust name is a path, and
/// is a family of its own.
fn family(name: &str) -> &str {
    if allocates(name) {
        return "mi";
    }
    let name = name.trim_start_matches('_');
    if name.contains("::") {
        return name;
    }
    name.split('_').next().unwrap_or(name)
}

/// Returns the full name: a file gives it the first time as `(7) name`, and then as `(7)`.
///
/// A recursive function has a depth at its end, as in `name'2`, which is removed.
fn full_name(names: &mut HashMap<String, String>, given: &str) -> String {
    let (number, name) = given.split_once(' ').unwrap_or((given, ""));
    if name.is_empty() {
        return names
            .get(number)
            .cloned()
            .unwrap_or_else(|| given.to_owned());
    }
    let plain = match name.rsplit_once('\'') {
        Some((plain, depth)) if depth.parse::<u32>().is_ok() => plain,
        _ => name,
    };
    names.insert(number.to_owned(), plain.to_owned());
    plain.to_owned()
}
