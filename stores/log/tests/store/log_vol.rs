//! Logs in Log VOL's layout: as its samples are, read back, and refused where the layout has no form for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use h5live_log::{EntryFilter, Log, LogLayout, LogOpenRequest, LogStore};
use h5live_model::{
    AttributeData, ByteOrder, ChunkCoord, ChunkStore, DatasetSpec, Dataspace, Datatype, Error, Fill, FillValue,
    FilterSpec, Layout, LinkTarget, Mode, Name, NewObject, ObjectId, ObjectScope, ObjectSpec, PublishLevel, Shape,
    Sign, Store, UNLIMITED, VarLenKind, VarLenType, VirtualSource,
};
use h5live_native::{NativeFile, OpenOptions};

fn native(path: &Path, mode: Mode) -> NativeFile {
    NativeFile::open(path, &OpenOptions { mode, ..OpenOptions::default() }).unwrap()
}

fn log_vol() -> Log {
    Log { layout: LogLayout::LogVol, ..Log::default() }
}

fn open_with(path: &Path, mode: Mode, options: Log) -> Result<LogStore, Error> {
    LogStore::open_or_create(Arc::new(native(path, mode)), None, LogOpenRequest::new(options))
}

fn open(path: &Path, mode: Mode) -> LogStore {
    open_with(path, mode, log_vol()).unwrap()
}

fn i32le() -> Datatype {
    Datatype::integer(4, ByteOrder::Little, Sign::Signed)
}

fn fixed(datatype: Datatype, dims: &[u64]) -> DatasetSpec {
    DatasetSpec { datatype, dataspace: Dataspace::Simple(Shape::fixed(dims)), ..DatasetSpec::default() }
}

fn unlimited(datatype: Datatype, dims: &[u64], chunk: &[u64]) -> DatasetSpec {
    let mut max = dims.to_vec();
    max[0] = UNLIMITED;
    DatasetSpec {
        dataspace: Dataspace::Simple(Shape::with_max(dims, &max).unwrap()),
        layout: Layout::Chunked(chunk.into()),
        ..fixed(datatype, dims)
    }
}

fn create(store: &LogStore, group: ObjectId, name: &str, spec: impl Into<ObjectSpec>) -> Result<ObjectId, Error> {
    store.writer()?.create(&NewObject::linked(group, &Name::from(name), &spec.into()))
}

fn make(store: &LogStore, name: &str, spec: DatasetSpec) -> Arc<dyn ChunkStore> {
    store.dataset(create(store, store.session().root, name, spec).unwrap()).unwrap()
}

/// The object at a path of stored names.
fn at(store: &dyn Store, path: &str) -> ObjectId {
    path.split('/').fold(store.session().root, |group, name| {
        match store.link(group, &Name::from(name)).unwrap().unwrap_or_else(|| panic!("{name} of {path}")).target {
            LinkTarget::Hard(id) => id,
            other => panic!("{other:?}"),
        }
    })
}

fn read(data: &dyn ChunkStore, chunk: &[u64]) -> Vec<u8> {
    let chunk = data.locate(&ChunkCoord::new(chunk)).unwrap().expect("the chunk is stored");
    let mut bytes = vec![0; chunk.size as usize];
    data.read(&chunk, 0, &mut bytes).unwrap();
    bytes
}

fn bytes_of(numbers: impl IntoIterator<Item = i32>) -> Vec<u8> {
    numbers.into_iter().flat_map(i32::to_le_bytes).collect()
}

/// What is in the folder of samples; `None`, and a line that says so, where it is not there.
fn sample(name: &str) -> Option<PathBuf> {
    Some(h5live_test_support::shared()?.join("samples/log-vol").join(name))
}

