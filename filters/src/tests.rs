//! Properties that every filter and every pipeline has.

use proptest::prelude::*;

use crate::{DecodeOutcome, EncodeOutcome, Error, Filter, FilterFault, FilterSpec, Pipeline, Registry};

fn spec(id: u16, params: &[u32]) -> FilterSpec {
    FilterSpec { id, params: params.to_vec(), ..Default::default() }
}

fn optional(id: u16, params: &[u32]) -> FilterSpec {
    FilterSpec { optional: true, ..spec(id, params) }
}

fn pipeline(specs: &[FilterSpec]) -> Pipeline {
    Pipeline::new(specs, &Registry::default()).unwrap()
}

fn ramp(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i / 7) as u8).collect()
}

/// Pipelines that take any bytes.
fn any_bytes() -> Vec<Vec<FilterSpec>> {
    let mut pipelines = vec![vec![], vec![spec(3, &[])], vec![spec(1, &[6])], vec![spec(1, &[0])], vec![spec(1, &[9])]];
    for size in [1, 2, 3, 4, 5, 8, 12, 16, 40] {
        pipelines.push(vec![spec(2, &[size])]);
        pipelines.push(vec![spec(2, &[size]), spec(1, &[4]), spec(3, &[])]);
        pipelines.push(vec![spec(3, &[]), spec(1, &[4]), spec(2, &[size])]);
    }
    pipelines
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn decodes_what_it_encoded(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
        for specs in any_bytes() {
            let pipeline = pipeline(&specs);
            let (stored, mask) = pipeline.encode(&bytes).unwrap();
            let decoded = pipeline.decode(mask, &stored, bytes.len()).unwrap();
            prop_assert!(decoded == bytes, "{:?}", pipeline);
        }
    }
}

#[test]
fn refuses_every_truncation_and_survives_every_bit_flip() {
    let chunk = ramp(300);
    for specs in any_bytes() {
        let pipeline = pipeline(&specs);
        let (stored, mask) = pipeline.encode(&chunk).unwrap();
        for end in 0..stored.len() {
            assert!(pipeline.decode(mask, &stored[..end], chunk.len()).is_err(), "{pipeline:?} cut at {end}");
        }
        for bit in 0..stored.len() * 8 {
            let mut damaged = stored.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let _ = pipeline.decode(mask, &damaged, chunk.len());
        }
    }
}

#[test]
fn fletcher32_detects_every_bit_flip() {
    let pipeline = pipeline(&[spec(3, &[])]);
    let (stored, mask) = pipeline.encode(&ramp(201)).unwrap();
    for bit in 0..stored.len() * 8 {
        let mut damaged = stored.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let error = pipeline.decode(mask, &damaged, 201).unwrap_err();
        assert!(matches!(error, Error::Filter { id: 3, fault: FilterFault::Checksum { .. }, .. }), "{error}");
    }
}

#[test]
fn fletcher32_follows_the_format_word_by_word() {
    let slow = |data: &[u8]| {
        let (mut low, mut high) = (0u32, 0u32);
        for word in data.chunks(2) {
            low += u32::from(word[0]) << 8 | word.get(1).map_or(0, |b| u32::from(*b));
            low = (low & 0xffff) + (low >> 16);
            high += low;
            high = (high & 0xffff) + (high >> 16);
        }
        high << 16 | low
    };
    for len in (0..1200).chain([4096, 9999]) {
        for data in [vec![0u8; len], vec![0xff; len], ramp(len)] {
            assert_eq!(crate::fletcher32(&data), slow(&data), "{len}");
        }
    }
}

#[test]
fn fletcher32_accepts_the_order_of_old_libraries() {
    let pipeline = pipeline(&[spec(3, &[])]);
    let (mut stored, _) = pipeline.encode(&ramp(64)).unwrap();
    let end = stored.len();
    stored.swap(end - 4, end - 3);
    stored.swap(end - 2, end - 1);
    assert_eq!(pipeline.decode(0, &stored, 64).unwrap(), ramp(64));
}

#[test]
fn a_mask_bit_leaves_its_filter_out() {
    let chunk = ramp(64);
    let both = pipeline(&[spec(2, &[4]), spec(1, &[6])]);
    let deflated = pipeline(&[spec(1, &[6])]).encode(&chunk).unwrap().0;
    assert_eq!(both.decode(0b01, &deflated, 64).unwrap(), chunk);
    assert_eq!(both.decode(0b11, &chunk, 64).unwrap(), chunk);
    assert!(both.is_identity(0b11) && !both.is_identity(0b01));
}

#[test]
fn a_missing_filter_matters_only_when_it_is_needed() {
    let chunk = ramp(64);
    let missing = FilterSpec { name: Some("wavelet".into()), ..optional(40000, &[]) };
    let pipeline = pipeline(&[spec(2, &[4]), missing.clone()]);
    let (stored, mask) = pipeline.encode(&chunk).unwrap();
    assert_eq!(mask, 0b10);
    assert_eq!(pipeline.decode(mask, &stored, 64).unwrap(), chunk);
    let error = pipeline.decode(0, &stored, 64).unwrap_err();
    assert_eq!(error.to_string(), "filter 40000 (wavelet) is not available");

    let mandatory = Pipeline::new(&[FilterSpec { optional: false, ..missing }], &Registry::default()).unwrap();
    assert!(matches!(mandatory.encode(&chunk), Err(Error::Unavailable { id: 40000, .. })));
}

