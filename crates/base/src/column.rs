//! Columns: named arrays with a unit, one entry a particle.
//!
//! [`columns!`](crate::columns) declares a struct of arrays once; permuting, filtering, appending and listing
//! follow from the declaration, so that no column can be forgotten. Columns that only one solver knows are
//! [`Column`]s, named at run time, and are treated alike.

use crate::parallel::CHUNK;
use bytemuck::Pod;
use glam::{Mat3, Vec3, Vec4};
use rayon::prelude::*;

/// What one entry of a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A 32-bit float.
    F32,
    /// A 64-bit float.
    F64,
    /// Three 32-bit floats.
    Vec3,
    /// Four 32-bit floats; of a quaternion x, y, z, w.
    Vec4,
    /// Nine 32-bit floats, column by column.
    Mat3,
    /// A 16-bit unsigned integer.
    U16,
    /// A 32-bit unsigned integer.
    U32,
    /// A 64-bit unsigned integer.
    U64,
}

impl Kind {
    /// Bytes of one entry.
    pub fn size(self) -> usize {
        match self {
            Self::U16 => 2,
            Self::F32 | Self::U32 => 4,
            Self::F64 | Self::U64 => 8,
            Self::Vec3 => 12,
            Self::Vec4 => 16,
            Self::Mat3 => 36,
        }
    }

    /// The name under which files store it.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Vec3 => "vec3",
            Self::Vec4 => "vec4",
            Self::Mat3 => "mat3",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
        }
    }
}

/// Name, unit and kind of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Name in files and on the command line.
    pub name: &'static str,
    /// SI unit, `"1"` where there is none.
    pub unit: &'static str,
    /// What an entry is.
    pub kind: Kind,
}

impl ColumnSpec {
    /// A column's name, unit and kind.
    pub const fn new(name: &'static str, unit: &'static str, kind: Kind) -> Self {
        Self { name, unit, kind }
    }
}

/// A type that can be an entry of a column.
pub trait Entry: Pod + Default + Send + Sync {
    /// Its kind.
    const KIND: Kind;
    /// The same bits, in parts of up to twelve bytes.
    type Parts: Pod + AsRef<[Self::Part]> + AsMut<[Self::Part]> + Send + Sync;
    /// One of them.
    type Part: Pod + Send + Sync;
}

macro_rules! entries {
    ($($type:ty => $kind:ident [$part:ty; $parts:literal]),* $(,)?) => {
        $(impl Entry for $type {
            const KIND: Kind = Kind::$kind;
            type Parts = [$part; $parts];
            type Part = $part;
        })*

        /// The entries of a column, as what they are, so that they can be borrowed as such.
        #[derive(Clone, Debug, PartialEq)]
        enum Values { $($kind(Vec<$type>),)* }

        impl Values {
            fn zeros(kind: Kind, len: usize) -> Self {
                match kind { $(Kind::$kind => Self::$kind(vec![<$type>::default(); len]),)* }
            }

            fn bytes(&self) -> &[u8] {
                match self { $(Self::$kind(values) => bytemuck::cast_slice(values),)* }
            }

            fn bytes_mut(&mut self) -> &mut [u8] {
                match self { $(Self::$kind(values) => bytemuck::cast_slice_mut(values),)* }
            }

            fn any(&mut self) -> &mut dyn AnyColumn {
                match self { $(Self::$kind(values) => values,)* }
            }

            fn append(&mut self, from: &Self, places: &[u32]) {
                match (self, from) {
                    $((Self::$kind(to), Self::$kind(from)) => append(to, from, places),)*
                    _ => unreachable!("columns of one table have one kind"),
                }
            }
        }
    };
}
entries!(
    f32 => F32 [u32; 1],
    f64 => F64 [[u32; 2]; 1],
    Vec3 => Vec3 [[u32; 3]; 1],
    Vec4 => Vec4 [[u32; 2]; 2],
    Mat3 => Mat3 [[u32; 3]; 3],
    u16 => U16 [u16; 1],
    u32 => U32 [u32; 1],
    u64 => U64 [[u32; 2]; 1],
);

/// A column named at run time: what one solver keeps for each particle beyond the common columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// What it holds.
    pub spec: ColumnSpec,
    values: Values,
}

impl Column {
    /// A column of `len` zeros.
    pub fn zeros(spec: ColumnSpec, len: usize) -> Self {
        Self {
            spec,
            values: Values::zeros(spec.kind, len),
        }
    }

    /// The entries as raw bytes.
    pub fn bytes(&self) -> &[u8] {
        self.values.bytes()
    }