/// Writes the datasets of `log_sample.h5`, and the first of its entries.
fn write_as_in_the_sample(path: &Path) {
    let store = open(path, Mode::CreateNew);
    let ints = make(&store, "ints", fixed(i32le(), &[8, 6]));
    let units = AttributeData {
        name: Name::from("units"),
        datatype: i32le(),
        committed_datatype: None,
        dataspace: Dataspace::Scalar,
        value: bytes_of([7]),
        creation_order: None,
    };
    store.writer().unwrap().set_attribute(ints.id(), &units).unwrap();
    let group = create(&store, store.session().root, "grp", ObjectSpec::group()).unwrap();
    create(&store, group, "rec", unlimited(Datatype::float(8, ByteOrder::Little).unwrap(), &[8, 6], &[1, 6])).unwrap();
    let fill = Fill { value: FillValue::Value(bytes_of([-5])), ..Fill::default() };
    make(&store, "_under", DatasetSpec { fill, ..fixed(i32le(), &[8, 6]) });
    ints.write_block(&ChunkCoord::origin(2), &[0, 0], &[4, 6], &bytes_of(0..24)).unwrap();
    store.close().unwrap();
}

#[test]
fn its_structures_are_those_of_the_samples() {
    let Some(sample) = sample("log_sample.h5") else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ours.h5");
    write_as_in_the_sample(&path);
    let (ours, theirs) = (native(&path, Mode::Read), native(&sample, Mode::Read));
    let spec =
        |file: &NativeFile, path: &str| DatasetSpec::clone(&file.dataset(at(file, path)).unwrap().spec().unwrap());
    for path in ["ints", "grp/rec", "__under"] {
        let (found, wanted) = (spec(&ours, path), spec(&theirs, path));
        assert_eq!(found.datatype, wanted.datatype, "{path}");
        assert_eq!((&found.dataspace, &found.layout), (&wanted.dataspace, &wanted.layout), "{path}");
        assert_eq!((found.fill.value, found.filters.len()), (wanted.fill.value, 0), "{path}");
        let (found, wanted) = (at(&ours, path), at(&theirs, path));
        for name in theirs.attribute_names(wanted).unwrap() {
            let attribute = |file: &NativeFile, id| {
                let AttributeData { datatype, dataspace, value, .. } = file.attribute(id, &name).unwrap().unwrap();
                (datatype, dataspace, value)
            };
            assert_eq!(attribute(&ours, found), attribute(&theirs, wanted), "{path}: {name:?}");
        }
        let names = theirs.attribute_names(wanted).unwrap();
        let mut added = ours.attribute_names(found).unwrap();
        added.retain(|name| !names.contains(name));
        assert_eq!(added, [Name::from("_log_storage")], "what Log VOL passes over");
    }
    for path in ["_LOG/_ld_0", "_LOG/_md_0"] {
        let any_size = |spec: DatasetSpec| DatasetSpec { dataspace: Dataspace::Simple(Shape::fixed(&[1])), ..spec };
        assert_eq!(any_size(spec(&ours, path)), any_size(spec(&theirs, path)), "{path}");
        assert_eq!(ours.attribute_names(at(&ours, path)).unwrap(), Vec::<Name>::new());
    }
    let counters = |file: &NativeFile| file.attribute(file.session().root, &Name::from("_int_att")).unwrap().unwrap();
    assert_eq!(counters(&ours).datatype, counters(&theirs).datatype);
    assert_eq!(counters(&ours).dataspace, counters(&theirs).dataspace);
    // Datasets, data logs, metadata logs; references to earlier entries are possible; one group.
    assert_eq!(counters(&ours).value, bytes_of([3, 1, 1, 8, 1]));
    // The entry of one box is that of the sample's first process, but for the place of the data.
    let (found, wanted) = (
        read(&*ours.dataset(at(&ours, "_LOG/_md_0")).unwrap(), &[0]),
        read(&*theirs.dataset(at(&theirs, "_LOG/_md_0")).unwrap(), &[0]),
    );
    let (found, wanted) = (&found[16..], &wanted[24..][..60]);
    assert_eq!(found.len(), 60);
    assert_eq!((&found[..12], &found[20..]), (&wanted[..12], &wanted[20..]));
    let place = u64::from_le_bytes(found[12..20].try_into().unwrap()) as usize;
    let file = std::fs::read(&path).unwrap();
    assert_eq!(file[place..place + 96], bytes_of(0..24));
}

