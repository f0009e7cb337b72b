//! Addresses of raw data that lead beyond the end of the file, as damage leaves them: nothing is written there.

use std::sync::Arc;

use h5live_cache::{MemoryStorage, Storage};
use h5live_format::messages::{LayoutClass, LayoutMessage, MessageType};
use h5live_format::{Addr, FirstHeaderChunk, MessageFlags, RawMessage, Widths, decode_prefix, encode};
use h5live_model::{
    AllocationTime, ByteOrder, ChunkCoord, ChunkStore, DatasetSpec, Dataspace, Datatype, Error, Layout, LinkTarget,
    Name, NewObject, Shape, Sign, Store, StoreErrorKind, StoreWriter,
};
use h5live_native::{Mode, NativeFile, OpenOptions};

const BYTES: u64 = 4096;

fn options(mode: Mode) -> OpenOptions {
    OpenOptions { mode, ..OpenOptions::default() }
}

/// A closed file with one dataset, all of whose elements are stored.
fn closed(layout: Layout) -> Arc<MemoryStorage> {
    let storage = Arc::new(MemoryStorage::new());
    let mut spec = DatasetSpec {
        datatype: Datatype::integer(1, ByteOrder::Little, Sign::Unsigned),
        dataspace: Dataspace::Simple(Shape::with_max(&[2 * BYTES], &[4 * BYTES]).unwrap()),
        layout,
        ..DatasetSpec::default()
    };
    if spec.layout == Layout::Contiguous {
        spec.dataspace = Dataspace::Simple(Shape::fixed(&[2 * BYTES]));
    }
    spec.fill.allocation = AllocationTime::Early;
    let file = NativeFile::open_storage(storage.clone(), &options(Mode::Create)).unwrap();
    file.create(&NewObject::linked(file.session().root, &"data".into(), &spec.into())).unwrap();
    file.close().unwrap();
    storage
}

/// Moves what the layout message says to be the first byte of raw data to `addr`.
fn lead_to(storage: &MemoryStorage, addr: Addr) {
    let bytes = storage.to_vec();
    let at = bytes.windows(4).rposition(|window| window == b"OHDR").unwrap();
    let (mut header, _): (FirstHeaderChunk, _) = decode_prefix(&bytes[at..], Widths::default()).unwrap();
    let message = header.messages.iter_mut().find(|message| message.kind == MessageType::LAYOUT).unwrap();
    let mut layout: LayoutMessage = message.decode(Widths::default()).unwrap();
    match &mut layout.storage {
        LayoutClass::Contiguous { addr: place, .. } => *place = addr,
        LayoutClass::Chunked(chunks) => chunks.addr = addr,
        other => panic!("{other:?}"),
    }
    let mut body = RawMessage::encode_from(&layout, MessageFlags(0), Widths::default()).unwrap().body;
    body.resize(message.body.len());
    message.body = body;
    storage.write_at(&encode(&header, Widths::default()).unwrap(), at as u64).unwrap();
}

fn dataset(file: &NativeFile) -> Arc<dyn ChunkStore> {
    match file.link(file.session().root, &Name::from("data")).unwrap().unwrap().target {
        LinkTarget::Hard(id) => file.dataset(id).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn expect_damage(done: Result<(), Error>) {
    match done {
        Err(Error::Store(error)) => assert_eq!(error.kind, StoreErrorKind::Damaged, "{error}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_is_written_beyond_the_end_of_the_file_to_which_damage_leads() {
    for layout in [Layout::Contiguous, Layout::Chunked(vec![BYTES])] {
        for mode in [Mode::Write, Mode::SwmrWrite] {
            let storage = closed(layout.clone());
            lead_to(&storage, Addr::new(1 << 40));
            let len = storage.len().unwrap();
            let file = NativeFile::open_storage(storage.clone(), &options(mode)).unwrap();
            let data = dataset(&file);
            expect_damage(data.write_byte_range(&ChunkCoord::new(&[0]), 0, &[1; 16]));
            if layout != Layout::Contiguous {
                expect_damage(data.write_whole_chunk(&ChunkCoord::new(&[1]), 0, &[1; BYTES as usize]));
            }
            file.close().unwrap();
            assert_eq!(storage.len().unwrap(), len, "{layout:?}, {mode:?}");
        }
    }
}

#[test]
fn chunks_without_an_index_are_cleared_only_as_far_as_the_file_has_them() {
    let storage = closed(Layout::Chunked(vec![1]));
    let len = storage.len().unwrap();
    let file = NativeFile::open_storage(storage.clone(), &options(Mode::Write)).unwrap();
    let data = dataset(&file);
    data.write_whole_chunk(&ChunkCoord::new(&[2 * BYTES - 1]), 0, &[7]).unwrap();
    data.set_extent(&[3]).unwrap();
    data.set_extent(&[2 * BYTES]).unwrap();
    let mut last = [1];
    let chunk = data.locate(&ChunkCoord::new(&[2 * BYTES - 1])).unwrap().unwrap();
    data.read(&chunk, 0, &mut last).unwrap();
    assert_eq!(last, [0], "dropped elements come back as fill values");
    file.close().unwrap();
    assert_eq!(storage.len().unwrap(), len);

    lead_to(&storage, Addr::new(len - 8));
    let file = NativeFile::open_storage(storage.clone(), &options(Mode::Write)).unwrap();
    // Eight of the chunks that the dataset should have are within the file.
    dataset(&file).set_extent(&[3]).unwrap();
    file.close().unwrap();
    assert_eq!(storage.len().unwrap(), len);
}
