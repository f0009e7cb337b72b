//! Writers in processes of their own, which may be stopped and killed.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use h5live_model::{Error, Mode, Store, StoreErrorKind};
use h5live_objects::testing::S3Server;
use h5live_objects::{ObjectClient, ObjectOptions};

use crate::{BUCKET, DOMAIN, append, check_appended, client, create, find, long_lease, open, with_lease};

/// The server on which the process writes that a test has started.
const ENDPOINT: &str = "H5LIVE_TEST_ENDPOINT";
/// For how long its lease holds (seconds), and whether it takes the lease of another one.
const LEASE: &str = "H5LIVE_TEST_LEASE";
const TAKE: &str = "H5LIVE_TEST_TAKE";
/// A lease whose end a test waits for (seconds). An attempt of a request has a third of it, so it is not as short as can be.
const SHORT_LEASE: u64 = 6;
/// How long a test waits for what must come at last.
const PATIENCE: Duration = Duration::from_secs(120);

/// A client of the bucket, for a process of its own.
pub fn client_at(endpoint: &str) -> ObjectClient {
    client(&ObjectOptions {
        endpoint: endpoint.to_owned(),
        region: "us-east-1".to_owned(),
        allow_http: true,
        ..ObjectOptions::default()
    })
}

/// The client of the process that a test has started, if one has started this process.
pub fn client_of_test() -> Option<ObjectClient> {
    std::env::var(ENDPOINT).ok().map(|endpoint| client_at(&endpoint))
}

/// Starts this program with one of its tests alone, which works on a server, and waits for lines of its input.
pub fn start_part(part: &str, endpoint: &str, variables: &[(&str, String)]) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([part, "--exact", "--nocapture", "--test-threads=1"]).env(ENDPOINT, endpoint);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

/// The part of the process that writes. It appends a chunk for each line that it gets, and says what came of it. It does
/// nothing where no test has started it.
#[test]
fn writer() {
    let Some(client) = client_of_test() else { return };
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let how = with_lease(Duration::from_secs(number(LEASE)), number(TAKE) > 0);
    let store = match open(&client, DOMAIN, Mode::Write, &how) {
        Ok(store) => store,
        Err(error) => return println!("\nrefused {error}"),
    };
    let data = store.dataset(find(&store, "rows").unwrap()).unwrap();
    let begin = data.spec().unwrap().dataspace.dims()[0] / 2;
    println!("\nopened {begin}");
    for (place, line) in (begin..).zip(std::io::stdin().lines()) {
        if line.is_err() {
            break;
        }
        match append(&*data, place) {
            Ok(()) => println!("\nappended {place}"),
            Err(error) => println!("\nfailed {error}"),
        }
    }
    if let Err(error) = store.close() {
        println!("\nfailed {error}");
    }
}

/// A process that writes.
struct Writer {
    process: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

impl Writer {
    fn start(server: &S3Server, lease_seconds: u64, takes_over: bool) -> Self {
        let variables = [(LEASE, lease_seconds.to_string()), (TAKE, u64::from(takes_over).to_string())];
        let mut process = start_part("processes::writer", &server.endpoint(), &variables);
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().unwrap()).lines();
        Writer { process, input, output }
    }

    fn id(&self) -> u32 {
        self.process.id()
    }

    /// The next thing that it says: a word, and more.
    fn says(&mut self) -> (String, String) {
        let words = ["opened", "refused", "appended", "failed"];
        let mut lines = self.output.by_ref().map_while(Result::ok);
        let found = lines.find_map(|line| {
            let (word, rest) = line.split_once(' ')?;
            words.contains(&word).then(|| (word.to_owned(), rest.to_owned()))
        });
        found.expect("it says what has become of it")
    }

    fn append(&mut self) {
        writeln!(self.input.as_mut().unwrap()).unwrap();
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.id().to_string()]).status().unwrap().success());
    }

    /// Lets it come to its end.
    fn end(mut self) -> Vec<String> {
        drop(self.input.take());
        let said = self.output.by_ref().map_while(Result::ok).filter(|line| line.starts_with("failed ")).collect();
        self.process.wait().unwrap();
        said
    }
}

/// A server with an empty dataset in a domain.
fn server_with_domain() -> Option<(S3Server, ObjectClient)> {
    let server = S3Server::start_if_available()?;
    server.make_bucket(BUCKET);
    let client = client(&server.client_options());
    let store = open(&client, DOMAIN, Mode::CreateNew, &long_lease()).unwrap();
    create(&store, "rows", 0);
    store.close().unwrap();
    Some((server, client))
}

