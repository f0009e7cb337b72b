//! Damaged subfiles, and damaged files by which writers agree: an error that names the file, or the values that are there,
//! and never a panic.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use h5live_log::multi_writer_files::MultiWriterFiles;
use h5live_log::{Log, LogOpenRequest, LogStore};
use h5live_model::{
    AttributeData, ByteOrder, ChunkBatch, ChunkWrite, Dataspace, Datatype, Error, LinkTarget, Mode, Name, NewObject,
    ObjectId, ObjectKind, PublishLevel, Sign, Store,
};
use h5live_native::{NativeConnector, NativeFile, OpenOptions};

use super::files::{create, dataset, element, files_of, join, put, request, try_join, try_read};
use crate::random::Random;

/// Mutants of a log that all writers have left, and of one whose writers were killed.
const CLOSED_MUTANTS: u64 = 1500;
const KILLED_MUTANTS: u64 = 300;
/// Elements of each dataset.
const ELEMENTS: u64 = 24;
/// The most chunks of a dataset that are read: a damaged extent may have any number.
const MAX_CHUNKS: usize = 64;
const DATASETS: [&str; 2] = ["a", "b"];
/// Numbers that an attribute or the file of orders may have.
const NUMBERS: [u64; 10] = [0, 1, 2, 7, 1 << 16, (1 << 48) - 1, 1 << 48, i64::MAX as u64, 1 << 63, u64::MAX];

/// The files of a log: their names below its folder, and what they have.
type Files = BTreeMap<String, Vec<u8>>;

impl Random {
    fn one_of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len() as u64) as usize]
    }
}

fn load(folder: &Path) -> Files {
    let mut files = Files::new();
    for path in ["run.h5", "run.h5.1", "run.h5.2", "run.h5.3", "run.h5.lease", "run.h5.order"] {
        let path = if path == "run.h5" { path.to_owned() } else { format!("run.h5.subfiles/{path}") };
        if let Ok(bytes) = fs::read(folder.join(&path)) {
            files.insert(path, bytes);
        }
    }
    files
}

fn store(files: &Files, folder: &Path) {
    let _ = fs::remove_dir_all(folder.join("run.h5.subfiles"));
    let _ = fs::remove_file(folder.join("run.h5"));
    fs::create_dir(folder.join("run.h5.subfiles")).unwrap();
    files.iter().for_each(|(path, bytes)| fs::write(folder.join(path), bytes).unwrap());
}

/// The value of an element of a dataset.
fn value(name: &str, at: u64) -> u16 {
    at as u16 + 100 * u16::from(name == "b") + 1
}

/// The files of a log of three writers, each of which wrote some of every dataset.
fn log_files(are_closed: bool) -> Files {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("run.h5");
    let writers = [join(&main, true), join(&main, false), join(&main, false)];
    for name in DATASETS {
        create(&writers[0], name, 0);
    }
    let open: Vec<Vec<_>> =
        writers.iter().map(|writer| DATASETS.map(|name| dataset(writer, name).unwrap()).into()).collect();
    for at in 0..ELEMENTS {
        let writer = at as usize % writers.len();
        for (name, data) in DATASETS.iter().zip(&open[writer]) {
            data.refresh().unwrap();
            data.set_extent(&[if at == 9 { 5 } else { at + 1 }]).unwrap();
            if at % 7 == 0 {
                // All that came so far is written again.
                (0..at).for_each(|at| put(&**data, at, value(name, at)));
            }
            put(&**data, at, value(name, at));
        }
        if at % 2 == 0 || at + 3 >= ELEMENTS {
            open[writer][0].publish(PublishLevel::Visible).unwrap();
        }
    }
    if are_closed {
        writers.iter().for_each(|writer| writer.close().unwrap());
    }
    load(folder.path())
}

