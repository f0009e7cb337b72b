//! Descriptions of objects, made at random.

use h5live_kv::layout::encode::STORED_VLEN_AND_REFERENCE_SIZES;
use h5live_model::{
    AllocationTime, ArrayType, Block, ByteOrder, CharacterSet, ComplexType, CompoundMember, CompoundType,
    CreationOrder, DatasetSpec, Dataspace, Datatype, EnumMember, EnumType, ExternalPiece, Fill, FillTime, FillValue,
    FilterSpec, FixedStringType, GroupSpec, Hyperslab, Layout, LinkOrAttributeStorageSpec, MapSpec, Name, ObjectId,
    ObjectKindSpec, ObjectSpec, OpaqueType, ReferenceKind, ReferenceType, Selection, Shape, Sign, StringPadding,
    UNLIMITED, VarLenKind, VarLenType, VirtualSource,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// Names without NULs.
pub fn name() -> impl Strategy<Value = Name> {
    vec(1..=255u8, 1..10).prop_map(Name::from)
}

fn number() -> impl Strategy<Value = Datatype> {
    let order = select(vec![ByteOrder::Little, ByteOrder::Big]);
    let sign = select(vec![Sign::Signed, Sign::Unsigned]);
    let integer =
        (select(vec![1, 2, 4, 8]), order, sign).prop_map(|(size, order, sign)| Datatype::integer(size, order, sign));
    let floats: Vec<_> = [2, 4, 8].into_iter().filter_map(|size| Datatype::float(size, ByteOrder::Big)).collect();
    prop_oneof![2 => integer, 1 => select(floats)]
}

fn simple_type() -> impl Strategy<Value = Datatype> {
    let padding = select(vec![StringPadding::NullTerminated, StringPadding::NullPadded, StringPadding::SpacePadded]);
    let character_set = select(vec![CharacterSet::Ascii, CharacterSet::Utf8]);
    let string = (1..20u32, padding.clone(), character_set.clone())
        .prop_map(|(size, padding, character_set)| Datatype::String(FixedStringType { size, padding, character_set }));
    let text = (padding, character_set).prop_map(|(padding, character_set)| {
        let (kind, base) = (VarLenKind::String { padding, character_set }, Box::new(Datatype::default()));
        Datatype::VarLen(VarLenType { kind, size: STORED_VLEN_AND_REFERENCE_SIZES.vlen, base })
    });
    let kinds = [ReferenceKind::Object1, ReferenceKind::Region1, ReferenceKind::Object2, ReferenceKind::Attribute];
    let reference = select(kinds.to_vec()).prop_map(|kind| {
        Datatype::Reference(ReferenceType { kind, size: STORED_VLEN_AND_REFERENCE_SIZES.reference_size(kind) })
    });
    let opaque = (1..20u32, name()).prop_map(|(size, tag)| Datatype::Opaque(OpaqueType { size, tag }));
    let floats: Vec<_> = [4, 8].into_iter().filter_map(|size| Datatype::float(size, ByteOrder::Little)).collect();
    let complex = select(floats).prop_map(|base| Datatype::Complex(ComplexType { base: Box::new(base) }));
    let members = vec((name(), any::<i16>()), 1..4).prop_map(|members| {
        let member = |(name, value): (Name, i16)| EnumMember { name, value: value.to_le_bytes().to_vec() };
        let base = Box::new(Datatype::integer(2, ByteOrder::Little, Sign::Signed));
        Datatype::Enum(EnumType { base, members: members.into_iter().map(member).collect() })
    });
    prop_oneof![4 => number(), 2 => string, 1 => text, 1 => reference, 1 => opaque, 1 => complex, 1 => members]
}

/// Types whose elements that lead elsewhere have the sizes that they have in a container.
pub fn datatype() -> impl Strategy<Value = Datatype> {
    simple_type().prop_recursive(3, 12, 3, |inner| {
        let array = (vec(1..4u32, 1..3), inner.clone())
            .prop_map(|(dims, base)| Datatype::Array(ArrayType { dims, base: Box::new(base) }));
        let sequence = inner.clone().prop_map(|base| {
            Datatype::VarLen(VarLenType {
                kind: VarLenKind::Sequence,
                size: STORED_VLEN_AND_REFERENCE_SIZES.vlen,
                base: Box::new(base),
            })
        });
        let compound = (vec((inner, 0..3u32), 1..4), 0..3u32).prop_map(|(members, tail)| {
            let mut size = 0;
            let member = |(at, (datatype, gap)): (usize, (Datatype, u32))| {
                let offset = size + gap;
                size = offset + datatype.size();
                CompoundMember { name: format!("m{at}").into(), offset, datatype }
            };
            let members: Vec<_> = members.into_iter().enumerate().map(member).collect();
            Datatype::Compound(CompoundType { size: size + tail, members })
        });
        prop_oneof![array, sequence, compound]
    })
}

fn extent() -> impl Strategy<Value = u64> {
    prop_oneof![0..50u64, Just(1 << 33)]
}

pub fn dataspace() -> impl Strategy<Value = Dataspace> {
    let fixed = vec(extent(), 1..4).prop_map(|dims| Dataspace::Simple(Shape::fixed(&dims)));
    let growing = vec((extent(), prop_oneof![Just(0), 0..9u64, Just(UNLIMITED)]), 1..4).prop_map(|dims| {
        let (dims, max): (Vec<_>, Vec<_>) = dims.into_iter().map(|(dim, more)| (dim, dim.saturating_add(more))).unzip();
        Dataspace::Simple(Shape::with_max(&dims, &max).unwrap())
    });
    prop_oneof![1 => Just(Dataspace::Null), 1 => Just(Dataspace::Scalar), 3 => fixed, 3 => growing]
}

/// Selections in a dataspace of 2 dimensions.
pub fn selection() -> impl Strategy<Value = Selection> {
    let count = || prop_oneof![4 => 1..5u64, 1 => Just(UNLIMITED)];
    let slab = (vec(0..9u64, 2), vec(5..9u64, 2), count(), 1..5u64, vec(1..5u64, 2)).prop_map(
        |(start, stride, first, second, block)| {
            let count = [first, second].into_iter().collect();
            let (start, stride, block) = (start.into(), stride.into(), block.into());
            Selection::Hyperslab(Hyperslab { start, stride, count, block })
        },
    );
    let block = (vec(0..9u64, 2), vec(1..9u64, 2))
        .prop_map(|(start, count)| Block { start: start.into(), count: count.into() });
    prop_oneof![
        1 => Just(Selection::All),
        1 => Just(Selection::None),
        3 => slab,
        1 => vec(block, 1..4).prop_map(|mut blocks| {
            // They do not meet.
            blocks.iter_mut().enumerate().for_each(|(at, block)| block.start[0] += 20 * at as u64);
            Selection::Blocks(blocks)
        }),
        1 => vec(vec(0..70_000u64, 2), 1..4).prop_map(|points| {
            Selection::Points(points.into_iter().map(Into::into).collect())
        }),
    ]
}

pub fn storage() -> impl Strategy<Value = LinkOrAttributeStorageSpec> {
    let order = select(vec![CreationOrder::Untracked, CreationOrder::Tracked, CreationOrder::Indexed]);
    let made = (order, any::<u16>(), any::<u16>())
        .prop_map(|(order, max_compact, min_dense)| LinkOrAttributeStorageSpec { order, max_compact, min_dense });
    prop_oneof![Just(LinkOrAttributeStorageSpec::default()), made]
}

fn fill(size: u32) -> impl Strategy<Value = Fill> {
    let allocation = select(vec![AllocationTime::Early, AllocationTime::Late, AllocationTime::Incremental]);
    let time = select(vec![FillTime::Allocation, FillTime::Never, FillTime::IfSet]);
    let value = prop_oneof![
        Just(FillValue::Default),
        Just(FillValue::Undefined),
        vec(any::<u8>(), size as usize).prop_map(FillValue::Value),
    ];
    (allocation, time, value).prop_map(|(allocation, time, value)| Fill { allocation, time, value })
}

fn layout() -> impl Strategy<Value = Layout> {
    let piece =
        (name(), any::<u64>(), any::<u64>()).prop_map(|(name, offset, size)| ExternalPiece { name, offset, size });
    let source = (name(), name(), selection(), selection()).prop_map(|(file, dataset, source, target)| VirtualSource {
        file,
        dataset,
        source,
        target,
    });
    prop_oneof![
        Just(Layout::Compact),
        Just(Layout::Contiguous),
        vec(prop_oneof![1..100u64, Just(1 << 32)], 1..4).prop_map(Layout::Chunked),
        vec(piece, 1..3).prop_map(Layout::External),
        vec(source, 0..3).prop_map(Layout::Virtual),
    ]
}

fn filters() -> impl Strategy<Value = Vec<FilterSpec>> {
    let filter =
        (any::<u16>(), any::<bool>(), option::of(vec(1..255u8, 0..5).prop_map(Name::from)), vec(any::<u32>(), 0..5))
            .prop_map(|(id, optional, name, params)| FilterSpec { id, optional, name, params });
    prop_oneof![Just(Vec::new()), vec(filter, 1..4)]
}

pub fn dataset() -> impl Strategy<Value = DatasetSpec> {
    let parts = (option::of(any::<u128>().prop_map(ObjectId)), dataspace(), layout(), filters(), any::<bool>());
    datatype().prop_flat_map(move |datatype| (Just(datatype.clone()), fill(datatype.size()))).prop_flat_map({
        let parts = std::sync::Arc::new(parts);
        move |(datatype, fill)| {
            let parts = parts.clone();
            parts.prop_map(move |(committed, dataspace, layout, filters, unfiltered_partial_chunks)| DatasetSpec {
                datatype: datatype.clone(),
                committed_datatype: committed,
                dataspace,
                layout,
                filters,
                fill: fill.clone(),
                unfiltered_partial_chunks,
            })
        }
    })
}

/// Objects of every kind.
pub fn object() -> impl Strategy<Value = ObjectSpec> {
    let body = prop_oneof![
        storage().prop_map(|links| ObjectKindSpec::Group(GroupSpec { link_storage: links })),
        dataset().prop_map(|dataset| ObjectKindSpec::Dataset(Box::new(dataset))),
        datatype().prop_map(ObjectKindSpec::Datatype),
        (datatype(), datatype())
            .prop_map(|(key, value)| ObjectKindSpec::Map(Box::new(MapSpec { key_type: key, value_type: value }))),
    ];
    (body, storage(), any::<bool>(), any::<bool>()).prop_map(|(body, attributes, times, large_attributes)| ObjectSpec {
        body,
        attribute_storage: attributes,
        track_times: times,
        expects_large_attributes: large_attributes,
    })
}