#[test]
fn a_sample_is_written_on_and_keeps_what_it_had() {
    let Some(sample) = sample("log_sample.h5") else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sample.h5");
    std::fs::write(&path, std::fs::read(sample).unwrap()).unwrap();
    let before = read(&*open(&path, Mode::Read).dataset(at(&native(&path, Mode::Read), "ints")).unwrap(), &[0, 0]);
    // The layout of a log that is there does not have to be asked for.
    let store = open_with(&path, Mode::Write, Log::default()).unwrap();
    let ints = store.dataset(at(&store, "ints")).unwrap();
    ints.write_block(&ChunkCoord::origin(2), &[7, 4], &[1, 2], &bytes_of([70, 71])).unwrap();
    make(&store, "new", fixed(i32le(), &[2])).write_whole_chunk(&ChunkCoord::origin(1), 0, &bytes_of([5, 6])).unwrap();
    store.close().unwrap();
    let store = open(&path, Mode::Read);
    let mut want = before;
    want[46 * 4..48 * 4].copy_from_slice(&bytes_of([70, 71]));
    assert_eq!(read(&*store.dataset(at(&store, "ints")).unwrap(), &[0, 0]), want);
    assert_eq!(read(&*store.dataset(at(&store, "new")).unwrap(), &[0]), bytes_of([5, 6]));
    let file = native(&path, Mode::Read);
    let counters = file.attribute(file.session().root, &Name::from("_int_att")).unwrap().unwrap();
    assert_eq!(counters.value, bytes_of([4, 3, 2, 10, 1]));
    let id = file.attribute(at(&file, "new"), &Name::from("_ID")).unwrap().unwrap();
    assert_eq!(id.value, bytes_of([3]));
}

#[test]
fn later_data_lies_behind_earlier_data_also_where_space_was_freed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.h5");
    let store = open_with(&path, Mode::CreateNew, Log { staging: 64, ..log_vol() }).unwrap();
    let root = store.session().root;
    let writer = store.writer().unwrap();
    let data = make(&store, "data", unlimited(i32le(), &[0], &[4]));
    for round in 0..40u64 {
        // Large attributes come and go, and leave holes behind.
        let large = AttributeData {
            name: Name::from(format!("large {}", round % 3).as_str()),
            datatype: i32le(),
            committed_datatype: None,
            dataspace: Dataspace::Simple(Shape::fixed(&[2000])),
            value: vec![1; 8000],
            creation_order: None,
        };
        let group = create(&store, root, &format!("group {round}"), ObjectSpec::group()).unwrap();
        writer.set_attribute(group, &large).unwrap();
        data.write_whole_chunk(&ChunkCoord::new(&[round / 2]), 0, &bytes_of([round as i32; 4])).unwrap();
        data.set_extent(&[4 * (round / 2) + 4]).unwrap();
        data.publish(PublishLevel::Visible).unwrap();
        writer.remove_link(root, &Name::from(format!("group {round}").as_str())).unwrap();
    }
    store.close().unwrap();
    let file = native(&path, Mode::Read);
    let mut places = Vec::new();
    while let Some(link) = file.link(at(&file, "_LOG"), &Name::from(format!("_ld_{}", places.len()).as_str())).unwrap()
    {
        let LinkTarget::Hard(id) = link.target else { panic!("a hard link") };
        let chunk = file.dataset(id).unwrap().locate(&ChunkCoord::origin(1)).unwrap().unwrap();
        places.push(chunk.file_offset.unwrap());
    }
    assert_eq!(places.len(), 40);
    assert!(places.is_sorted(), "{places:?}");
    let store = open(&path, Mode::Read);
    let data = store.dataset(at(&store, "data")).unwrap();
    for chunk in 0..20 {
        assert_eq!(read(&*data, &[chunk]), bytes_of([2 * chunk as i32 + 1; 4]), "the later write counts");
    }
}

