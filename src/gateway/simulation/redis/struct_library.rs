//! Redis's `struct.pack` and `struct.unpack`, for the formats that the scripts use.
//!
//! A format begins with `<`. Then come `B`, `I2`, `I4` and `I7` (whole numbers of one, two, four
//! and seven bytes), `d` (a double), `c8` and `c12` (a text of so many bytes), and `c0` (a text;
//! when it is read, its length is the number before it).

use mlua::{Error, FromLua, Lua, MultiValue, Value};

/// Item of a format.
#[derive(Clone, Copy)]
enum Item {
    /// Whole number of this many bytes.
    Whole(usize),
    Double,
    /// Text of this many bytes.
    Fixed(usize),
    /// Text of any length.
    Text,
}

/// Parses a format.
fn parse_format(format: &str) -> mlua::Result<Vec<Item>> {
    let unknown = || Error::RuntimeError(format!("ERR unknown format {format}"));
    let mut rest = format.strip_prefix('<').ok_or_else(unknown)?;
    let mut items = Vec::new();
    while !rest.is_empty() {
        // Each name in a format, and its item.
        let known = [
            ("B", Item::Whole(1)),
            ("I2", Item::Whole(2)),
            ("I4", Item::Whole(4)),
            ("I7", Item::Whole(7)),
            ("d", Item::Double),
            ("c8", Item::Fixed(8)),
            ("c12", Item::Fixed(12)),
            ("c0", Item::Text),
        ];
        let found = known
            .into_iter()
            .find_map(|(name, item)| Some((rest.strip_prefix(name)?, item)));
        let (after, item) = found.ok_or_else(unknown)?;
        items.push(item);
        rest = after;
    }
    Ok(items)
}

/// Packs values in this format.
pub(super) fn pack(format: &str, values: MultiValue) -> mlua::Result<Vec<u8>> {
    let mut packed = Vec::new();
    let mut values = values.into_iter();
    for item in parse_format(format)? {
        let missing = || Error::RuntimeError("ERR bad argument to 'pack'".to_owned());
        let value = values.next().ok_or_else(missing)?;
        match (item, value) {
            (Item::Text, Value::String(text)) => packed.extend_from_slice(&text.as_bytes()),
            (Item::Fixed(size), Value::String(text)) => {
                let text = text.as_bytes();
                packed.extend_from_slice(text.get(..size).ok_or_else(missing)?);
            }
            (Item::Double, value) => packed.extend_from_slice(&double(&value)?.to_le_bytes()),
            (Item::Whole(size), value) => {
                let whole = double(&value)? as u64;
                packed.extend_from_slice(&whole.to_le_bytes()[..size]);
            }
            (Item::Fixed(_) | Item::Text, _) => return Err(missing()),
        }
    }
    Ok(packed)
}

/// Reads values from position `from`, counted from 1. The last value is the next position.
pub(super) fn unpack(
    lua: &Lua,
    format: &str,
    packed: &[u8],
    from: usize,
) -> mlua::Result<MultiValue> {
    let mut position = from.saturating_sub(1);
    let mut values = Vec::new();
    let mut take = |size: usize| {
        let taken = packed.get(position..position + size);
        position += size;
        taken.ok_or_else(|| Error::RuntimeError("ERR data string too short".to_owned()))
    };
    for item in parse_format(format)? {
        let value = match item {
            Item::Whole(size) => {
                let mut whole = [0; 8];
                whole[..size].copy_from_slice(take(size)?);
                number(u64::from_le_bytes(whole))
            }
            Item::Double => {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(take(8)?);
                Value::Number(f64::from_le_bytes(bytes))
            }
            Item::Fixed(size) => Value::String(lua.create_string(take(size)?)?),
            Item::Text => {
                let length = values.pop().unwrap_or(Value::Nil);
                let length = usize::from_lua(length, lua)?;
                Value::String(lua.create_string(take(length)?)?)
            }
        };
        values.push(value);
    }
    values.push(number(position as u64 + 1));
    Ok(MultiValue::from_vec(values))
}

/// Converts a value to a number. All numbers of Lua 5.1 are doubles.
fn double(value: &Value) -> mlua::Result<f64> {
    match value {
        Value::Number(number) => Ok(*number),
        Value::Integer(number) => Ok(*number as f64),
        _ => Err(Error::RuntimeError("ERR number expected".to_owned())),
    }
}

fn number(whole: u64) -> Value {
    Value::Number(whole as f64)
}
