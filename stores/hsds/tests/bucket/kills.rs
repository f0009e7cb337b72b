//! Writers that are killed, again and again: what they have committed is there, and nothing else is seen.

use std::time::Duration;

use h5live_model::{Mode, Store};

use crate::processes::{Writer, appended_from, server_with_domain};
use crate::{DOMAIN, check_appended, check_appended_from, find, long_lease, open};

/// How often writers are killed, for long runs.
const KILLS: &str = "H5LIVE_TEST_KILLS";
const DEFAULT_KILLS: u64 = 12;

#[test]
fn killed_writers_lose_nothing_that_they_committed_and_show_nothing_else() {
    let Some((server, client)) = server_with_domain() else { return };
    let kills = std::env::var(KILLS).ok().map_or(DEFAULT_KILLS, |text| text.parse().expect("a number"));
    let reader = open(&client, DOMAIN, Mode::SwmrRead, &long_lease()).unwrap();
    let followed = reader.dataset(find(&reader, "rows").unwrap()).unwrap();
    let mut last = 0..=0;
    for kill in 0..kills {
        let mut writer = Writer::start(&server, 600, true);
        let (word, begin) = writer.says();
        // The last request of the writer before may have arrived after its death.
        let begin: u64 = begin.parse().unwrap();
        assert!(word == "opened" && last.contains(&begin), "kill {kill}: {begin} chunks, not {last:?}");
        // It has more to do than it says, wherever it is when it is killed.
        let acknowledged = 1 + kill * 7 % 5;
        (0..acknowledged + 1 + kill % 3).for_each(|_| writer.append());
        for place in begin..begin + acknowledged {
            assert_eq!(writer.says(), ("appended".to_owned(), place.to_string()), "kill {kill}");
        }
        // So that each death finds another writer somewhere else in its work.
        std::thread::sleep(Duration::from_millis(kill * 3 % 25));
        writer.kill();
        let found = appended_from(&client, begin);
        let most = begin + acknowledged + 1 + kill % 3;
        assert!(
            (begin + acknowledged..=most).contains(&found),
            "kill {kill}: {found} of {begin} + {acknowledged} chunks"
        );
        followed.refresh().unwrap();
        assert!((found..=most).contains(&check_appended_from(&*followed, begin)), "kill {kill}");
        last = found..=most;
    }
    assert!(last.contains(&appended_from(&client, 0)) && last.contains(&check_appended(&*followed)));
    println!("{kills} writers killed, {} chunks", last.start());
}
