use std::sync::Arc;
use std::time::Duration;

use h5live_model::memory::MemoryStore;

use crate::{File, H5Type, Selection};

#[derive(H5Type, Debug, Clone, PartialEq)]
struct Sample {
    time: f64,
    #[h5(rename = "raw counts")]
    counts: [u16; 3],
    state: State,
    valid: bool,
}

#[derive(H5Type, Debug, Clone, Copy, PartialEq)]
#[repr(u8)]
enum State {
    Idle = 3,
    Running = 7,
}

fn sample(i: u16) -> Sample {
    let state = if i.is_multiple_of(2) { State::Idle } else { State::Running };
    Sample { time: f64::from(i) / 4.0, counts: [i, i + 1, i * 3], state, valid: i.is_multiple_of(3) }
}

#[test]
fn structs_come_back() {
    let file = File::in_memory();
    let data = file.new_dataset::<Sample>().unlimited_rows(&[]).deflate(3).create("samples").unwrap();
    let samples: Vec<_> = (0..3000).map(sample).collect();
    for some in samples.chunks(7) {
        data.append(some).unwrap();
    }
    assert_eq!(data.read::<Sample>().unwrap(), samples);
    file.flush().unwrap();
    assert_eq!(data.read::<Sample>().unwrap(), samples);
    assert!(data.stored_chunks().unwrap().len() > 1);

    #[derive(H5Type, Debug, Clone, PartialEq)]
    struct Times {
        time: f32,
    }
    let times = data.read_slice::<Times>(4..6).unwrap();
    assert_eq!(times, [Times { time: 1.0 }, Times { time: 1.25 }]);
    data.write_slice(4..5, &[Times { time: 99.0 }]).unwrap();
    assert_eq!(data.read_slice::<Sample>(4).unwrap(), [Sample { time: 99.0, ..sample(4) }]);
}

/// As [`Sample`], in another order, in other types, and with some of it one level down.
#[derive(H5Type, Debug, Clone, PartialEq)]
struct Other {
    valid: bool,
    counts: [f32; 3],
    inner: Inner,
    text: String,
}

#[derive(H5Type, Debug, Clone, PartialEq)]
struct Inner {
    state: State,
    time: f32,
    wide: i64,
    narrow: i8,
}

#[test]
fn many_structs_are_taken_apart_as_each_of_them_is() {
    let other = |i: u16| Other {
        valid: i.is_multiple_of(3),
        counts: [f32::from(i), 0.5, -1.0],
        inner: Inner { state: sample(i).state, time: f32::from(i) / 4.0, wide: i64::from(i) * -70, narrow: 5 },
        text: format!("text {i}"),
    };
    #[derive(H5Type, Debug, Clone, PartialEq)]
    struct Wanted {
        text: String,
        counts: [f64; 3],
        inner: Fewer,
    }
    #[derive(H5Type, Debug, Clone, PartialEq)]
    struct Fewer {
        narrow: f64,
        wide: i16,
        time: f64,
    }
    let file = File::in_memory();
    let all: Vec<_> = (0..1000).map(other).collect();
    let data = file.new_dataset::<Other>().create_with_data("data", &all).unwrap();
    assert_eq!(data.read::<Other>().unwrap(), all);
    assert!(data.read::<Wanted>().is_err());
    let data = data.with_conversion(crate::ConversionPolicy::Lossy);
    let wanted = |i: u64| data.read_slice::<Wanted>(i).unwrap().remove(0);
    let together = data.read::<Wanted>().unwrap();
    for (i, found) in (0..).zip(&together) {
        assert_eq!(*found, wanted(i));
        assert_eq!(found.inner.wide, (i as i64 * -70).max(i16::MIN.into()) as i16);
        assert_eq!((found.inner.time, found.counts[0]), (i as f64 / 4.0, i as f64));
    }
    assert_eq!(data.read_slice::<Wanted>(255..514).unwrap(), together[255..514]);
}

#[test]
fn strings_and_sequences_come_back() {
    let file = File::in_memory();
    let texts = ["", "a", "größer", "many words"].map(String::from);
    let data = file.new_dataset::<String>().create_with_data("texts", &texts).unwrap();
    assert_eq!(data.read::<String>().unwrap(), texts);
    let lists = [vec![], vec![1u16, 2, 3], vec![9]];
    let data = file.new_dataset::<Vec<u16>>().create_with_data("lists", &lists).unwrap();
    assert_eq!(data.read::<Vec<f64>>().unwrap(), [vec![], vec![1.0, 2.0, 3.0], vec![9.0]]);
    file.root().set_attribute("title", &"a run".to_string()).unwrap();
    assert_eq!(file.attribute("title").unwrap().read_scalar::<String>().unwrap(), "a run");
}