#[test]
fn refuses_a_chunk_of_the_wrong_size() {
    for specs in [vec![], vec![spec(3, &[])], vec![spec(2, &[4])], vec![spec(1, &[6])]] {
        let pipeline = pipeline(&specs);
        let (stored, mask) = pipeline.encode(&ramp(64)).unwrap();
        for bytes in [0, 60, 63, 65, 68, 1000] {
            assert!(pipeline.decode(mask, &stored, bytes).is_err(), "{pipeline:?} {bytes}");
        }
    }
}

#[test]
fn bounds_what_a_small_stream_expands_to() {
    let bomb = pipeline(&[spec(1, &[9])]).encode(&vec![0; 40 << 20]).unwrap().0;
    let error = pipeline(&[spec(2, &[4]), spec(1, &[9])]).decode(0, &bomb, 4096).unwrap_err();
    assert!(matches!(error, Error::Filter { id: 1, fault: FilterFault::TooLarge { limit: 73728 }, .. }), "{error}");
}

#[test]
fn ignores_what_follows_a_compressed_stream() {
    for filter in [spec(1, &[6]), spec(307, &[9]), spec(32004, &[]), spec(32001, &[2, 2, 4, 0, 5, 1, 1])] {
        let pipeline = pipeline(&[filter]);
        let (mut stored, mask) = pipeline.encode(&ramp(2000)).unwrap();
        stored.extend_from_slice(b"garbage");
        assert_eq!(pipeline.decode(mask, &stored, 2000).unwrap(), ramp(2000), "{pipeline:?}");
    }
}

#[test]
fn an_impossible_chunk_size_is_an_error() {
    let error = pipeline(&[spec(1, &[6])]).decode(0, &[0; 8], usize::MAX / 4).unwrap_err();
    assert!(matches!(error, Error::OutOfMemory(_)), "{error}");
}

#[test]
fn refuses_more_filters_than_a_mask_has_bits() {
    let specs = vec![spec(3, &[]); 33];
    assert!(matches!(Pipeline::new(&specs, &Registry::default()), Err(Error::TooManyFilters(33))));
    let longest = pipeline(&specs[..32]);
    let (stored, mask) = longest.encode(&ramp(10)).unwrap();
    assert_eq!(longest.decode(mask, &stored, 10).unwrap(), ramp(10));
}

/// Subtracts its first parameter from every byte; gains nothing on empty chunks.
struct Offset;

impl Filter for Offset {
    fn id(&self) -> u16 {
        300
    }

    fn name(&self) -> &str {
        "offset"
    }

    fn decode(&self, params: &[u32], input: &[u8], output: &mut [u8]) -> Result<DecodeOutcome, FilterFault> {
        let output = output.get_mut(..input.len()).ok_or(FilterFault::TooLarge { limit: 0 })?;
        for (to, from) in output.iter_mut().zip(input) {
            *to = from.wrapping_add(params[0] as u8);
        }
        Ok(DecodeOutcome::Decoded(input.len()))
    }

    fn encode(&self, params: &[u32], input: &[u8], output: &mut Vec<u8>) -> Result<EncodeOutcome, FilterFault> {
        if input.is_empty() {
            return Ok(EncodeOutcome::Incompressible);
        }
        output.extend(input.iter().map(|byte| byte.wrapping_sub(params[0] as u8)));
        Ok(EncodeOutcome::Encoded)
    }
}

#[test]
fn a_users_filter_takes_its_place() {
    let mut registry = Registry::default();
    assert!(registry.register(Offset).is_none());
    let pipeline = Pipeline::new(&[optional(300, &[7]), spec(3, &[])], &registry).unwrap();
    let (stored, mask) = pipeline.encode(&[9, 8, 7]).unwrap();
    assert_eq!((&stored[..3], mask), (&[2, 1, 0][..], 0));
    assert_eq!(pipeline.decode(0, &stored, 3).unwrap(), [9, 8, 7]);
    assert_eq!(pipeline.encode(&[]).unwrap().1, 0b01);

    let mandatory = Pipeline::new(&[spec(300, &[7])], &registry).unwrap();
    let error = mandatory.encode(&[]).unwrap_err();
    assert!(matches!(error, Error::Filter { id: 300, fault: FilterFault::Incompressible, .. }), "{error}");
}

/// Runs a pipeline of its own on the chunk.
struct Nested;

impl Filter for Nested {
    fn id(&self) -> u16 {
        301
    }

    fn name(&self) -> &str {
        "nested"
    }

    fn decode(&self, _: &[u32], input: &[u8], output: &mut [u8]) -> Result<DecodeOutcome, FilterFault> {
        let chunk = pipeline(&[spec(2, &[4]), spec(1, &[6])]).decode(0, input, 400).map_err(FilterFault::external)?;
        output[..400].copy_from_slice(&chunk);
        Ok(DecodeOutcome::Decoded(400))
    }

    fn encode(&self, _: &[u32], input: &[u8], output: &mut Vec<u8>) -> Result<EncodeOutcome, FilterFault> {
        let (stored, _) = pipeline(&[spec(2, &[4]), spec(1, &[6])]).encode(input).map_err(FilterFault::external)?;
        output.extend(stored);
        Ok(EncodeOutcome::Encoded)
    }
}

#[test]
fn a_filter_may_run_a_pipeline_and_threads_share_one() {
    let mut registry = Registry::default();
    registry.register(Nested);
    let pipeline = Pipeline::new(&[spec(2, &[2]), spec(301, &[]), spec(3, &[])], &registry).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20 {
                    let (stored, mask) = pipeline.encode(&ramp(400)).unwrap();
                    assert_eq!(pipeline.decode(mask, &stored, 400).unwrap(), ramp(400));
                }
            });
        }
    });
}
