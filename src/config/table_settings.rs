//! The macro [`table!`], which defines a table of the file once: one entry per field.
//!
//! Each entry has the name and the type of a field, how it is read, when a change of it takes
//! effect, and its meaning for users. From them the macro makes the struct of the settings, the
//! definition for messages and the JSON Schema, the reader with its defaults, and the code for
//! `show` and `changes`. `tables` has all uses, `tables::kinds` the kinds of values.

use toml::de::DeValue;

use super::Settings;
use super::fields::Fields;
use super::node::Node;
use super::schema::{Effect, Field, Form, Table};

/// Settings that are read from the fields of a table.
pub(super) trait TableSettings: Sized + 'static {
    /// Definitions of the fields.
    const TABLE: Table;
    /// Function that shows each field of the table. A field with `None` is omitted.
    const SHOW: &'static [fn(&Self, &Settings) -> Option<Shown>];

    /// Reads the fields that belong to the settings. The caller reads the others.
    ///
    /// A wrong field gets its default in the result, or else its example.
    fn read(fields: &mut Fields) -> Self;

    /// Reads a table whose fields all belong to the settings.
    fn read_all(mut fields: Fields) -> Self {
        let settings = Self::read(&mut fields);
        fields.finish();
        settings
    }

    /// Reads a table as [`TableSettings::read_all`] does. Returns `None` if a field is wrong.
    fn read_valid(mut fields: Fields) -> Option<Self> {
        let settings = Self::read(&mut fields);
        fields.finish().then_some(settings)
    }

    /// Returns the names of all fields with their values, as `show` writes them.
    fn shown_rows(&self, settings: &Settings) -> Rows {
        let fields = Self::TABLE.fields.iter().zip(Self::SHOW);
        let rows = fields.map(|(field, show)| Some((field.name.to_owned(), show(self, settings)?)));
        rows.flatten().collect()
    }

    /// Returns the names of the fields that differ from `old` and take effect only at a restart.
    ///
    /// `settings`: the settings with this table. `whole_old`: those with the table `old`.
    fn fixed_changes(&self, settings: &Settings, old: &Self, whole_old: &Settings) -> Vec<String> {
        let fields = Self::TABLE.fields.iter().zip(Self::SHOW);
        let fixed = fields.filter(|(field, _)| field.effect == Effect::Restart);
        let changed = fixed.filter(|(_, show)| show(self, settings) != show(old, whole_old));
        changed.map(|(field, _)| field.name.to_owned()).collect()
    }
}

/// A value as `show` writes it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// A TOML value on one line.
    Value(String),
    /// An inner table.
    Table(Rows),
    /// A comment, which has no name.
    Comment(String),
}

/// Names of fields with their shown values.
pub(super) type Rows = Vec<(String, Shown)>;

/// Shows an inner table, if it is present.
pub(super) fn show_table<T: TableSettings>(
    table: Option<&T>,
    settings: &Settings,
) -> Option<Shown> {
    table.map(|table| Shown::Table(table.shown_rows(settings)))
}

/// Kind of value, such as a duration.
pub(super) struct Kind<V> {
    /// Form in the file, for the JSON Schema.
    pub(super) form: Form,
    /// Reads a value. Reports a wrong one, and then returns `None`.
    pub(super) read: fn(Node<'_>) -> Option<V>,
    /// Returns the value as `show` writes it; `None`: the field is omitted.
    pub(super) show: fn(&V) -> Option<Shown>,
}

impl<V> Kind<V> {
    /// Makes a field with this default, as JSON.
    pub(super) const fn with_default(self, default: &'static str) -> TypedField<V> {
        let field = Field::of_form(self.form).with_default(default);
        self.always(field, None)
    }

    /// Makes a required field. Messages show `example`.
    pub(super) const fn required(self, example: &'static str) -> TypedField<V> {
        let field = Field::of_form(self.form).required(example);
        self.always(field, None)
    }

    /// Makes a field whose default cannot be written as one value. The function returns it.
    pub(super) const fn with_default_from(self, default: fn() -> V) -> TypedField<V> {
        let field = Field::of_form(self.form);
        self.always(field, Some(default))
    }

    /// Makes a field that always has a value in the settings. `absent`: as in [`TypedField`].
    const fn always(self, field: Field, absent: Option<fn() -> V>) -> TypedField<V> {
        TypedField {
            field,
            kind: self,
            to_setting: |value| value,
            to_shown: |setting| Some(setting),
            absent,
        }
    }

    /// Makes a field that may be omitted. Its setting is then `None`.
    pub(super) const fn optional(self) -> TypedField<Option<V>, V> {
        TypedField {
            field: Field::of_form(self.form),
            kind: self,
            to_setting: Some,
            to_shown: Option::as_ref,
            absent: Some(|| None),
        }
    }
}

/// A field whose setting has the type `V`, and whose value in the file the type `K`.
///
/// `V` is `K`, or `Option<K>` if the field may be omitted.
pub(super) struct TypedField<V, K = V> {
    pub(super) field: Field,
    kind: Kind<K>,
    /// Converts a value of the file to the setting.
    to_setting: fn(K) -> V,
    /// Returns the value to show for a setting; `None`: the field is omitted.
    to_shown: fn(&V) -> Option<&K>,
    /// Returns the setting for a missing field that has neither a default nor an example.
    absent: Option<fn() -> V>,
}

impl<V, K> TypedField<V, K> {
    /// Gives the field another name in the file than in the settings.
    pub(super) const fn named(mut self, name: &'static str) -> Self {
        self.field.name = name;
        self
    }

