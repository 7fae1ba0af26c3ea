//! Runs Lua scripts as Redis does.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use mlua::{Error, Function, Lua, MultiValue, Table, Value, Variadic};
use redis::Script;

use super::{Change, Database, Reply, struct_library};

/// The Lua interpreter of a Redis, and its known scripts.
pub(super) struct Scripts {
    lua: Lua,
    /// Compiled scripts, by their hash.
    known: BTreeMap<Vec<u8>, Function>,
    change: Change,
}

impl Scripts {
    pub(super) fn new(database: Rc<RefCell<Database>>, change: Change) -> Self {
        let lua = Lua::new();
        prepare(&lua, database).expect("a Lua");
        Self {
            lua,
            known: BTreeMap::new(),
            change,
        }
    }

    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    pub(super) fn eval(&mut self, args: &[Vec<u8>]) -> Reply {
        let Some((code, args)) = args.split_first() else {
            return Reply::error("ERR wrong number of arguments for 'eval' command");
        };
        let Ok(code) = std::str::from_utf8(code) else {
            return Reply::error("ERR Error compiling script");
        };
        let hash = Script::new(code).get_hash().as_bytes().to_vec();
        let compiled = self.lua.load(self.change.apply(code)).into_function();
        match compiled {
            Ok(function) => _ = self.known.insert(hash.clone(), function),
            Err(error) => return Reply::Error(one_line(&format!("ERR Error compiling: {error}"))),
        }
        self.call(&hash, args)
    }

    pub(super) fn eval_hash(&mut self, args: &[Vec<u8>]) -> Reply {
        match args.split_first() {
            Some((hash, args)) => self.call(hash, args),
            None => Reply::error("ERR wrong number of arguments for 'evalsha' command"),
        }
    }

    /// Calls a known script. `args`: number of keys, keys, and other arguments.
    fn call(&self, hash: &[u8], args: &[Vec<u8>]) -> Reply {
        let Some(script) = self.known.get(hash) else {
            return Reply::error("NOSCRIPT No matching script. Please use EVAL.");
        };
        let Some((keys, args)) = split_keys(args) else {
            return Reply::error("ERR Number of keys can't be greater than number of args");
        };
        let result = self.run(script, keys, args);
        result.unwrap_or_else(|error| {
            let text = match &error {
                Error::CallbackError { cause, .. } => cause.to_string(),
                _ => format!("ERR {error}"),
            };
            Reply::Error(one_line(text.trim_start_matches("runtime error: ")))
        })
    }

    /// Runs a script with these keys and arguments.
    fn run(&self, script: &Function, keys: &[Vec<u8>], args: &[Vec<u8>]) -> mlua::Result<Reply> {
        for (name, words) in [("KEYS", keys), ("ARGV", args)] {
            let words = words.iter().map(|word| self.lua.create_string(word));
            let words = words.collect::<mlua::Result<Vec<_>>>()?;
            self.lua.globals().set(name, words)?;
        }
        Ok(match script.call(())? {
            Value::String(text) => Reply::text(&text.as_bytes()),
            Value::Integer(number) => Reply::Number(number),
            _ => Reply::Nothing,
        })
    }
}

/// Words of a command.
type Words = [Vec<u8>];

/// Splits the arguments of a call into keys and other arguments.
fn split_keys(args: &Words) -> Option<(&Words, &Words)> {
    let (count, args) = args.split_first()?;
    let count = std::str::from_utf8(count).ok()?.parse().ok()?;
    args.split_at_checked(count)
}

/// Returns the first line of a text: a reply of Redis has one line.
fn one_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// Adds the functions and globals that Redis gives its scripts.
fn prepare(lua: &Lua, database: Rc<RefCell<Database>>) -> mlua::Result<()> {
    let same = Rc::clone(&database);
    let call = lua.create_function(move |lua, words: Variadic<Value>| {
        match database.borrow_mut().run(&to_command(&words)) {
            Reply::Error(error) => Err(Error::RuntimeError(error)),
            reply => to_lua(lua, &reply),
        }
    })?;
    // `pcall` returns an error as a reply, and does not raise it.
    let protected = lua.create_function(move |lua, words: Variadic<Value>| {
        let reply = same.borrow_mut().run(&to_command(&words));
        to_lua(lua, &reply)
    })?;
    let redis = lua.create_table()?;
    redis.set("call", call)?;
    redis.set("pcall", protected)?;
    lua.globals().set("redis", redis)?;
    let pack = lua.create_function(|lua, (format, values): (String, MultiValue)| {
        lua.create_string(struct_library::pack(&format, values)?)
    })?;
    let unpack = lua.create_function(
        |lua, (format, packed, from): (String, mlua::String, Option<usize>)| {
            struct_library::unpack(lua, &format, &packed.as_bytes(), from.unwrap_or(1))
        },
    )?;
    let library = lua.create_table()?;
    library.set("pack", pack)?;
    library.set("unpack", unpack)?;
    lua.globals().set("struct", library)
}

/// Converts the arguments of `redis.call` to the words of a command.
fn to_command(words: &[Value]) -> Vec<Vec<u8>> {
    let word = |word: &Value| match word {
        Value::String(text) => text.as_bytes().to_vec(),
        Value::Integer(number) => number.to_string().into_bytes(),
        Value::Number(number) => number.to_string().into_bytes(),
        _ => Vec::new(),
    };
    words.iter().map(word).collect()
}

/// Converts a reply to a value of Lua, as Redis does.
fn to_lua(lua: &Lua, reply: &Reply) -> mlua::Result<Value> {
    let table = |name, text: &str| -> mlua::Result<Table> {
        let table = lua.create_table()?;
        table.set(name, text)?;
        Ok(table)
    };
    Ok(match reply {
        Reply::Nothing => Value::Boolean(false),
        Reply::Text(text) => Value::String(lua.create_string(text)?),
        Reply::Number(number) => mlua::IntoLua::into_lua(*number, lua)?,
        Reply::Status(status) => Value::Table(table("ok", status)?),
        Reply::Error(error) => Value::Table(table("err", error)?),
        Reply::List(replies) => {
            let values = replies.iter().map(|reply| to_lua(lua, reply));
            Value::Table(lua.create_sequence_from(values.collect::<mlua::Result<Vec<_>>>()?)?)
        }
    })
}