/// Reads everything. Returns how many datasets have all their values.
fn read_all(store: &LogStore) -> usize {
    let mut read = 0;
    for name in DATASETS {
        let Ok(Some(link)) = store.link(store.session().root, &Name::from(name)) else { continue };
        let LinkTarget::Hard(id) = link.target else { continue };
        let Ok(data) = store.dataset(id) else { continue };
        let mut chunks = Vec::new();
        let _ = data.for_each_chunk(&mut |chunk| {
            chunks.push(chunk);
            chunks.len() < MAX_CHUNKS
        });
        for chunk in chunks {
            let mut bytes = vec![0; chunk.size.min(1 << 16) as usize];
            let _ = data.read(&chunk, 0, &mut bytes);
        }
        read += usize::from((0..ELEMENTS).all(|at| element(&*data, at).is_ok_and(|found| found == value(name, at))));
    }
    read
}

/// Writes something, and leaves. Says whether all of it went well.
fn write_some(store: &LogStore) -> Result<(), Error> {
    let data = dataset(store, DATASETS[0])?;
    let extent = data.spec()?.dataspace.dims()[0].saturating_add(1);
    data.set_extent(&[extent])?;
    let coord = h5live_model::ChunkCoord::new(&[(extent - 1) / 4]);
    let writes = [ChunkWrite::ElementBlock { coord: &coord, start: &[(extent - 1) % 4], count: &[1], bytes: &[5, 0] }];
    data.write(&ChunkBatch { writes: &writes, ..ChunkBatch::default() })?;
    data.publish(PublishLevel::Visible)?;
    store.close()
}

/// Where heads of entries begin.
fn heads(bytes: &[u8]) -> Vec<usize> {
    (0..bytes.len().saturating_sub(48)).filter(|at| bytes[*at..].starts_with(b"LENT")).collect()
}

/// Makes the checksum of a head fit again.
fn seal_head(bytes: &mut [u8], at: usize) {
    let head_len = u32::from_le_bytes(bytes[at + 44..at + 48].try_into().unwrap()) as usize;
    let end = (at + head_len.clamp(48, 4096)).min(bytes.len());
    let crc = crc32c::crc32c(&bytes[at + 8..end]);
    bytes[at + 4..at + 8].copy_from_slice(&crc.to_le_bytes());
}

/// Changes the head of an entry, and makes its checksum fit.
fn forge_head(bytes: &mut [u8], at: usize, random: &mut Random) {
    let field = at + 8 + 4 * random.below(18) as usize;
    match random.below(3) {
        0 => bytes[field] = random.below(256) as u8,
        1 => bytes[field..field + 4 * (1 + random.below(2) as usize)].fill(0xFF),
        _ => bytes[field + 3] = 0x7F,
    }
    seal_head(bytes, at);
}

/// Gives the ends of batches other orders: `order` has that of each, by its number.
fn forge_orders(bytes: &mut [u8], order: impl Fn(u64) -> u64) {
    let is_end = |at: &usize| bytes[at + 56..at + 60] == [4, 0, 0, 0];
    let ends: Vec<usize> = heads(bytes).into_iter().filter(is_end).collect();
    for (number, at) in (0..).zip(ends) {
        bytes[at + 60..at + 68].copy_from_slice(&order(number).to_le_bytes());
        seal_head(bytes, at);
    }
}

/// The attributes of the objects of the root group, and of those in its groups.
fn attributes(file: &NativeFile) -> Result<Vec<(ObjectId, AttributeData)>, Error> {
    let mut objects = Vec::new();
    let mut groups = vec![file.session().root];
    for depth in 0..2 {
        for group in std::mem::take(&mut groups) {
            file.for_each_link(group, &mut |link| {
                objects.extend(if let LinkTarget::Hard(id) = link.target { Some(id) } else { None });
                true
            })?;
        }
        if depth == 0 {
            let is_group = |id: &&ObjectId| file.kind(**id).is_ok_and(|kind| kind == ObjectKind::Group);
            groups = objects.iter().filter(is_group).copied().collect();
        }
    }
    let mut found = Vec::new();
    for id in objects {
        file.for_each_attribute(id, &mut |attribute| {
            found.push((id, attribute));
            true
        })?;
    }
    Ok(found)
}

