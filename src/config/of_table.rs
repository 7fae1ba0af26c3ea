//! Settings that are a table of the file, so that each field stands in one place.
//!
//! [`table!`] makes of one list of fields the settings' struct, the table that messages, the JSON
//! Schema and the pages have, the reader with its defaults, and what `show` and `changes` need.

use std::path::Path;

use toml::de::DeValue;

use super::Settings;
use super::fields::Fields;
use super::node::Node;
use super::report::{Parsed, Report, Shared, Source};
use super::schema::{Effect, Field, Form, Table};

/// Settings with the fields of a table.
pub(super) trait OfTable: Sized + 'static {
    const TABLE: Table;
    /// How each field of the table is shown; `None`: it is left out.
    const SHOW: &'static [fn(&Self, &Settings) -> Option<Shown>];

    /// Reads the fields that are values of the settings. A wrong one has its default, or else its
    /// example, in the result.
    fn read(fields: &mut Fields) -> Self;

    /// Reads a table of which each field is a value of the settings.
    fn of(mut fields: Fields) -> Self {
        let settings = Self::read(&mut fields);
        fields.finish();
        settings
    }

    /// As [`OfTable::of`]; `None` if a field is wrong.
    fn of_valid(mut fields: Fields) -> Option<Self> {
        let settings = Self::read(&mut fields);
        let is_right = !fields.has_wrong();
        fields.finish();
        is_right.then_some(settings)
    }

    /// All fields with their values, in the order in which they are shown.
    fn shown(&self, settings: &Settings) -> Rows {
        let mut fields: Vec<_> = Self::TABLE.fields.iter().zip(Self::SHOW).collect();
        fields.sort_by_key(|(field, _)| field.shown_at);
        let row = |(field, show): (&Field, &fn(&Self, &Settings) -> _)| {
            Some((field.name.to_owned(), show(self, settings)?))
        };
        fields.into_iter().filter_map(row).collect()
    }

    /// The fields that differ from an earlier file and take effect at a restart only.
    fn fixed_changes(&self, settings: &Settings, old: &Self, before: &Settings) -> Vec<String> {
        let fields = Self::TABLE.fields.iter().zip(Self::SHOW);
        let fixed = fields.filter(|(field, _)| field.effect == Effect::Restart);
        let changed = fixed.filter(|(_, show)| show(self, settings) != show(old, before));
        changed.map(|(field, _)| field.name.to_owned()).collect()
    }
}

/// A value as `show` writes it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// TOML on one line.
    Value(String),
    Table(Rows),
    Comment(String),
}

pub(super) type Rows = Vec<(String, Shown)>;

/// A table in a table, if it is there.
pub(super) fn shown_table<T: OfTable>(table: Option<&T>, settings: &Settings) -> Option<Shown> {
    table.map(|table| Shown::Table(table.shown(settings)))
}

