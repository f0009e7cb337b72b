//! Filters as JSON, and the form in which chunks are stored.
//!
//! The service applies two filters: one compressor, as a Blosc frame, and shuffling before it. What else a dataset names
//! is recorded, and chunks are stored without it. A filter that the service would undo though nobody has applied it is
//! not shown to it: shuffling without a compressor, and scale-offset, which it takes for a compressor.

use h5live_model::{FilterSpec, FilterSpecs};
use serde_json::{Value, json};

use super::error::{LayoutError, Result};
use super::json::set_member;

const DEFLATE: u16 = 1;
const SHUFFLE: u16 = 2;
const SCALE_OFFSET: u16 = 6;
const BLOSC: u16 = 32001;
const LZ4: u16 = 32004;
/// A slower way to make blocks of LZ4. HDF5 has no filter of this number.
const LZ4_HC: u16 = 32005;
const BITSHUFFLE: u16 = 32008;

/// Filters with their numbers, classes and names in the schema, and the compressor of Blosc that the service takes for it.
const FILTERS: [(u16, &str, &str, Option<u32>); 13] = [
    (DEFLATE, "H5Z_FILTER_DEFLATE", "gzip", Some(4)),
    (SHUFFLE, "H5Z_FILTER_SHUFFLE", "shuffle", None),
    (3, "H5Z_FILTER_FLETCHER32", "fletcher32", None),
    (4, "H5Z_FILTER_SZIP", "szip", Some(4)),
    (5, "H5Z_FILTER_NBIT", "nbit", None),
    (SCALE_OFFSET, "H5Z_FILTER_SCALEOFFSET", "scaleoffset", None),
    (32000, "H5Z_FILTER_LZF", "lzf", Some(0)),
    (BLOSC, "H5Z_FILTER_BLOSC", "blosclz", Some(0)),
    (32003, "H5Z_FILTER_SNAPPY", "snappy", Some(3)),
    (LZ4, "H5Z_FILTER_LZ4", "lz4", Some(1)),
    (LZ4_HC, "H5Z_FILTER_LZ4HC", "lz4hc", Some(2)),
    (BITSHUFFLE, "H5Z_FILTER_BITSHUFFLE", "bitshuffle", None),
    (32015, "H5Z_FILTER_ZSTD", "zstd", Some(5)),
];
/// The class of filters that the schema does not know.
const USER_CLASS: &str = "H5Z_FILTER_USER";
/// The level of compressors that state none.
const DEFAULT_LEVEL: u32 = 5;

/// How the chunks of a dataset are stored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChunkEncoding {
    /// The compressor of the Blosc frames (its number in the parameters of filter 32001), and the level.
    compressor: Option<(u32, u32)>,
    /// Bytes that are shuffled together; 1: none are.
    shuffled: u32,
    /// Chunks went through bitshuffle with LZ4 first, in blocks of elements.
    is_bit_shuffled: bool,
}

impl ChunkEncoding {
    /// How chunks are stored of a dataset with these filters in JSON, and elements of so many stored bytes; `None` if
    /// these vary.
    pub fn new(filters: Option<&Value>, stored_element_size: Option<usize>) -> Self {
        let filters = filters.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let (mut compressor, mut shuffled, mut is_bit_shuffled) = (None, 1, false);
        for filter in filters {
            let class = filter_class(filter);
            let name = filter.get("name").and_then(Value::as_str);
            let found = FILTERS.iter().find(|(_, known, ..)| Some(*known) == class);
            if let Some((id, _, _, Some(codec))) = found {
                let level = filter.get("level").and_then(Value::as_u64).and_then(|level| u32::try_from(level).ok());
                let level = level.or_else(|| (*id == DEFLATE).then_some(4)).unwrap_or(DEFAULT_LEVEL).min(9);
                compressor = compressor.or(Some((*codec, level)));
            }
            if let (Some("H5Z_FILTER_SHUFFLE"), Some(bytes)) = (class, stored_element_size) {
                is_bit_shuffled = name == Some("bitshuffle");
                let fits = (2..=255).contains(&bytes) && !is_bit_shuffled;
                shuffled = if fits { bytes as u32 } else { 1 };
            }
        }
        ChunkEncoding { compressor, shuffled, is_bit_shuffled }
    }

    /// Whether chunks are stored as Blosc frames.
    pub fn has_blosc_frames(&self) -> bool {
        self.compressor.is_some()
    }

    /// Whether chunks went through bitshuffle before they were compressed.
    pub fn is_bit_shuffled(&self) -> bool {
        self.is_bit_shuffled
    }

    /// The filter that makes a frame of so many bytes.
    pub fn blosc_frame_filter(&self, data_len: u32) -> Option<FilterSpec> {
        let (codec, level) = self.compressor?;
        let shuffle = u32::from(self.shuffled > 1);
        let params = vec![2, 2, self.shuffled, data_len, level, shuffle, codec];
        Some(FilterSpec { id: BLOSC, params, ..FilterSpec::default() })
    }