/// The chunks of the dataset, as a new reader sees them.
fn appended(client: &ObjectClient) -> u64 {
    let reader = open(client, DOMAIN, Mode::Read, &long_lease()).unwrap();
    check_appended(&*reader.dataset(find(&reader, "rows").unwrap()).unwrap())
}

/// Opens the domain for writing as soon as its lease has ended. Until then the error names the holder.
fn open_after(client: &ObjectClient, holder: u32) -> h5live_hsds::HsdsStore {
    let begin = Instant::now();
    loop {
        match open(client, DOMAIN, Mode::Write, &long_lease()) {
            Ok(store) => return store,
            Err(error @ Error::Store(_)) => {
                let text = error.to_string();
                assert!(matches!(error.store_error_kind(), Some(StoreErrorKind::InUse(_))), "{text}");
                assert!(text.starts_with(&format!("process {holder} (")), "{text}");
            }
            Err(other) => panic!("{other:?}"),
        }
        assert!(begin.elapsed() < PATIENCE, "the lease does not end");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn of_two_processes_one_gets_the_lease_and_the_other_is_told_who() {
    let Some((server, client)) = server_with_domain() else { return };
    for round in 0..5 {
        let mut racers: Vec<Writer> = (0..3).map(|_| Writer::start(&server, 600, false)).collect();
        let said: Vec<_> = racers.iter_mut().map(Writer::says).collect();
        let winners: Vec<usize> = (0..racers.len()).filter(|at| said[*at].0 == "opened").collect();
        let [winner] = winners[..] else { panic!("round {round}: {said:?}") };
        for (word, text) in said.iter().filter(|(word, _)| word != "opened") {
            let holder = format!("process {} (", racers[winner].id());
            assert!(word == "refused" && text.starts_with(&holder) && text.contains(DOMAIN), "{text}");
        }
        racers[winner].append();
        assert_eq!(racers[winner].says(), ("appended".to_owned(), round.to_string()));
        racers.into_iter().for_each(|racer| assert_eq!(racer.end(), Vec::<String>::new()));
        assert_eq!(appended(&client), round + 1);
    }
}

#[test]
fn the_lease_of_a_killed_writer_is_taken_over_when_it_has_ended_or_at_once_on_request() {
    let Some((server, client)) = server_with_domain() else { return };
    for (kill, period) in [(0, SHORT_LEASE), (1, 600)] {
        let mut writer = Writer::start(&server, period, false);
        assert_eq!(writer.says(), ("opened".to_owned(), (2 * kill).to_string()));
        writer.append();
        assert_eq!(writer.says().0, "appended");
        let id = writer.id();
        writer.kill();
        let next = match period {
            SHORT_LEASE => open_after(&client, id),
            _ => {
                let text = open(&client, DOMAIN, Mode::Write, &long_lease()).unwrap_err().to_string();
                assert!(text.starts_with(&format!("process {id} (")) && text.contains("take=yes"), "{text}");
                open(&client, DOMAIN, Mode::Write, &with_lease(Duration::from_secs(600), true)).unwrap()
            }
        };
        append(&*next.dataset(find(&next, "rows").unwrap()).unwrap(), 2 * kill + 1).unwrap();
        next.close().unwrap();
        assert_eq!(appended(&client), 2 * kill + 2);
    }
}

#[test]
fn a_writer_that_was_stopped_while_its_lease_ended_is_fenced() {
    let Some((server, client)) = server_with_domain() else { return };
    let mut stopped = Writer::start(&server, SHORT_LEASE, false);
    assert_eq!(stopped.says().0, "opened");
    stopped.append();
    assert_eq!(stopped.says().0, "appended");
    stopped.signal("-STOP");
    let next = open_after(&client, stopped.id());
    stopped.signal("-CONT");
    stopped.append();
    let (word, text) = stopped.says();
    let holder = format!("process {} (", std::process::id());
    assert!(word == "failed" && text.starts_with(&holder) && text.contains("has taken over"), "{word} {text}");
    append(&*next.dataset(find(&next, "rows").unwrap()).unwrap(), 1).unwrap();
    let said = stopped.end();
    assert!(said.iter().any(|line| line.contains("has taken over")), "{said:?}");
    next.close().unwrap();
    assert_eq!(appended(&client), 2);
}
