//! Messages come back from their bytes, and bytes that are none are refused.

use h5live_format::Record;
use h5live_model::{
    AttributeData, ByteOrder, CharacterSet, ChunkCoord, CreationOrder, DatasetSpec, Dataspace, Datatype, ExternalPiece,
    Fill, FillValue, FilterSpec, Layout, Link, LinkOrAttributeStorageSpec, LinkTarget, ObjectId, ObjectInfo,
    ObjectKindSpec, ObjectSpec, ObjectTimes, ReferenceKind, ReferenceType, Referent, ReferentPart, Selection, Shape,
    Sign, StoredChunk, StringPadding, UNLIMITED, VarLenKind, VarLenType, VirtualSource,
};
use proptest::prelude::*;
use smallvec::SmallVec;

use super::*;

fn datatypes() -> Vec<Datatype> {
    let number = Datatype::integer(4, ByteOrder::Big, Sign::Signed);
    let kind = VarLenKind::String { padding: StringPadding::NullTerminated, character_set: CharacterSet::Utf8 };
    let text = Datatype::VarLen(VarLenType { kind, size: 16, base: Box::default() });
    let reference = Datatype::Reference(ReferenceType { kind: ReferenceKind::Object1, size: 8 });
    let members = [("a", number.clone()), ("b", text.clone()), ("c", reference.clone())];
    vec![number, text, reference, Datatype::compound(members)]
}

fn specs() -> Vec<ObjectSpec> {
    let storage = LinkOrAttributeStorageSpec { order: CreationOrder::Indexed, max_compact: 3, min_dense: 2 };
    let mut group = ObjectSpec::group();
    (group.attribute_storage, group.track_times, group.expects_large_attributes) = (storage, true, true);
    let mut all = vec![group];
    let selections = [Selection::All, Selection::None, Selection::block(&[1, 2], &[3, 4])];
    let source = |selection: &Selection| VirtualSource {
        file: "other.h5".into(),
        dataset: "/a/%b".into(),
        source: selection.clone(),
        target: selection.clone(),
    };
    let layouts = [
        Layout::Compact,
        Layout::Contiguous,
        Layout::Chunked(vec![2, 1 << 40]),
        Layout::External(vec![ExternalPiece { name: "raw".into(), offset: 1, size: UNLIMITED }]),
        Layout::Virtual(selections.iter().map(source).collect()),
    ];
    for (datatype, layout) in datatypes().into_iter().cycle().zip(layouts) {
        let fill = Fill { value: FillValue::Value(vec![7; datatype.size() as usize]), ..Fill::default() };
        let filter = FilterSpec { id: 1, optional: true, name: Some("deflate".into()), params: vec![6] };
        let dataspace = Dataspace::Simple(Shape::with_max(&[3, 4], &[UNLIMITED, 4]).unwrap());
        let (committed, filters, unfiltered_partial_chunks) = (Some(ObjectId(u128::MAX)), vec![filter], true);
        all.push(
            DatasetSpec {
                datatype,
                committed_datatype: committed,
                dataspace,
                layout,
                filters,
                fill,
                unfiltered_partial_chunks,
            }
            .into(),
        );
    }
    all.extend(datatypes().into_iter().map(ObjectSpec::from));
    all.push(ObjectSpec::from(ObjectKindSpec::Map(Box::default())));
    all
}

fn objects() -> ObjectsAnswer {
    let links = [
        LinkTarget::Hard(ObjectId(800)),
        LinkTarget::Soft("/a".into()),
        LinkTarget::External { file: "o.h5".into(), path: "/".into() },
        LinkTarget::UserDefined { class: 200, data: vec![1, 2] },
    ];
    let link = |target: LinkTarget| Link { name: vec![b'x', 0xff].into(), target, creation_order: Some(-1) };
    let attribute = AttributeData {
        name: "é".into(),
        datatype: Datatype::integer(2, ByteOrder::Little, Sign::Unsigned),
        committed_datatype: Some(ObjectId(5)),
        dataspace: Dataspace::Simple(Shape::fixed(&[2])),
        value: vec![1, 2, 3, 4],
        creation_order: Some(9),
    };
    let object = |spec| ObjectRecord {
        id: ObjectId(1 << 100),
        spec,
        info: ObjectInfo {
            hard_link_count: 2,
            times: Some(ObjectTimes::default()),
            comment: Some("c".into()),
            ..Default::default()
        },
        links_if_few: Some(links.iter().cloned().map(link).collect()),
        attributes_if_small: Some(vec![attribute.clone()]),
        ..ObjectRecord::default()
    };
    let mut objects: Vec<_> = specs().into_iter().map(object).collect();
    let failure = Some(ObjectFailure { is_missing: true, message: "gone".into() });
    objects.push(ObjectRecord { failure, ..ObjectRecord::default() });
    ObjectsAnswer { objects }
}