/// Puts a number into an attribute of the log or of a dataset, with the checksums of the file made fit.
fn forge_attribute(path: &Path, random: &mut Random) -> Result<(), Error> {
    let file = NativeFile::open(path, &OpenOptions { mode: Mode::Write, ..OpenOptions::default() })?;
    let (id, mut forged) = random.one_of(&attributes(&file)?).clone();
    if random.below(4) == 0 {
        forged.datatype = Datatype::integer(4, ByteOrder::Little, Sign::Signed);
        forged.dataspace = Dataspace::Scalar;
        forged.value.resize(4, 0);
    } else if forged.value.len() >= 8 {
        let at = 8 * random.below(forged.value.len() as u64 / 8) as usize;
        forged.value[at..at + 8].copy_from_slice(&random.one_of(&NUMBERS).to_le_bytes());
    }
    file.writer()?.set_attribute(id, &forged)?;
    file.close()
}

/// Damages the files in one way.
fn damage(files: &mut Files, folder: &Path, are_closed: bool, random: &mut Random) {
    let subfile = format!("run.h5.subfiles/run.h5.{}", 1 + random.below(3));
    let names: Vec<String> = files.keys().cloned().collect();
    let any = random.one_of(&names).clone();
    match random.below(if are_closed { 10 } else { 8 }) {
        0 | 1 => {
            let Some(bytes) = files.get_mut(&subfile) else { return };
            let heads = heads(bytes);
            if !heads.is_empty() {
                forge_head(bytes, *random.one_of(&heads), random);
            }
        }
        2 => {
            let Some(bytes) = files.get_mut(&subfile) else { return };
            let first = *random.one_of(&NUMBERS);
            match random.below(3) {
                0 => forge_orders(bytes, |_| first),
                1 => forge_orders(bytes, |number| 1000 - number),
                _ => forge_orders(bytes, |number| first.wrapping_sub(number)),
            }
        }
        3 | 4 => {
            let Some(bytes) = files.get_mut(if random.below(3) == 0 { &any } else { &subfile }) else { return };
            for _ in 0..1 + random.below(4) {
                if !bytes.is_empty() {
                    let at = random.below(bytes.len() as u64) as usize;
                    bytes[at] = *random.one_of(&[0, 0xFF, 0x7F, random.0 as u8]);
                }
            }
        }
        5 => {
            let bytes = files.get_mut(&any).unwrap();
            bytes.truncate(random.below(bytes.len() as u64) as usize);
        }
        6 => {
            let other = files[random.one_of(&names)].clone();
            match random.below(3) {
                0 => drop(files.remove(&any)),
                _ => drop(files.insert(subfile, other)),
            }
        }
        7 => {
            let number = *random.one_of(&NUMBERS);
            files.insert("run.h5.subfiles/run.h5.order".to_owned(), number.to_le_bytes().into());
        }
        _ => {
            let path = if random.below(3) == 0 { "run.h5" } else { &subfile };
            store(files, folder);
            // Another damage may have made that impossible.
            let _ = forge_attribute(&folder.join(path), random);
            *files = load(folder);
        }
    }
}

