//! What holds for every filter, whatever the bytes.

use h5live_filters::{FilterSpec, FilterTarget, Pipeline, Registry};
use h5live_model::{ByteOrder, Datatype, FillValue, IntegerType, Sign};
use proptest::prelude::*;
use proptest::sample::select;

fn spec(id: u16, params: &[u32]) -> FilterSpec {
    FilterSpec { id, optional: true, params: params.to_vec(), ..Default::default() }
}

/// Filters that take any number of bytes.
fn any_bytes() -> Vec<FilterSpec> {
    let mut specs = vec![spec(3, &[]), spec(32000, &[4, 261, 0]), spec(32004, &[]), spec(32004, &[100])];
    specs.extend([1, 6, 9].map(|level| spec(1, &[level])));
    specs.extend([1, 3, 7].map(|level| spec(32015, &[level])));
    specs.extend([1, 9].map(|level| spec(307, &[level])));
    specs.extend([1, 2, 3, 4, 8, 16, 24].map(|size| spec(2, &[size])));
    for codec in [0, 2, 3] {
        specs.push(spec(32008, &[0, 4, 1, 0, codec, 3]));
        specs.push(spec(32008, &[0, 4, 1, 64, codec, 3]));
    }
    for codec in 0..6 {
        for (filter, size) in [(0, 1), (1, 2), (1, 8), (2, 4), (2, 3), (1, 16), (2, 300)] {
            specs.push(spec(32001, &[2, 2, size, 0, 3, filter, codec]));
            if codec != 3 {
                specs.push(spec(32026, &[1, 0, size, 0, 3, filter, codec]));
            }
        }
    }
    specs.extend([1, 8].map(|size| spec(32026, &[1, 0, size, 0, 5, 3, 1])));
    specs
}

/// Bytes with some repetition, of up to some length.
fn bytes(max_bytes: usize) -> impl Strategy<Value = Vec<u8>> {
    let noise = prop::collection::vec(any::<u8>(), 0..max_bytes);
    let few = prop::collection::vec(select(vec![0u8, 0, 0, 1, 255]), 0..max_bytes);
    let runs = prop::collection::vec((any::<u8>(), 0..max_bytes / 8), 0..16)
        .prop_map(|runs| runs.into_iter().flat_map(|(byte, count)| vec![byte; count]).collect());
    prop_oneof![noise, few, runs]
}

fn integer() -> impl Strategy<Value = IntegerType> {
    (select(vec![1u32, 2, 4, 8]), any::<bool>(), any::<bool>()).prop_flat_map(|(size, big, signed)| {
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        let sign = if signed { Sign::Signed } else { Sign::Unsigned };
        (1..=size as u16 * 8).prop_flat_map(move |precision| {
            let base = IntegerType { size, order, sign, precision, ..Default::default() };
            (0..=size as u16 * 8 - precision).prop_map(move |offset| IntegerType { offset, ..base.clone() })
        })
    })
}

/// The bytes of values that have no bits outside the significant ones.
fn values(t: &IntegerType, values: &[u64]) -> Vec<u8> {
    let mask = if t.precision == 64 { u64::MAX } else { (1 << t.precision) - 1 };
    let mut all = Vec::new();
    for value in values {
        let bytes = ((value & mask) << t.offset).to_le_bytes();
        let mut bytes = bytes[..t.size as usize].to_vec();
        if t.order == ByteOrder::Big {
            bytes.reverse();
        }
        all.extend(bytes);
    }
    all
}

fn round_trip(filters: &[FilterSpec], chunk: &[u8]) -> Result<(), TestCaseError> {
    let pipeline = Pipeline::new(filters, &Registry::default()).unwrap();
    let (stored, mask) = pipeline.encode(chunk).unwrap();
    let decoded = pipeline.decode(mask, &stored, chunk.len());
    prop_assert!(decoded.as_deref().is_ok_and(|decoded| decoded == chunk), "{filters:?}: {:?}", decoded.err());
    Ok(())
}

fn complete(id: u16, params: &[u32], datatype: &IntegerType, elements: usize) -> FilterSpec {
    let datatype = Datatype::Integer(datatype.clone());
    let target = FilterTarget { datatype: &datatype, chunk_dims: &[elements as u64], fill: &FillValue::Undefined };
    Registry::default().complete_spec(&spec(id, params), &target).unwrap()
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) }
}