#[test]
fn a_follower_sees_every_row_once_and_ends_with_the_writer() {
    let store = MemoryStore::new();
    let writer = File::with_store(Arc::new(store.clone()), "run.h5", File::options()).unwrap();
    let data = writer.new_dataset::<u32>().unlimited_rows(&[2]).chunk_shape(&[8, 2]).deflate(1).create("data").unwrap();
    writer.start_swmr().unwrap();
    let reader = File::with_store(Arc::new(store.open_reader()), "run.h5", File::options()).unwrap();
    let followed = reader.dataset("data").unwrap();
    let nothing = |follow: crate::DatasetFollower<u32>| follow.timeout(Duration::ZERO).count();
    assert_eq!((nothing(followed.follow()), nothing(followed.follow().busy_poll())), (0, 0));
    let followers = [true, false].map(|rests| {
        let followed = followed.clone();
        std::thread::spawn(move || {
            let follow = followed.follow::<u32>();
            let follow = if rests { follow } else { follow.busy_poll() };
            follow.into_rows().map(Result::unwrap).collect::<Vec<Vec<u32>>>()
        })
    });
    for i in 0..200u32 {
        data.append(&[i, 2 * i]).unwrap();
        if i % 7 == 0 {
            data.flush().unwrap();
        }
        if i % 50 == 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    writer.close().unwrap();
    for follower in followers {
        assert_eq!(follower.join().unwrap(), (0..200).map(|i| vec![i, 2 * i]).collect::<Vec<_>>());
    }
}

#[test]
fn errors_name_the_file_the_object_and_the_cause() {
    let file = File::in_memory();
    assert_eq!(file.dataset("a/b").unwrap_err().to_string(), "memory: /a/b: there is no \"a\" here");
    let data = file.new_dataset::<u8>().shape(&[4]).create("data").unwrap();
    let error = data.read_slice::<u8>(2..7).unwrap_err();
    assert_eq!(error.to_string(), "memory: /data: the selection reaches to 7 in dimension 0, which has 4 elements");
    assert!(data.append(&[1u8]).unwrap_err().to_string().ends_with("no dimension along which it can grow"));
    file.root().link_soft("round", "/round").unwrap();
    assert!(file.dataset("round").unwrap_err().to_string().contains("more than 16 soft and external links"));
    assert_eq!(data.read_slice::<u8>(Selection::None).unwrap(), [0u8; 0]);
}

#[test]
fn a_live_file_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let writer = File::create(&path).unwrap();
    let frames = writer
        .new_dataset::<u16>()
        .unlimited_rows(&[4, 5])
        .chunk_shape(&[3, 4, 5])
        .shuffle()
        .deflate(2)
        .create("frames")
        .unwrap();
    let times = writer.new_dataset::<f64>().unlimited_rows(&[]).chunk_shape(&[16]).create("log/times").unwrap();
    writer.start_swmr().unwrap();
    let followers: Vec<_> = [true, false]
        .into_iter()
        .map(|rests| {
            let reader = File::options().swmr_read().open(&path).unwrap();
            std::thread::spawn(move || {
                let frames = reader.dataset("frames").unwrap();
                let times = reader.dataset("log/times").unwrap();
                let mut rows = 0;
                let follow = frames.follow::<u16>();
                let follow = if rests { follow } else { follow.busy_poll() };
                for frame in follow.into_rows() {
                    assert_eq!(frame.unwrap(), vec![rows as u16; 20]);
                    rows += 1;
                }
                let last: Vec<f64> = times.follow::<f64>().flat_map(Result::unwrap).collect();
                (rows, last)
            })
        })
        .collect();
    for i in 0..400u16 {
        frames.append(&[i; 20]).unwrap();
        times.append(&[f64::from(i)]).unwrap();
        if i % 3 == 0 {
            writer.flush().unwrap();
        }
    }
    writer.close().unwrap();
    for follower in followers {
        let (rows, times) = follower.join().unwrap();
        assert_eq!(rows, 400);
        assert_eq!(times, (0..400).map(f64::from).collect::<Vec<_>>());
    }
}

#[test]
fn descriptions_that_are_nearly_the_same_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("specs.h5");
    let file = File::create(&path).unwrap();
    let new = || file.new_dataset::<i32>().shape(&[4]);
    let made = [
        new().compact().create("compact"),
        new().compact().fill(7).create("filled"),
        file.new_dataset::<u32>().shape(&[4]).compact().create("unsigned"),
        file.new_dataset::<i32>().shape(&[5]).compact().create("longer"),
        new().create("contiguous"),
        new().chunk_shape(&[2]).create("chunks of two"),
        new().chunk_shape(&[3]).create("chunks of three"),
        new().chunk_shape(&[3]).shuffle().create("shuffled"),
    ];
    let made: Vec<_> = made.into_iter().map(|made| made.unwrap()).collect();
    let specs: Vec<_> = made.iter().map(|made| (made.path().to_owned(), made.spec().unwrap())).collect();
    file.close().unwrap();
    let file = File::open(&path).unwrap();
    for (one, spec) in &specs {
        for (other, other_spec) in &specs {
            assert_eq!(file.dataset(one).unwrap().spec().unwrap(), *spec, "{one} after another");
            assert_eq!(file.dataset(other).unwrap().spec().unwrap(), *other_spec, "{other} after {one}");
        }
    }
}