    /// Reads the field in a table. A wrong field gets the setting of a missing one.
    ///
    /// `name`: name of the setting, which is also that of the field unless [`named`](Self::named)
    /// gave it another one.
    pub(super) fn read(&self, name: &'static str, fields: &mut Fields) -> V {
        let name = self.field.described(name, Effect::Now, "").name;
        let given = fields.read_field(name, self.field.example, self.kind.read);
        given.map_or_else(|| self.absent(fields), self.to_setting)
    }

    /// Returns the setting of a missing field: its default, or else its example.
    fn absent(&self, fields: &Fields) -> V {
        let text = self.field.default.or(self.field.example);
        let value = text.and_then(|text| read_text(text, fields, self.kind.read));
        let value = value.map(self.to_setting).or_else(|| Some(self.absent?()));
        value.expect("a default or an example that the reader of its field takes")
    }

    /// Returns a setting as `show` writes it; `None`: the field is omitted.
    pub(super) fn show(&self, setting: &V) -> Option<Shown> {
        (self.kind.show)((self.to_shown)(setting)?)
    }
}

/// Reads a text of the program, such as a default, as the value of a field.
fn read_text<T>(text: &str, fields: &Fields, read: impl FnOnce(Node) -> Option<T>) -> Option<T> {
    let value = DeValue::parse(text).ok()?;
    read(Node::new("", &value, fields.report))
}

/// Reads a field whose reader needs more than the field's node. Returns the default if it is
/// missing.
pub(super) fn read_or_default<T: Default>(
    fields: &mut Fields,
    name: &'static str,
    read: impl Fn(Node) -> T,
) -> T {
    if let Some(node) = fields.get(name) {
        return read(node);
    }
    let default = fields.field(name).and_then(|field| field.default);
    let value = default.and_then(|text| read_text(text, fields, |node| Some(read(node))));
    value.unwrap_or_default()
}

/// Returns the field. The macro names `V`, so that a field with another type does not compile.
pub(super) const fn typed<V, K>(field: TypedField<V, K>) -> TypedField<V, K> {
    field
}

/// Makes settings from the fields of a table.
///
/// - `name: Type = field, Effect, "meaning";` is a field of the settings and of the table, such as
///   `interval: Duration = TIMEOUT.with_default("\"5s\""), Now, "Time between two checks.";`.
/// - `name: Type;` belongs to the settings only, and has the type's default until the code that
///   calls the reader sets it.
/// - `+ name: field, Effect, "meaning", show;` belongs to the table only: the code that calls the
///   reader must read it, and `show` returns its value from the settings.
///
/// `const NAME { name: field, Effect, "meaning"; ... }` is a table without settings.
macro_rules! table {
    (
        $(#[$meta:meta])*
        pub struct $Name:ident {
            $(
                $(#[$field_meta:meta])*
                $field:ident: $type:ty $(= $typed:expr, $effect:ident, $about:literal)?;
                $(+ $other:ident: $other_field:expr, $other_effect:ident, $other_about:literal, $show:expr;)*
            )*
        }
    ) => {
        $(#[$meta])*
        #[allow(clippy::doc_markdown, reason = "its meanings name fields as a schema does")]
        pub struct $Name {
            $( $(#[doc = $about])? $(#[$field_meta])* pub $field: $type, )*
        }

        impl $crate::table_settings::TableSettings for $Name {
            const TABLE: $crate::schema::Table = $crate::schema::Table {
                fields: &[$(
                    $(
                        $crate::table_settings::typed::<$type, _>($typed).field.described(
                            stringify!($field),
                            $crate::schema::Effect::$effect,
                            $about,
                        ),
                    )?
                    $(
                        $other_field.described(
                            stringify!($other),
                            $crate::schema::Effect::$other_effect,
                            $other_about,
                        ),
                    )*
                )*],
            };
            const SHOW: &'static [fn(
                &Self,
                &$crate::Settings,
            ) -> Option<$crate::table_settings::Shown>] = &[$(
                $( |it, _| $crate::table_settings::typed::<$type, _>($typed).show(&it.$field), )?
                $( $show, )*
            )*];

            fn read(fields: &mut $crate::fields::Fields) -> Self {
                // A table may have no field that belongs to the settings.
                let _ = &fields;
                Self {
                    $( $field: table!(@read fields, $field: $type $(= $typed)?), )*
                }
            }
        }
    };
    ($vis:vis const $NAME:ident {
        $($field:ident: $other_field:expr, $effect:ident, $about:literal;)*
    }) => {
        $vis const $NAME: $crate::schema::Table = $crate::schema::Table {
            fields: &[$(
                $other_field.described(
                    stringify!($field),
                    $crate::schema::Effect::$effect,
                    $about,
                ),
            )*],
        };
    };
    (@read $fields:ident, $field:ident: $type:ty = $typed:expr) => {
        $crate::table_settings::typed::<$type, _>($typed).read(stringify!($field), $fields)
    };
    (@read $fields:ident, $field:ident: $type:ty) => {
        <$type>::default()
    };
}
pub(super) use table;