    /// The entries as raw bytes, to be overwritten.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.values.bytes_mut()
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.bytes().len() / self.spec.kind.size()
    }

    /// True where there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// Appends the entries of `from`, a column of the same kind, at `places`.
    pub fn append(&mut self, from: &Self, places: &[u32]) {
        self.values.append(&from.values, places);
    }

    /// All entries.
    ///
    /// # Panics
    /// If `T` is not the column's kind: our own broken promise.
    pub fn entries<T: Entry>(&self) -> &[T] {
        assert_eq!(T::KIND, self.spec.kind, "column {}", self.spec.name);
        bytemuck::cast_slice(self.bytes())
    }

    /// All entries, to be overwritten; panics as [`entries`](Self::entries) does.
    pub fn entries_mut<T: Entry>(&mut self) -> &mut [T] {
        assert_eq!(T::KIND, self.spec.kind, "column {}", self.spec.name);
        bytemuck::cast_slice_mut(self.bytes_mut())
    }

    /// Entry `index`; panics as [`entries`](Self::entries) does, or past the end.
    pub fn get<T: Entry>(&self, index: usize) -> T {
        self.entries()[index]
    }

    /// Sets entry `index`; panics as [`get`](Self::get) does.
    pub fn set<T: Entry>(&mut self, index: usize, value: T) {
        self.entries_mut()[index] = value;
    }
}

/// Room by way of which columns are put in order, twelve bytes an entry. Who keeps it allocates nothing from step to step.
pub type Spare = Vec<Vec3>;

/// What can be done to every column alike.
pub trait AnyColumn {
    /// Keeps the entries whose flag is true, in order.
    fn retain_flagged(&mut self, keep: &[bool]);
    /// Lengthens or shortens to `len`, with zeros.
    fn resize_to(&mut self, len: usize);
    /// Makes entry `i` the old entry `order[i]`, part by part by way of `spare`: what is in it is lost.
    fn permute_by(&mut self, order: &[u32], spare: &mut Spare);
    /// Copies entries, one after the other: each pair is from where, and to where.
    fn copy_entries(&mut self, moves: &[(u32, u32)]);
}

impl<T: Entry> AnyColumn for Vec<T> {
    fn retain_flagged(&mut self, keep: &[bool]) {
        let mut flags = keep.iter();
        self.retain(|_| *flags.next().expect("one flag an entry"));
    }

    fn resize_to(&mut self, len: usize) {
        self.resize(len, T::default());
    }

    fn permute_by(&mut self, order: &[u32], spare: &mut Spare) {
        spare.resize(order.len(), Vec3::ZERO);
        let bytes = order.len() * size_of::<T::Part>();
        let spare: &mut [T::Part] =
            bytemuck::cast_slice_mut(&mut bytemuck::cast_slice_mut::<_, u8>(spare)[..bytes]);
        let entries: &mut [T::Parts] = bytemuck::cast_slice_mut(self);
        for part in 0..size_of::<T>() / size_of::<T::Part>() {
            spare
                .par_chunks_mut(CHUNK)
                .zip(order.par_chunks(CHUNK))
                .for_each(|(to, order)| {
                    for (to, from) in to.iter_mut().zip(order) {
                        *to = entries[*from as usize].as_ref()[part];
                    }
                });
            entries
                .par_chunks_mut(CHUNK)
                .zip(spare.par_chunks(CHUNK))
                .for_each(|(to, from)| {
                    for (to, from) in to.iter_mut().zip(from) {
                        to.as_mut()[part] = *from;
                    }
                });
        }
    }

    fn copy_entries(&mut self, moves: &[(u32, u32)]) {
        for &(from, to) in moves {
            self[to as usize] = self[from as usize];
        }
    }
}

impl AnyColumn for Column {
    fn retain_flagged(&mut self, keep: &[bool]) {
        self.values.any().retain_flagged(keep);
    }

    fn resize_to(&mut self, len: usize) {
        self.values.any().resize_to(len);
    }

    fn permute_by(&mut self, order: &[u32], spare: &mut Spare) {
        self.values.any().permute_by(order, spare);
    }

    fn copy_entries(&mut self, moves: &[(u32, u32)]) {
        self.values.any().copy_entries(moves);
    }
}