#[test]
fn no_damage_makes_a_reader_or_a_writer_panic() {
    for (are_closed, seed, mutants) in [(true, 28_001, CLOSED_MUTANTS), (false, 28_002, KILLED_MUTANTS)] {
        println!("seed {seed}");
        let folder = tempfile::tempdir().unwrap();
        let main = folder.path().join("run.h5");
        let sound = log_files(are_closed);
        store(&sound, folder.path());
        assert_eq!(read_all(&try_read(&main, Mode::Read).unwrap()), DATASETS.len());
        let mut random = Random(seed);
        let (mut opened, mut complete, mut joined, mut written) = (0, 0, 0, 0);
        for _ in 0..mutants {
            let mut files = sound.clone();
            damage(&mut files, folder.path(), are_closed, &mut random);
            if random.below(4) == 0 {
                damage(&mut files, folder.path(), are_closed, &mut random);
            }
            store(&files, folder.path());
            if let Ok(store) = try_read(&main, Mode::Read) {
                opened += 1;
                complete += u64::from(read_all(&store) == DATASETS.len());
            }
            if let Ok(store) = try_join(&main, false) {
                joined += 1;
                written += u64::from(write_some(&store).is_ok());
            }
        }
        println!(
            "closed {are_closed}: {opened} of {mutants} opened, {complete} read as a whole, {joined} joined, {written} written"
        );
        assert!(opened > 0 && complete > 0 && complete < mutants && written > 0 && written < mutants);
    }
}

/// The second subfile.
const SECOND: &str = "run.h5.subfiles/run.h5.2";
const ORDER: &str = "run.h5.subfiles/run.h5.order";

/// Reads all elements.
fn read_elements(store: LogStore) -> Result<(), Error> {
    for name in DATASETS {
        let data = dataset(&store, name)?;
        (0..ELEMENTS).try_for_each(|at| element(&*data, at).map(drop))?;
    }
    Ok(())
}

#[test]
fn errors_name_the_subfile_that_is_damaged() {
    type Damage = fn(&mut Files);
    let data_of_entry = |files: &mut Files| {
        // The data of the last entry of elements, which is found by its length.
        let bytes = files.get_mut(SECOND).unwrap();
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let heads = heads(bytes);
        let at = heads.iter().rfind(|at| number(**at + 16) > 0 && number(**at + 48) == 0).unwrap();
        let head_len = number(at + 40) >> 32;
        let data = at + head_len as usize;
        bytes[data] ^= 1;
    };
    let damages: [(&str, Damage, &str); 8] = [
        ("it is missing", |files| drop(files.remove(SECOND)), "subfile 2 of 3"),
        ("it is empty", |files| files.get_mut(SECOND).unwrap().clear(), "subfile 2 of 3"),
        ("it is cut off", |files| files.get_mut(SECOND).unwrap().truncate(3000), "subfile 2 of"),
        (
            "it is another one",
            |files| drop(files.insert(SECOND.to_owned(), files["run.h5.subfiles/run.h5.3"].clone())),
            "of subfile 2: the entry is damaged: it was written into another file",
        ),
        (
            "orders are repeated",
            |files| forge_orders(files.get_mut(SECOND).unwrap(), |_| 7),
            "of subfile 2: the entry is damaged: its order",
        ),
        (
            "orders decrease",
            |files| forge_orders(files.get_mut(SECOND).unwrap(), |number| 1000 - number),
            "of subfile 2: the entry is damaged: its order",
        ),
        (
            "an order is the highest number",
            |files| forge_orders(files.get_mut(SECOND).unwrap(), |_| u64::MAX),
            "of subfile 2: the entry is damaged: its order",
        ),
        (
            "an element is another one",
            data_of_entry,
            "in subfile 2 of the log: the log is damaged: an entry of dataset 0 has data with another checksum",
        ),
    ];
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("run.h5");
    let sound = log_files(false);
    for (what, damage, wanted) in damages {
        let mut files = sound.clone();
        damage(&mut files);
        store(&files, folder.path());
        let found = try_read(&main, Mode::Read).and_then(|store| Ok(read_elements(store)?));
        let text = found.expect_err(what).to_string();
        assert!(text.contains(wanted), "{what}: {text}");
    }
}

