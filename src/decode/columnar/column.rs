//! A column of a batch, found by its name or by a path into structs and lists.

use super::value;
use crate::decode::value::Kind;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, RecordBatch, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, FieldRef, Fields};

/// Values of a batch, one for each of its rows.
pub(in super::super) struct Column {
    /// The values. For an element of a list, the values of all elements.
    pub values: ArrayRef,
    /// Rows without a value, in this column or in one that contains it.
    pub nulls: Option<NullBuffer>,
    /// Place of each row's value in `values`; `None` if the values are in the order of rows.
    places: Option<Vec<usize>>,
}

impl Column {
    /// The column at a path; `None` if there is none.
    pub fn of(batch: &RecordBatch, path: &str) -> Option<Column> {
        let schema = batch.schema();
        let (at, rest) = step(schema.fields(), path)?;
        let column = Column::whole(batch.column(at).clone(), None);
        column.below(rest)
    }

    /// The type of the field at a path.
    pub fn type_at(fields: &Fields, path: &str) -> Option<DataType> {
        let (at, rest) = step(fields, path)?;
        type_below(fields[at].data_type(), rest)
    }

    fn whole(array: ArrayRef, outer: Option<&NullBuffer>) -> Column {
        let mut nulls = NullBuffer::union(outer, array.logical_nulls().as_ref());
        if nulls.as_ref().is_some_and(|n| n.null_count() == 0) {
            nulls = None;
        }
        // A dictionary without values has only null keys.
        let dictionary = array.as_any_dictionary_opt();
        match dictionary.filter(|d| !d.values().is_empty()) {
            Some(dictionary) => Column {
                places: Some(dictionary.normalized_keys()),
                values: dictionary.values().clone(),
                nulls,
            },
            None => Column {
                values: array,
                nulls,
                places: None,
            },
        }
    }

    fn below(self, rest: Option<&str>) -> Option<Column> {
        let Some(path) = rest else {
            return Some(self);
        };
        match self.values.data_type() {
            DataType::Struct(fields) => {
                let (at, rest) = step(fields, path)?;
                let array: &StructArray = self.values.as_struct();
                Column::whole(array.column(at).clone(), self.nulls.as_ref()).below(rest)
            }
            DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => {
                self.element(path.parse().ok()?)
            }
            _ => None,
        }
    }

    /// The element at a place of the list of each row; a row whose list is shorter has no value.
    fn element(self, place: usize) -> Option<Column> {
        if self.places.is_some() {
            return None;
        }
        let rows = self.values.len();
        let range = |row: usize| list(&self.values, row);
        let (mut places, mut present) = (vec![0; rows], vec![false; rows]);
        for row in 0..rows {
            let here = self.nulls.as_ref().is_none_or(|n| n.is_valid(row));
            let (start, length) = range(row)?;
            if here && place < length {
                (places[row], present[row]) = (start + place, true);
            }
        }
        let values = match self.values.data_type() {
            DataType::List(_) => self.values.as_list::<i32>().values().clone(),
            DataType::LargeList(_) => self.values.as_list::<i64>().values().clone(),
            _ => {
                let list: &FixedSizeListArray = self.values.as_fixed_size_list();
                list.values().clone()
            }
        };
        let inner = values.logical_nulls();
        for row in 0..rows {
            // A row without an element has no place.
            present[row] = present[row] && inner.as_ref().is_none_or(|n| n.is_valid(places[row]));
        }
        Some(Column {
            values,
            nulls: Some(NullBuffer::from(present)),
            places: Some(places),
        })
    }

    /// Whether a row has a value.
    pub fn has(&self, row: usize) -> bool {
        self.nulls.as_ref().is_none_or(|n| n.is_valid(row))
    }

    /// The values, if they are in the order of rows.
    pub fn in_order(&self) -> Option<&ArrayRef> {
        self.places.is_none().then_some(&self.values)
    }

    /// Writes the text of a row; empty without a value.
    pub fn cell(&self, row: usize, text: &mut String) {
        text.clear();
        if self.has(row) {
            self.write(row, text);
        }
    }

    /// Writes the value of a row as JSON, text without quotes.
    pub fn write(&self, row: usize, text: &mut String) -> Kind {
        if !self.has(row) {
            return Kind::Null;
        }
        value::write(&self.values, self.place(row), false, text)
    }

    /// Milliseconds since 1970 of the time in a row, and whether its type has a time zone.
    pub fn time_ms(&self, row: usize) -> Option<(i64, bool)> {
        self.has(row)
            .then(|| value::time_ms(&self.values, self.place(row)))?
    }

    /// Number of items of the list in a row; `None` if it is not a list.
    pub fn items(&self, row: usize) -> Option<usize> {
        self.has(row)
            .then(|| list(&self.values, self.place(row)))?
            .map(|(_, length)| length)
    }

    fn place(&self, row: usize) -> usize {
        self.places.as_ref().map_or(row, |places| places[row])
    }
}

/// Start and length of the list in a row.
fn list(values: &ArrayRef, row: usize) -> Option<(usize, usize)> {
    let range = |start: usize, end: usize| (start, end - start);
    match values.data_type() {
        DataType::List(_) => {
            let o = values.as_list::<i32>().value_offsets();
            Some(range(o[row] as usize, o[row + 1] as usize))
        }
        DataType::LargeList(_) => {
            let o = values.as_list::<i64>().value_offsets();
            Some(range(o[row] as usize, o[row + 1] as usize))
        }
        DataType::FixedSizeList(_, length) => {
            let start = values.as_fixed_size_list().value_offset_at(row);
            Some((start, usize::try_from(*length).ok()?))
        }
        _ => None,
    }
}

/// The field at the start of a path, and the rest of the path. The whole path is first tried as a
/// name.
fn step<'p>(fields: &Fields, path: &'p str) -> Option<(usize, Option<&'p str>)> {
    let named = |name: &str| fields.iter().position(|f: &FieldRef| f.name() == name);
    if let Some(at) = named(path) {
        return Some((at, None));
    }
    let mut dots = path.match_indices('.');
    dots.find_map(|(dot, _)| Some((named(&path[..dot])?, Some(&path[dot + 1..]))))
}

fn type_below(kind: &DataType, rest: Option<&str>) -> Option<DataType> {
    let Some(path) = rest else {
        return Some(kind.clone());
    };
    match kind {
        DataType::Struct(fields) => Column::type_at(fields, path),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            path.parse::<usize>().ok()?;
            Some(item.data_type().clone())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{ListArray, NullArray, RecordBatch};
    use arrow_buffer::OffsetBuffer;
    use arrow_schema::{Field, Schema};
    use std::sync::Arc;

    #[test]
    fn lists_of_nulls_have_elements_without_a_value() {
        for lengths in [[0, 0], [0, 2]] {
            let item = Arc::new(Field::new("item", DataType::Null, true));
            let values = Arc::new(NullArray::new(lengths.iter().sum()));
            let offsets = OffsetBuffer::from_lengths(lengths);
            let lists: ArrayRef = Arc::new(ListArray::new(item, offsets, values, None));
            let field = Field::new("p", lists.data_type().clone(), true);
            let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![lists]);
            let column = Column::of(&batch.expect("sound"), "p.0").expect("a column");
            assert!(!column.has(0) && !column.has(1), "{lengths:?}");
        }
    }
}