/// Declares a struct of arrays with one `Vec` a column, plus `extra` columns named at run time.
///
/// ```
/// barchan_base::columns! {
///     /// Beads on a wire.
///     pub struct Beads {
///         /// Where each is.
///         place: f32 [m],
///     }
/// }
/// let mut beads = Beads::default();
/// beads.resize(3);
/// beads.place[1] = 2.0;
/// beads.retain(&[false, true, true]);
/// assert_eq!(beads.place, [2.0, 0.0]);
/// ```
#[macro_export]
macro_rules! columns {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $(#[$field_meta:meta])* $field:ident : $type:ty [$($unit:tt)+], )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $( $(#[$field_meta])* pub $field: Vec<$type>, )+
            /// Columns that only the solver in use knows.
            pub extra: Vec<$crate::column::Column>,
        }

        impl $name {
            /// Name, unit and kind of the common columns, in the order of declaration.
            pub const COLUMNS: &'static [$crate::column::ColumnSpec] = &[
                $( $crate::column::ColumnSpec::new(stringify!($field), stringify!($($unit)+), <$type as $crate::column::Entry>::KIND), )+
            ];

            /// Every column as its description and its raw bytes, extra ones last.
            pub fn raw(&self) -> Vec<($crate::column::ColumnSpec, &[u8])> {
                let common: [&[u8]; Self::COLUMNS.len()] =
                    [$( $crate::column::as_bytes(&self.$field), )+];
                let extra = self.extra.iter().map(|column| (column.spec, column.bytes()));
                Self::COLUMNS.iter().copied().zip(common).chain(extra).collect()
            }

            fn each(&mut self, mut act: impl FnMut(&mut dyn $crate::column::AnyColumn)) {
                $( act(&mut self.$field); )+
                for column in &mut self.extra {
                    act(column);
                }
            }

            /// Lengthens or shortens every column to `len`, with zeros.
            pub fn resize(&mut self, len: usize) {
                self.each(|column| column.resize_to(len));
            }

            /// Keeps the entries whose flag is true, in order.
            pub fn retain(&mut self, keep: &[bool]) {
                self.each(|column| column.retain_flagged(keep));
            }

            /// Makes entry `i` the old entry `order[i]`, in every column, by way of `spare`: what is in it is lost.
            pub fn permute(&mut self, order: &[u32], spare: &mut $crate::column::Spare) {
                self.each(|column| column.permute_by(order, spare));
            }

            /// Copies entries, one after the other, in every column: each pair is from where, and to where.
            pub fn copy_entries(&mut self, moves: &[(u32, u32)]) {
                self.each(|column| column.copy_entries(moves));
            }

            /// Appends the entries of `from` at `places`; both must have the same extra columns.
            pub fn append(&mut self, from: &Self, places: &[u32]) {
                $( $crate::column::append(&mut self.$field, &from.$field, places); )+
                for (to, from) in self.extra.iter_mut().zip(&from.extra) {
                    to.append(from, places);
                }
            }
        }
    };
}

/// Appends the entries of `from` at `places`.
pub fn append<T: Entry>(to: &mut Vec<T>, from: &[T], places: &[u32]) {
    to.extend(places.iter().map(|place| from[*place as usize]));
}

/// The bytes of a slice of entries.
pub fn as_bytes<T: Entry>(entries: &[T]) -> &[u8] {
    bytemuck::cast_slice(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::columns! {
        /// Things to shuffle.
        pub struct Things {
            /// Place.
            place: Vec3 [m],
            /// Name.
            id: u64 [1],
        }
    }

    const HEAT: ColumnSpec = ColumnSpec::new("heat", "K", Kind::F32);

    fn four() -> Things {
        let mut things = Things {
            extra: vec![Column::zeros(HEAT, 0)],
            ..Default::default()
        };
        things.resize(4);
        for i in 0..4 {
            things.place[i] = Vec3::splat(i as f32);
            things.id[i] = i as u64;
            things.extra[0].set(i, i as f32 * 10.0);
        }
        things
    }

    fn agree(things: &Things, ids: &[u64]) {
        assert_eq!(things.id, ids);
        for (i, &id) in ids.iter().enumerate() {
            assert_eq!(things.place[i], Vec3::splat(id as f32));
            assert_eq!(
                things.extra[0].get::<f32>(i).to_bits(),
                (id as f32 * 10.0).to_bits()
            );
        }
    }

    #[test]
    fn every_column_follows_whatever_is_done_to_all() {
        let mut things = four();
        things.permute(&[2, 0, 3, 1], &mut Vec::new());
        agree(&things, &[2, 0, 3, 1]);
        things.retain(&[true, false, false, true]);
        agree(&things, &[2, 1]);
        things.append(&four(), &[3, 0]);
        agree(&things, &[2, 1, 3, 0]);
        things.copy_entries(&[(3, 0), (0, 1)]);
        agree(&things, &[0, 0, 3, 0]);
    }

    /// Entries of every size, an odd number of them: the parts must fit whatever is left over.
    #[test]
    fn entries_of_all_sizes_are_put_in_order() {
        let order = [2, 0, 4, 1, 3];
        let mut spare = Spare::new();
        let floats = [Kind::F32, Kind::F64, Kind::Vec3, Kind::Vec4, Kind::Mat3];
        for kind in floats.into_iter().chain([Kind::U16, Kind::U32, Kind::U64]) {
            let mut column = Column::zeros(ColumnSpec::new("of any kind", "1", kind), order.len());
            let number = |(i, byte): (usize, &mut u8)| *byte = i as u8;
            column.bytes_mut().iter_mut().enumerate().for_each(number);
            let old = column.bytes().to_vec();
            column.permute_by(&order, &mut spare);
            let entry = |i: &u32| old[*i as usize * kind.size()..][..kind.size()].to_vec();
            assert_eq!(
                column.bytes(),
                order.iter().flat_map(entry).collect::<Vec<u8>>()
            );
        }
    }

    #[test]
    fn raw_lists_names_units_and_bytes() {
        let things = four();
        let raw = things.raw();
        assert_eq!(
            raw.iter().map(|(spec, _)| spec.name).collect::<Vec<_>>(),
            ["place", "id", "heat"]
        );
        assert_eq!(raw[0].0.unit, "m");
        assert!(
            raw.iter()
                .all(|(spec, bytes)| bytes.len() == 4 * spec.kind.size())
        );
    }
}
