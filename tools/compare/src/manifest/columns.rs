//! The space and storage columns.

use h5live::model::{DatasetSpec, Dataspace, FilterSpec, Layout, UNLIMITED};

/// The text of a dataspace.
pub fn space_text(space: &Dataspace) -> String {
    match space {
        Dataspace::Null => "null".to_owned(),
        Dataspace::Scalar => "scalar".to_owned(),
        Dataspace::Simple(shape) if shape.rank() == 0 => "scalar".to_owned(),
        Dataspace::Simple(shape) => {
            let max: Vec<_> = shape
                .max_dims()
                .iter()
                .map(|m| if *m == UNLIMITED { "inf".to_owned() } else { m.to_string() })
                .collect();
            format!("[{}]/[{}]", join(shape.dims()), max.join(","))
        }
    }
}

/// The text of a dataset's storage, without its fill value.
pub fn storage_text(spec: &DatasetSpec) -> String {
    let layout = match &spec.layout {
        Layout::Compact => "compact".to_owned(),
        Layout::Contiguous => "contiguous".to_owned(),
        Layout::Chunked(dims) => format!("chunked[{}]", join(dims)),
        Layout::External(_) => "external".to_owned(),
        Layout::Virtual(_) => "virtual".to_owned(),
    };
    if spec.filters.is_empty() {
        return layout;
    }
    let filters: Vec<_> = spec.filters.iter().map(filter_text).collect();
    format!("{layout} filters={}", filters.join(","))
}

fn filter_text(filter: &FilterSpec) -> String {
    match (filter.id, filter.params.first()) {
        (1, Some(level)) => format!("deflate({level})"),
        (1, None) => "deflate".to_owned(),
        (2, _) => "shuffle".to_owned(),
        (3, _) => "fletcher32".to_owned(),
        (4, _) => "szip".to_owned(),
        (5, _) => "nbit".to_owned(),
        (6, _) => "scaleoffset".to_owned(),
        (id, _) => id.to_string(),
    }
}

/// Numbers separated by commas.
fn join<T: ToString>(numbers: &[T]) -> String {
    numbers.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5live::model::Shape;

    #[test]
    fn spaces_show_dimensions_and_limits() {
        assert_eq!(space_text(&Dataspace::Null), "null");
        assert_eq!(space_text(&Dataspace::Scalar), "scalar");
        assert_eq!(space_text(&Dataspace::Simple(Shape::fixed(&[]))), "scalar");
        assert_eq!(space_text(&Dataspace::Simple(Shape::fixed(&[2, 3]))), "[2,3]/[2,3]");
        let shape = Shape::with_max(&[2, 3], &[2, UNLIMITED]).unwrap();
        assert_eq!(space_text(&Dataspace::Simple(shape)), "[2,3]/[2,inf]");
    }

    #[test]
    fn storage_shows_layout_and_filters_in_order() {
        let filter = |id, params: &[u32]| FilterSpec { id, params: params.into(), ..Default::default() };
        let mut spec = DatasetSpec { layout: Layout::Chunked(vec![10, 20]), ..Default::default() };
        assert_eq!(storage_text(&spec), "chunked[10,20]");
        spec.filters = vec![filter(2, &[4]), filter(1, &[6]), filter(3, &[]), filter(32004, &[0])];
        assert_eq!(storage_text(&spec), "chunked[10,20] filters=shuffle,deflate(6),fletcher32,32004");
        assert_eq!(storage_text(&DatasetSpec::default()), "contiguous");
    }
}