#[test]
fn a_number_that_is_too_high_for_a_batch_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("run.h5");
    let mut files = log_files(true);
    for last in [u64::MAX, u64::MAX - 1] {
        files.insert(ORDER.to_owned(), last.to_le_bytes().into());
        store(&files, folder.path());
        for _ in 0..2 {
            let text = write_some(&join(&main, false)).unwrap_err().to_string();
            assert!(text.contains("run.h5.order: it has the highest one already"), "{text}");
        }
        assert_eq!(read_all(&try_read(&main, Mode::Read).unwrap()), DATASETS.len());
    }
}

#[test]
fn batches_count_after_those_of_others_though_the_number_of_the_last_one_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("run.h5");
    let sound = log_files(true);
    for order in
        [None, Some(vec![]), Some(vec![1]), Some(0u64.to_le_bytes().to_vec()), Some(3u64.to_le_bytes().to_vec())]
    {
        let mut files = sound.clone();
        match &order {
            Some(bytes) => files.insert(ORDER.to_owned(), bytes.clone()),
            None => files.remove(ORDER),
        };
        store(&files, folder.path());
        let writer = join(&main, false);
        let data = dataset(&writer, "a").unwrap();
        put(&*data, 2, 999);
        data.publish(PublishLevel::Visible).unwrap();
        writer.close().unwrap();
        let store = try_read(&main, Mode::Read).unwrap();
        assert_eq!(element(&*dataset(&store, "a").unwrap(), 2).unwrap(), 999, "{order:?}");
    }
}

#[test]
fn a_count_or_a_number_of_datasets_that_is_too_high_takes_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("run.h5");
    let sound = log_files(true);
    for count in [1i64 << 40, i64::MAX, -1] {
        store(&sound, folder.path());
        let file = NativeFile::open(&main, &OpenOptions { mode: Mode::Write, ..OpenOptions::default() }).unwrap();
        let found = attributes(&file).unwrap();
        let (id, attribute) = found.iter().find(|(_, attribute)| attribute.name == "datasets").unwrap();
        let forged = AttributeData { value: count.to_le_bytes().into(), ..attribute.clone() };
        file.writer().unwrap().set_attribute(*id, &forged).unwrap();
        file.close().unwrap();
        write_some(&join(&main, false)).unwrap();
        let writer = join(&main, false);
        let spec = dataset(&writer, "a").unwrap().spec().unwrap().as_ref().clone().into();
        let made = writer.writer().unwrap().create(&NewObject::linked(writer.session().root, &Name::from("c"), &spec));
        assert_eq!(made.is_ok(), count == 1 << 40, "{count}");
        writer.close().unwrap();
        let store = try_read(&main, Mode::Read).unwrap();
        assert_eq!(element(&*dataset(&store, "a").unwrap(), ELEMENTS).unwrap(), 5);
    }
}

#[test]
fn a_writer_alone_refuses_a_batch_that_would_have_no_order() {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("run.h5");
    let mut files = log_files(true);
    // Those in the index table stay what they are; what counts is the highest one that it states.
    for path in ["run.h5.subfiles/run.h5.1", SECOND, "run.h5.subfiles/run.h5.3"] {
        forge_orders(files.get_mut(path).unwrap(), |number| u64::MAX - 100 + number);
    }
    store(&files, folder.path());
    let files = files_of(&main, NativeConnector);
    let how = LogOpenRequest { options: Log { rebuild_index: true, ..Log::default() }, ..request() };
    let writer = LogStore::open_or_create(files.open_main(Mode::Write).unwrap(), Some(files), how).unwrap();
    let data = dataset(&writer, "a").unwrap();
    let batches = (0..200).take_while(|_| {
        put(&*data, 0, 7);
        let published = data.publish(PublishLevel::Visible).map_err(|error| error.to_string());
        assert!(published.is_ok() || published == Err("the log has the highest order of a batch".to_owned()));
        published.is_ok()
    });
    assert!((1..100).contains(&batches.count()));
    writer.close().unwrap_err();
    drop((data, writer));
    assert_eq!(element(&*dataset(&try_read(&main, Mode::Read).unwrap(), "a").unwrap(), 0).unwrap(), 7);
}