/// How the values of a kind are written, read and shown.
pub(super) struct Kind<V> {
    pub(super) form: Form,
    /// Reports a wrong value, and then returns `None`.
    pub(super) read: fn(Node<'_>) -> Option<V>,
    pub(super) show: fn(&V) -> Option<Shown>,
}

/// A kind of values.
pub(super) const fn kind<V>(
    form: Form,
    read: fn(Node<'_>) -> Option<V>,
    show: fn(&V) -> Option<Shown>,
) -> Kind<V> {
    Kind { form, read, show }
}

impl<V> Kind<V> {
    /// A field with this default, as JSON.
    pub(super) const fn or(self, default: &'static str) -> Typed<V> {
        self.field(Some(default), None, None)
    }

    /// A required field. Messages show the example.
    pub(super) const fn required(self, example: &'static str) -> Typed<V> {
        self.field(None, Some(example), None)
    }

    /// A field whose default is not one value, or no value.
    pub(super) const fn or_else(self, default: fn() -> V) -> Typed<V> {
        self.field(None, None, Some(default))
    }

    const fn field(
        self,
        default: Option<&'static str>,
        example: Option<&'static str>,
        absent: Option<fn() -> V>,
    ) -> Typed<V> {
        Typed {
            field: Field {
                default,
                example,
                ..Field::of(self.form)
            },
            kind: self,
            wrap: |it| it,
            unwrap: |it| Some(it),
            absent,
        }
    }

    /// A field that may be left out.
    pub(super) const fn optional(self) -> Typed<Option<V>, V> {
        Typed {
            field: Field::of(self.form),
            kind: self,
            wrap: Some,
            unwrap: Option::as_ref,
            absent: Some(|| None),
        }
    }
}

/// A field of type `V`, which the file writes as a kind of values `K`: `V` is `K` or `Option<K>`.
pub(super) struct Typed<V, K = V> {
    pub(super) field: Field,
    kind: Kind<K>,
    wrap: fn(K) -> V,
    unwrap: fn(&V) -> Option<&K>,
    absent: Option<fn() -> V>,
}

impl<V, K> Typed<V, K> {
    /// The same field under another name than that of the settings.
    pub(super) const fn named(mut self, name: &'static str) -> Self {
        self.field.name = name;
        self
    }

    /// The same field, which is shown behind those of a lower place.
    pub(super) const fn shown_at(mut self, place: i8) -> Self {
        self.field.shown_at = place;
        self
    }

    /// The value of the field in a table; if that is wrong, the one that it has without.
    pub(super) fn read(&self, name: &'static str, fields: &mut Fields) -> V {
        let name = self.field.described(name, Effect::Now, "").name;
        let given = fields.read_given(name, self.field.example, self.kind.read);
        given.map_or_else(|| self.absent(fields), self.wrap)
    }

    fn absent(&self, fields: &Fields) -> V {
        let written = self.field.default.or(self.field.example);
        let value = written.and_then(|text| read_text(text, fields, self.kind.read));
        let value = value.map(self.wrap).or_else(|| Some(self.absent?()));
        value.expect("a default or an example that the reader of its field takes")
    }

    pub(super) fn show(&self, value: &V) -> Option<Shown> {
        (self.kind.show)((self.unwrap)(value)?)
    }
}

/// Reads a text of the program as a value of a field.
fn read_text<T>(text: &str, fields: &Fields, read: impl FnOnce(Node) -> Option<T>) -> Option<T> {
    let value = DeValue::parse(text).ok()?;
    read(Node::new("", &value, fields.report()))
}

/// Reads a field that is not of the settings alone, or its default.
pub(super) fn read_or_default<T: Default>(
    fields: &mut Fields,
    name: &'static str,
    read: impl Fn(Node) -> T,
) -> T {
    if let Some(node) = fields.get(name) {
        return read(node);
    }
    let default = fields.default_of(name);
    let value = default.and_then(|text| read_text(text, fields, |node| Some(read(node))));
    value.unwrap_or_default()
}

/// The settings of a table that no file has.
pub(super) fn defaults<T: OfTable>() -> T {
    let shared = Shared::default();
    let file = Parsed::of("");
    let nowhere = Path::new("");
    let source = Source::of(nowhere, nowhere, &shared);
    T::of(Fields::absent(T::TABLE, &Report::new(&file, source)))
}

/// A field whose values must be of the type of the settings.
pub(super) const fn typed<V, K>(field: Typed<V, K>) -> Typed<V, K> {
    field
}

/// Makes settings of the fields of a table.
///
/// - `name: Type = field, Effect, "meaning";` is a field of the settings and of the table.
/// - `name: Type;` is of the settings only, and has the type's default until it is set.
/// - `+ name: field, Effect, "meaning", show;` is of the table only: its reader asks for it.
///
/// `const NAME { name: field, Effect, "meaning"; ... }` is a table without settings.
macro_rules! table {
    (
        $(#[$meta:meta])*
        pub struct $Name:ident {
            $(
                $(#[$of_field:meta])*
                $field:ident: $type:ty $(= $typed:expr, $effect:ident, $about:literal)?;
                $(+ $other:ident: $its:expr, $its_effect:ident, $its_about:literal, $show:expr;)*
            )*
        }
    ) => {
        $(#[$meta])*
        #[allow(clippy::doc_markdown, reason = "its meanings name fields as a schema does")]
        pub struct $Name {
            $( $(#[doc = $about])? $(#[$of_field])* pub $field: $type, )*
        }

        impl $crate::of_table::OfTable for $Name {
            const TABLE: $crate::schema::Table = $crate::schema::Table {
                fields: &[$(
                    $(
                        $crate::of_table::typed::<$type, _>($typed).field.described(
                            stringify!($field),
                            $crate::schema::Effect::$effect,
                            $about,
                        ),
                    )?
                    $(
                        $its.described(
                            stringify!($other),
                            $crate::schema::Effect::$its_effect,
                            $its_about,
                        ),
                    )*
                )*],
            };
            const SHOW: &'static [fn(
                &Self,
                &$crate::Settings,
            ) -> Option<$crate::of_table::Shown>] = &[$(
                $( |it, _| $crate::of_table::typed::<$type, _>($typed).show(&it.$field), )?
                $( $show, )*
            )*];

            fn read(fields: &mut $crate::fields::Fields) -> Self {
                // A table may have no field that is a value of the settings.
                let _ = &fields;
                Self {
                    $( $field: table!(@read fields, $field: $type $(= $typed)?), )*
                }
            }
        }
    };
    ($vis:vis const $NAME:ident {
        $($field:ident: $its:expr, $effect:ident, $about:literal;)*
    }) => {
        $vis const $NAME: $crate::schema::Table = $crate::schema::Table {
            fields: &[$(
                $its.described(
                    stringify!($field),
                    $crate::schema::Effect::$effect,
                    $about,
                ),
            )*],
        };
    };
    (@read $fields:ident, $field:ident: $type:ty = $typed:expr) => {
        $crate::of_table::typed::<$type, _>($typed).read(stringify!($field), $fields)
    };
    (@read $fields:ident, $field:ident: $type:ty) => {
        <$type>::default()
    };
}
pub(super) use table;
