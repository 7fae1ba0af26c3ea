//! Defines the settings of a table once: one entry per field.
//!
//! From one list of fields, [`table!`] makes the struct of the settings, the table for messages,
//! the JSON Schema and the pages, the reader with its defaults, and the code for `show` and
//! `changes`.

use toml::de::DeValue;

use super::Settings;
use super::fields::Fields;
use super::node::Node;
use super::schema::{Effect, Field, Form, Table};

/// Settings that are read from the fields of a table.
pub(super) trait TableSettings: Sized + 'static {
    const TABLE: Table;
    /// Function that shows each field of the table. A field with `None` is omitted.
    const SHOW: &'static [fn(&Self, &Settings) -> Option<Shown>];

    /// Reads the fields that belong to the settings.
    ///
    /// A wrong field gets its default in the result, or else its example.
    fn read(fields: &mut Fields) -> Self;

    /// Reads a table whose fields all belong to the settings.
    fn of(mut fields: Fields) -> Self {
        let settings = Self::read(&mut fields);
        fields.finish();
        settings
    }

    /// Reads a table as [`TableSettings::of`] does; `None` if a field is wrong.
    fn of_valid(mut fields: Fields) -> Option<Self> {
        let settings = Self::read(&mut fields);
        fields.finish().then_some(settings)
    }

    /// Returns all fields with their values.
    fn shown(&self, settings: &Settings) -> Rows {
        let fields = Self::TABLE.fields.iter().zip(Self::SHOW);
        let rows = fields.map(|(field, show)| Some((field.name.to_owned(), show(self, settings)?)));
        rows.flatten().collect()
    }

    /// Returns the fields that differ from an earlier file and take effect only at a restart.
    ///
    /// `old`: the same table in the earlier settings `whole_old`.
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
    Table(Rows),
    Comment(String),
}

/// Names of fields with their shown values.
pub(super) type Rows = Vec<(String, Shown)>;

/// Shows an inner table, if it is present.
pub(super) fn shown_table<T: TableSettings>(
    table: Option<&T>,
    settings: &Settings,
) -> Option<Shown> {
    table.map(|table| Shown::Table(table.shown(settings)))
}

/// Kind of value: its form in the file, its reader and its output.
pub(super) struct Kind<V> {
    pub(super) form: Form,
    /// Reads a value. Reports a wrong one, and then returns `None`.
    pub(super) read: fn(Node<'_>) -> Option<V>,
    pub(super) show: fn(&V) -> Option<Shown>,
}

/// Makes a kind from its parts.
pub(super) const fn kind<V>(
    form: Form,
    read: fn(Node<'_>) -> Option<V>,
    show: fn(&V) -> Option<Shown>,
) -> Kind<V> {
    Kind { form, read, show }
}

impl<V> Kind<V> {
    /// Makes a field with this default, as JSON.
    pub(super) const fn or(self, default: &'static str) -> TypedField<V> {
        let field = Field::of(self.form).or(default);
        self.always(field, None)
    }

    /// Makes a required field. Messages show `example`.
    pub(super) const fn required(self, example: &'static str) -> TypedField<V> {
        let field = Field::of(self.form).required(example);
        self.always(field, None)
    }

    /// Makes a field whose default cannot be written as one value.
    pub(super) const fn or_else(self, default: fn() -> V) -> TypedField<V> {
        let field = Field::of(self.form);
        self.always(field, Some(default))
    }

    /// Makes a field that always has a value in the settings.
    const fn always(self, field: Field, absent: Option<fn() -> V>) -> TypedField<V> {
        TypedField {
            field,
            kind: self,
            wrap: |it| it,
            unwrap: |it| Some(it),
            absent,
        }
    }

    /// Makes a field that may be omitted.
    pub(super) const fn optional(self) -> TypedField<Option<V>, V> {
        TypedField {
            field: Field::of(self.form),
            kind: self,
            wrap: Some,
            unwrap: Option::as_ref,
            absent: Some(|| None),
        }
    }
}

/// A field of type `V`, written in the file as a kind of value `K`: `V` is `K` or `Option<K>`.
pub(super) struct TypedField<V, K = V> {
    pub(super) field: Field,
    kind: Kind<K>,
    /// Converts a value of the file to the setting.
    wrap: fn(K) -> V,
    /// Returns the value to show for a setting; `None`: the field is omitted.
    unwrap: fn(&V) -> Option<&K>,
    /// Returns the setting for a missing field that has neither a default nor an example.
    absent: Option<fn() -> V>,
}

impl<V, K> TypedField<V, K> {
    /// Gives the field another name in the file than in the settings.
    pub(super) const fn named(mut self, name: &'static str) -> Self {
        self.field.name = name;
        self
    }

    /// Reads the field in a table. A wrong field gets the value of a missing one.
    pub(super) fn read(&self, name: &'static str, fields: &mut Fields) -> V {
        let name = self.field.described(name, Effect::Now, "").name;
        let given = fields.read_given(name, self.field.example, self.kind.read);
        given.map_or_else(|| self.absent(fields), self.wrap)
    }

    /// Returns the value of a missing field: its default, or else its example.
    fn absent(&self, fields: &Fields) -> V {
        let text = self.field.default.or(self.field.example);
        let value = text.and_then(|text| read_text(text, fields, self.kind.read));
        let value = value.map(self.wrap).or_else(|| Some(self.absent?()));
        value.expect("a default or an example that the reader of its field takes")
    }

    pub(super) fn show(&self, value: &V) -> Option<Shown> {
        (self.kind.show)((self.unwrap)(value)?)
    }
}

/// Reads a text of the program, such as a default, as the value of a field.
fn read_text<T>(text: &str, fields: &Fields, read: impl FnOnce(Node) -> Option<T>) -> Option<T> {
    let value = DeValue::parse(text).ok()?;
    read(Node::new("", &value, fields.report))
}

/// Reads a field that does not belong to the settings alone, or returns its default.
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

/// Checks at compile time that a field has the type of its setting.
pub(super) const fn typed<V, K>(field: TypedField<V, K>) -> TypedField<V, K> {
    field
}

/// Makes settings from the fields of a table.
///
/// - `name: Type = field, Effect, "meaning";` is a field of the settings and of the table.
/// - `name: Type;` belongs to the settings only, and has the type's default until it is set.
/// - `+ name: field, Effect, "meaning", show;` belongs to the table only: its reader must request
///   it.
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