fn chunks() -> ChunksAnswer {
    let chunk = StoredChunk { coord: ChunkCoord::new(&[1, 2]), file_offset: Some(7), size: 3, filter_mask: 1 };
    let there = ChunkAnswer { chunk: Some(chunk), bytes: vec![1, 2, 3] };
    ChunksAnswer { chunks: vec![there, ChunkAnswer::default()] }
}

fn referents() -> [ReferentAnswer; 4] {
    let parts = [
        ReferentPart::Whole,
        ReferentPart::Region(Selection::Points(vec![SmallVec::from_slice(&[1, 2]), SmallVec::from_slice(&[0, 0])])),
        ReferentPart::Region(Selection::block(&[1], &[2])),
        ReferentPart::Attribute("a".into()),
    ];
    parts.map(|part| ReferentAnswer { referent: Some(Referent { file: Some("f".into()), object: ObjectId(3), part }) })
}

#[track_caller]
fn comes_back<R: Record + Default + Clone + PartialEq + std::fmt::Debug>(message: &R) -> Vec<u8> {
    let bytes = encode_message(&mut message.clone()).unwrap();
    assert_eq!(decode_message::<R>(&bytes).unwrap(), *message);
    for len in 0..bytes.len() {
        assert!(decode_message::<R>(&bytes[..len]).is_err(), "{len} of {} bytes", bytes.len());
    }
    bytes
}

#[test]
fn messages_come_back_from_their_bytes() {
    comes_back(&objects());
    comes_back(&chunks());
    referents().iter().for_each(|answer| drop(comes_back(answer)));
    let wanted = vec![ChunkWanted { coord: ChunkCoord::new(&[3]), byte_range: Some(1..4) }, ChunkWanted::default()];
    comes_back(&ChunksRequest { incarnation: 1, dataset: ObjectId(2), max_bytes: 3, wanted });
    comes_back(&ObjectsRequest { incarnation: 1, ids: vec![ObjectId(1), ObjectId(2)], others: 3 });
    comes_back(&ReferenceRequest { incarnation: 1, kind: ReferenceKind::Object2, size: 12, object: ObjectId(7) });
    comes_back(&ReferenceAnswer { element: vec![1, 2] });
    comes_back(&BlobsAnswer { blobs: vec![vec![], vec![1]] });
    let mut session = SessionAnswer { features: h5live_model::StoreFeatures::all(), ..SessionAnswer::default() };
    session.creation_settings.set("offset_size", 4);
    comes_back(&session);
}

#[test]
fn the_first_version_stays_as_it_is() {
    let request = LinksRequest { incarnation: 0x0102, group: ObjectId(0x30), name: Some("ab".into()) };
    let hex: String = comes_back(&request).iter().map(|byte| format!("{byte:02x}")).collect();
    let id = "30000000000000000000000000000000";
    assert_eq!(hex, format!("48354c4d{}{}{id}{}{}6162", "01", "0201000000000000", "01", "02000000"));
}

proptest! {
    #[test]
    fn messages_that_were_changed_are_refused_or_read(at in any::<prop::sample::Index>(), byte: u8, cut in any::<bool>()) {
        let mut bytes = encode_message(&mut objects()).unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if cut {
            bytes.truncate(at + 1);
        }
        let _ = decode_message::<ObjectsAnswer>(&bytes);
        let _ = (decode_message::<ChunksAnswer>(&bytes), decode_message::<ReferentAnswer>(&bytes));
    }
}