    /// The filters that undo a bare zlib stream, which is taken in place of a frame.
    pub fn bare_zlib_filters(&self) -> FilterSpecs {
        let deflate = FilterSpec { id: DEFLATE, params: vec![4], ..FilterSpec::default() };
        let shuffle = FilterSpec { id: SHUFFLE, params: vec![self.shuffled], ..FilterSpec::default() };
        if self.shuffled > 1 { vec![shuffle, deflate] } else { vec![deflate] }
    }

    /// The filter that undoes bitshuffle with LZ4 of elements of so many bytes.
    pub fn bit_shuffle_lz4_filter(element_bytes: u32) -> FilterSpec {
        FilterSpec { id: BITSHUFFLE, params: vec![0, 2, element_bytes, 0, 2], ..FilterSpec::default() }
    }
}

/// The class of a filter, also where only a name or a number stands.
fn filter_class(filter: &Value) -> Option<&str> {
    if let Some(class) = filter.get("class").and_then(Value::as_str) {
        return Some(class);
    }
    let name = filter.as_str().or(filter.get("name").and_then(Value::as_str));
    let id = filter.as_u64().or(filter.get("id").and_then(Value::as_u64));
    let named =
        |known: &str| name.is_some_and(|name| known == name || known == "gzip" && matches!(name, "deflate" | "zlib"));
    let found = FILTERS
        .iter()
        .find(|(number, class, known, _)| named(known) || id == Some(u64::from(*number)) || name == Some(*class));
    found.map(|(_, class, ..)| *class)
}

/// The filters that the service is shown: not scale-offset, which it takes for the compressor.
pub fn shown_hsds_filters_to_json(filters: &[FilterSpec]) -> Value {
    let has_compressor = filters.iter().any(|filter| entry(filter.id).is_some_and(|found| found.3.is_some()));
    let is_shown = |filter: &&FilterSpec| filter.id != SCALE_OFFSET && (filter.id != SHUFFLE || has_compressor);
    filters.iter().filter(is_shown).map(filter_to_json).collect()
}

/// All filters: those of chunks in a native file, where each was applied.
pub fn all_hsds_filters_to_json(filters: &[FilterSpec]) -> Value {
    filters.iter().map(filter_to_json).collect()
}

fn entry(id: u16) -> Option<&'static (u16, &'static str, &'static str, Option<u32>)> {
    FILTERS.iter().find(|(known, ..)| *known == id)
}

fn filter_to_json(filter: &FilterSpec) -> Value {
    match entry(filter.id) {
        Some((DEFLATE, class, name, _)) => {
            let level = filter.params.first().copied().unwrap_or(4).min(9);
            json!({"class": class, "id": DEFLATE, "level": level, "name": name})
        }
        Some((id, class, name, _)) => json!({"class": class, "id": id, "name": name}),
        None => json!({"class": USER_CLASS, "id": filter.id, "name": format!("user filter {}", filter.id)}),
    }
}

/// What scale-offset is given when a dataset is made: its kind, and its factor or number of bits.
fn scale_from_json(json: &Value) -> Option<Vec<u32>> {
    const KINDS: [&str; 3] = ["H5Z_SO_FLOAT_DSCALE", "H5Z_SO_FLOAT_ESCALE", "H5Z_SO_INT"];
    let kind = json.get("scaleType").and_then(Value::as_str)?;
    let kind = u32::try_from(KINDS.iter().position(|known| *known == kind)?).ok()?;
    Some(vec![kind, u32::try_from(json.get("scaleOffset")?.as_u64()?).ok()?])
}

/// Filters from what the service is shown, of a dataset whose elements have so many bytes: by these they are shuffled.
///
/// # Errors
/// [`LayoutError::MissingOrInvalidMember`].
pub fn hsds_filters_from_json(json: Option<&Value>, element_bytes: u32) -> Result<FilterSpecs> {
    const BAD: LayoutError = LayoutError::MissingOrInvalidMember { member: "filters", expected: "a list of filters" };
    let list = match json {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(BAD),
    };
    let filter = |json: &Value| {
        let class = filter_class(json).ok_or(BAD)?;
        let known = FILTERS.iter().find(|(_, known, ..)| *known == class).map(|(id, ..)| *id);
        let id = known.or_else(|| u16::try_from(json.get("id")?.as_u64()?).ok()).ok_or(BAD)?;
        let level = json.get("level").and_then(Value::as_u64).and_then(|level| u32::try_from(level).ok());
        let params = match id {
            DEFLATE => vec![level.unwrap_or(4).min(9)],
            SHUFFLE => vec![element_bytes],
            SCALE_OFFSET => scale_from_json(json).unwrap_or_default(),
            _ => Vec::new(),
        };
        // Of the same blocks: so copies to other stores have a filter that their readers know.
        let id = if id == LZ4_HC { LZ4 } else { id };
        Ok(FilterSpec { id, params, ..FilterSpec::default() })
    };
    list.iter().map(filter).collect()
}