#[test]
fn a_deleted_dataset_leaves_the_others_readable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.h5");
    let store = open(&path, Mode::CreateNew);
    for (name, value) in [("a", 1), ("b", 2)] {
        make(&store, name, fixed(i32le(), &[3]))
            .write_whole_chunk(&ChunkCoord::origin(1), 0, &bytes_of([value; 3]))
            .unwrap();
    }
    store.writer().unwrap().commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    store.writer().unwrap().remove_link(store.session().root, &Name::from("a")).unwrap();
    store.close().unwrap();
    let store = open(&path, Mode::Write);
    assert_eq!(read(&*store.dataset(at(&store, "b")).unwrap(), &[0]), bytes_of([2; 3]));
    let data = make(&store, "c", fixed(i32le(), &[3]));
    assert!(data.locate(&ChunkCoord::origin(1)).unwrap().is_none(), "a number is not given twice");
    store.close().unwrap();
}

#[test]
fn what_the_layout_does_not_hold_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.h5");
    let store = open(&path, Mode::CreateNew);
    let base = Box::new(Datatype::integer(1, ByteOrder::Little, Sign::Unsigned));
    let text = Datatype::VarLen(VarLenType {
        kind: VarLenKind::Sequence,
        size: store.session().vlen_and_reference_sizes.vlen,
        base,
    });
    let refused = [
        ("variable-length elements", fixed(text, &[2])),
        ("a null dataspace", DatasetSpec { dataspace: Dataspace::Null, ..fixed(i32le(), &[]) }),
        (
            "a virtual dataset",
            DatasetSpec { layout: Layout::Virtual(vec![VirtualSource::default()]), ..fixed(i32le(), &[2]) },
        ),
        ("a dataset in raw files", DatasetSpec { layout: Layout::External(Vec::new()), ..fixed(i32le(), &[2]) }),
    ];
    for (what, spec) in refused {
        let error = create(&store, store.session().root, "x", spec).unwrap_err();
        let text = error.to_string();
        assert!(
            matches!(error, Error::Unsupported(_)) && text.contains(what) && text.contains("layout=logvol"),
            "{text}"
        );
        assert_eq!(store.link(store.session().root, &Name::from("x")).unwrap(), None, "{what}");
    }
    let said = |result: Result<(), Error>| {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Unsupported(_)), "{error}");
        error.to_string()
    };
    assert!(said(store.writer().unwrap().start_swmr()).contains("layout=logvol"));
    let data = make(&store, "data", unlimited(i32le(), &[4], &[2]));
    assert!(said(data.set_extent(&[2])).contains("making a dataset smaller"));
    assert_eq!(data.spec().unwrap().dataspace.dims(), [4]);
    store.close().unwrap();
    for filter in [EntryFilter::Deflate, EntryFilter::Lz4, EntryFilter::Zstd] {
        let opened = open_with(&path, Mode::Write, Log { filter, ..log_vol() });
        assert!(said(opened.map(drop)).contains("a filter of entries"), "{filter:?}");
    }
    assert!(said(open_with(&path, Mode::SwmrWrite, log_vol()).map(drop)).contains("following"));
    let other = folder.path().join("other.h5");
    open_with(&other, Mode::CreateNew, Log::default()).unwrap().close().unwrap();
    let opened = open_with(&other, Mode::Write, log_vol());
    assert!(matches!(opened, Err(Error::Invalid(text)) if text.contains("layout=logvol")));
}

#[test]
fn data_is_not_filtered_and_the_filters_of_a_dataset_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.h5");
    let store = open(&path, Mode::CreateNew);
    let deflate = FilterSpec { id: 1, params: vec![6], ..FilterSpec::default() };
    let spec = DatasetSpec { filters: vec![deflate], ..unlimited(i32le(), &[1000], &[1000]) };
    make(&store, "data", spec.clone()).write_whole_chunk(&ChunkCoord::new(&[0]), 0, &bytes_of([9; 1000])).unwrap();
    store.close().unwrap();
    let store = open(&path, Mode::Read);
    let data = store.dataset(at(&store, "data")).unwrap();
    assert_eq!(*data.spec().unwrap(), spec);
    assert_eq!(read(&*data, &[0]), bytes_of([9; 1000]));
    let file = native(&path, Mode::Read);
    assert_eq!(read(&*file.dataset(at(&file, "_LOG/_ld_0")).unwrap(), &[0]), bytes_of([9; 1000]));
}