#[test]
fn a_chunk_of_no_whole_number_of_elements_survives_blosc() {
    for bytes in [1, 12, 13, 14, 27, 2600, 2601] {
        let chunk: Vec<u8> = (0..bytes).map(|i| (i / 100) as u8).collect();
        for id in [32001, 32026] {
            round_trip(&[spec(id, &[2, 2, 13, 0, 3, 2, 1])], &chunk).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(config(24))]

    #[test]
    fn every_filter_decodes_what_it_encoded(chunk in bytes(4000)) {
        for filter in any_bytes() {
            round_trip(std::slice::from_ref(&filter), &chunk)?;
            round_trip(&[filter, spec(3, &[])], &chunk)?;
        }
    }

    #[test]
    fn large_elements_survive_shuffling(chunk in bytes(9000), size in 1..700u32) {
        round_trip(&[spec(2, &[size])], &chunk)?;
        round_trip(&[spec(32001, &[2, 2, size, 0, 3, 2, 1])], &chunk)?;
        let whole = &chunk[..chunk.len() / size as usize * size as usize];
        round_trip(&[spec(32008, &[0, 4, size, 0, 0])], whole)?;
        round_trip(&[spec(32008, &[0, 4, size, 8, 2])], whole)?;
    }
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn integers_survive_packing(t in integer(), numbers in prop::collection::vec(any::<u64>(), 1..60), shift in 0..64u32) {
        let numbers: Vec<u64> = numbers.iter().map(|n| n >> shift).collect();
        let chunk = values(&t, &numbers);
        round_trip(&[complete(5, &[], &t, numbers.len())], &chunk)?;
        round_trip(&[complete(6, &[2, 0], &t, numbers.len())], &chunk)?;
    }

    #[test]
    fn integers_survive_szip(
        t in integer(),
        numbers in prop::collection::vec(any::<u64>(), 64..600),
        shift in 0..64u32,
        block in select(vec![2u32, 8, 10, 32, 64]),
        method in select(vec![4u32, 32]),
    ) {
        let numbers: Vec<u64> = numbers.iter().map(|n| n >> shift).collect();
        let chunk = values(&t, &numbers);
        round_trip(&[complete(4, &[method | 128, block], &t, numbers.len())], &chunk)?;
    }

    #[test]
    fn damage_to_bytes_and_parameters_is_survived(
        chunk in bytes(600),
        filter in select(any_bytes()),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        param in prop::option::of((0..12usize, select(vec![0, 1, 2, 3, 7, 255, 4096, u32::MAX / 2, u32::MAX]))),
    ) {
        let registry = Registry::default();
        let (mut stored, mask) = Pipeline::new(std::slice::from_ref(&filter), &registry).unwrap().encode(&chunk).unwrap();
        for (at, value) in flips {
            if !stored.is_empty() {
                let at = at.index(stored.len());
                stored[at] = value;
            }
        }
        let mut damaged = filter;
        if let Some(to) = param.and_then(|(at, value)| damaged.params.get_mut(at).map(|to| (to, value))) {
            *to.0 = to.1;
        }
        let pipeline = Pipeline::new(&[damaged], &registry).unwrap();
        let _ = pipeline.decode(mask, &stored, chunk.len());
        let _ = pipeline.encode(&chunk);
    }

    #[test]
    fn any_bytes_and_parameters_are_survived(
        stored in bytes(300),
        params in prop::collection::vec(prop_oneof![0..40u32, any::<u32>()], 0..24),
        chunk_bytes in select(vec![0usize, 1, 100, 4096]),
    ) {
        let registry = Registry::default();
        for filter in registry.iter() {
            let specs = [spec(2, &[4]), spec(filter.id(), &params)];
            let pipeline = Pipeline::new(&specs, &registry).unwrap();
            let _ = pipeline.decode(0, &stored, chunk_bytes);
            let _ = pipeline.encode(&stored);
        }
    }

    #[test]
    fn any_packed_datatype_is_survived(
        stored in bytes(200),
        tree in prop::collection::vec(prop_oneof![1..5u32, 0..20u32, any::<u32>()], 0..30),
        elements in 0..20u32,
    ) {
        let mut params = vec![tree.len() as u32 + 3, 0, elements];
        params.extend(tree);
        let pipeline = Pipeline::new(&[spec(5, &params)], &Registry::default()).unwrap();
        let _ = pipeline.decode(0, &stored, 4096);
        let _ = pipeline.encode(&stored);
    }

    #[test]
    fn any_coded_samples_are_survived(
        stream in bytes(300),
        bytes in 0..600u32,
        options in 0..256u32,
        block in select(vec![2u32, 4, 8, 32, 256]),
        pixel in select(vec![1u32, 7, 8, 12, 16, 20, 24, 32, 64]),
        line in 1..700u32,
    ) {
        let mut stored = bytes.to_le_bytes().to_vec();
        stored.extend(stream);
        let pipeline = Pipeline::new(&[spec(4, &[options, block, pixel, line])], &Registry::default()).unwrap();
        let _ = pipeline.decode(0, &stored, bytes as usize);
    }
}