/// All that is known of filters, for ourselves.
pub fn exact_filters_to_json(filters: &[FilterSpec]) -> Value {
    let entry = |filter: &FilterSpec| {
        let mut found = json!({"id": filter.id, "params": filter.params});
        if filter.optional {
            set_member(&mut found, "optional", json!(true));
        }
        if let Some(name) = &filter.name {
            set_member(&mut found, "name", json!(name.as_bytes()));
        }
        found
    };
    filters.iter().map(entry).collect()
}

/// Filters from what [`exact_filters_to_json`] has made.
///
/// # Errors
/// [`LayoutError::ValueIsNot`].
pub fn exact_filters_from_json(json: &Value) -> Result<FilterSpecs> {
    const BAD: LayoutError = LayoutError::ValueIsNot("a list of filters");
    let numbers = |json: &Value| -> Option<Vec<u64>> { json.as_array()?.iter().map(Value::as_u64).collect() };
    let filter = |json: &Value| {
        let params = numbers(json.get("params")?)?.into_iter().map(|param| u32::try_from(param).ok());
        let name = match json.get("name") {
            Some(bytes) => {
                let bytes = numbers(bytes)?.into_iter().map(|byte| u8::try_from(byte).ok());
                Some(bytes.collect::<Option<Vec<u8>>>()?.into())
            }
            None => None,
        };
        Some(FilterSpec {
            id: u16::try_from(json.get("id")?.as_u64()?).ok()?,
            optional: json.get("optional").and_then(Value::as_bool).unwrap_or(false),
            name,
            params: params.collect::<Option<_>>()?,
        })
    };
    json.as_array().ok_or(BAD)?.iter().map(|json| filter(json).ok_or(BAD)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(id: u16, params: &[u32]) -> FilterSpec {
        FilterSpec { id, params: params.into(), ..FilterSpec::default() }
    }

    #[test]
    fn a_compressor_makes_frames_and_shuffling_alone_is_not_shown() {
        let shown = shown_hsds_filters_to_json(&[filter(2, &[4]), filter(1, &[6])]);
        assert_eq!(shown[1], json!({"class": "H5Z_FILTER_DEFLATE", "id": 1, "level": 6, "name": "gzip"}));
        let encoding = ChunkEncoding::new(Some(&shown), Some(4));
        assert_eq!(encoding.blosc_frame_filter(800).unwrap().params, [2, 2, 4, 800, 6, 1, 4]);
        assert_eq!(shown_hsds_filters_to_json(&[filter(2, &[4]), filter(3, &[])]).as_array().unwrap().len(), 1);
        let scaled = shown_hsds_filters_to_json(&[filter(SCALE_OFFSET, &[2, 0]), filter(1, &[6])]);
        assert_eq!(scaled, shown_hsds_filters_to_json(&[filter(1, &[6])]), "the service takes it for the compressor");
        assert!(
            !ChunkEncoding::new(Some(&shown_hsds_filters_to_json(&[filter(32013, &[1])])), Some(4)).has_blosc_frames()
        );
        assert_eq!(
            ChunkEncoding::new(Some(&json!(["gzip"])), None).blosc_frame_filter(9).unwrap().params,
            [2, 2, 1, 9, 4, 0, 4]
        );
        let bits = json!({"class": "H5Z_FILTER_SCALEOFFSET", "id": 6, "scaleType": "H5Z_SO_INT", "scaleOffset": 12});
        assert_eq!(hsds_filters_from_json(Some(&json!([bits])), 4).unwrap(), [filter(SCALE_OFFSET, &[2, 12])]);
        assert_eq!(
            hsds_filters_from_json(Some(&json!(["shuffle", {"id": 1, "level": 2}])), 4).unwrap(),
            [filter(2, &[4]), filter(1, &[2])]
        );
        for name in ["lz4hc", "lz4"] {
            assert_eq!(hsds_filters_from_json(Some(&json!([name])), 4).unwrap(), [filter(LZ4, &[])]);
        }
        let encoding = ChunkEncoding::new(Some(&json!([{"class": "H5Z_FILTER_LZ4HC"}])), Some(4));
        assert_eq!(
            encoding.blosc_frame_filter(8).unwrap().params.last(),
            Some(&2),
            "chunks stay what the service makes"
        );
    }

    #[test]
    fn filters_are_kept_with_all_that_is_known_of_them() {
        let odd = FilterSpec { id: 32013, optional: true, name: Some([0xff, 0].as_slice().into()), params: vec![1, 2] };
        let filters = [odd, filter(1, &[3])];
        assert_eq!(exact_filters_from_json(&exact_filters_to_json(&filters)).unwrap(), filters);
        assert!(exact_filters_from_json(&json!([{"id": 70000, "params": []}])).is_err());
    }
}
