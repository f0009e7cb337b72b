//! The messages of h5live's own client, as a client may send them.

use h5live::model::{ChunkCoord, LinkTarget, ObjectId, ObjectKindSpec, ReferenceKind, StoreFeatures};
use h5live_served::protocol::{
    AttributesRequest, BASE_PATH, BlobsRequest, CONTENT_TYPE, ChunkWanted, ChunksAnswer, ChunksRequest, IndexAnswer,
    IndexRequest, LinksAnswer, LinksRequest, ObjectsAnswer, ObjectsRequest, ReferenceRequest, ReferentRequest,
    SessionAnswer, decode_message, encode_message,
};

use crate::client::{Response, Served, make, post};

/// The address of a route.
pub fn store_target(route: &str, file: &str) -> String {
    format!("{BASE_PATH}/{route}?file={file}")
}

fn ask(served: &Served, route: &str, file: &str, body: &[u8]) -> Response {
    post(served.address(), &store_target(route, file), &[("content-type", CONTENT_TYPE)], body)
}

fn session(served: &Served, file: &str) -> SessionAnswer {
    let answer = ask(served, "session", file, b"");
    assert_eq!((answer.status, &*answer.headers["content-type"]), (200, CONTENT_TYPE), "{}", answer.text());
    decode_message(&answer.body).unwrap()
}

/// Requests of all routes, for a file: the routes, and the bodies.
pub fn store_requests(served: &Served, file: &str) -> Vec<(&'static str, Vec<u8>)> {
    let SessionAnswer { incarnation, root, .. } = session(served, file);
    let objects = ObjectsRequest { incarnation, ids: vec![root], others: 100 };
    let body = encode_message(&mut objects.clone()).unwrap();
    let found: ObjectsAnswer = decode_message(&ask(served, "objects", file, &body).body).unwrap();
    let datasets = found.objects.iter().filter(|object| matches!(object.spec.body, ObjectKindSpec::Dataset(_)));
    let mut requests = vec![("session", Vec::new()), ("objects", body)];
    let mut links = LinksRequest { incarnation, group: root, name: None };
    requests.push(("links", encode_message(&mut links).unwrap()));
    links.name = Some("soft".into());
    requests.push(("links", encode_message(&mut links).unwrap()));
    let mut attributes = AttributesRequest { incarnation, object: root, ..AttributesRequest::default() };
    requests.push(("attributes", encode_message(&mut attributes).unwrap()));
    let mut blobs = BlobsRequest { incarnation, elements: vec![0; 32] };
    requests.push(("blobs", encode_message(&mut blobs).unwrap()));
    let mut referent = ReferentRequest { incarnation, kind: ReferenceKind::Object1, element: vec![0; 8] };
    requests.push(("referent", encode_message(&mut referent).unwrap()));
    let mut reference = ReferenceRequest { incarnation, size: 8, object: ObjectId(1 << 20), ..Default::default() };
    requests.push(("reference", encode_message(&mut reference).unwrap()));
    for dataset in datasets {
        let ObjectKindSpec::Dataset(spec) = &dataset.spec.body else { continue };
        let coord = ChunkCoord::origin(spec.dataspace.rank());
        let wanted =
            vec![ChunkWanted { coord: coord.clone(), byte_range: None }, ChunkWanted { coord, byte_range: Some(0..9) }];
        let mut chunks = ChunksRequest { incarnation, dataset: dataset.id, max_bytes: 1 << 20, wanted };
        requests.push(("chunks", encode_message(&mut chunks).unwrap()));
        let mut index = IndexRequest { incarnation, dataset: dataset.id, skip: 0 };
        requests.push(("index", encode_message(&mut index).unwrap()));
    }
    requests
}

#[test]
fn objects_come_with_what_belongs_to_them() {
    let served = Served::new();
    make(&served.file("a.h5"), |file| {
        file.new_dataset::<u16>().shape(&[3, 4]).chunk_shape(&[2, 4]).create("g/data")?.write(&[7; 12])?;
        file.dataset("g/data")?.set_attribute("unit", "mm")
    });
    let SessionAnswer { incarnation, root, features, .. } = session(&served, "a.h5");
    assert!(features.has(StoreFeatures::OBJECT_REFERENCES) && !features.has(StoreFeatures::MAPS));
    let ask = |route: &str, body: Vec<u8>| ask(&served, route, "a.h5", &body);
    let mut request = ObjectsRequest { incarnation, ids: vec![root], others: 5 };
    let answer = ask("objects", encode_message(&mut request).unwrap());
    let found: ObjectsAnswer = decode_message(&answer.body).unwrap();
    assert_eq!(found.objects.len(), 3);
    let data = found.objects.last().unwrap();
    assert_eq!(data.attributes_if_small.as_ref().unwrap()[0].name.as_str(), Some("unit"));
    let mut request = LinksRequest { incarnation, group: root, name: Some("g".into()) };
    let links: LinksAnswer = decode_message(&ask("links", encode_message(&mut request).unwrap()).body).unwrap();
    assert_eq!(links.links[0].target, LinkTarget::Hard(found.objects[1].id));
    let wanted: Vec<_> =
        (0..3).map(|n| ChunkWanted { coord: ChunkCoord::new(&[n, 0]), byte_range: Some(2..100) }).collect();
    let mut request = ChunksRequest { incarnation, dataset: data.id, max_bytes: 20, wanted };
    let chunks: ChunksAnswer = decode_message(&ask("chunks", encode_message(&mut request).unwrap()).body).unwrap();
    // The second one does not fit.
    assert_eq!(chunks.chunks.len(), 1);
    assert_eq!(chunks.chunks[0].bytes, [7, 0].repeat(7));
    let mut request = IndexRequest { incarnation, dataset: data.id, skip: 1 };
    let index: IndexAnswer = decode_message(&ask("index", encode_message(&mut request).unwrap()).body).unwrap();
    assert!(index.is_end && index.chunks.len() == 1);
}

#[test]
fn what_is_no_message_is_refused() {
    let served = Served::new();
    let raw = served.file("raw.bin");
    std::fs::write(&raw, "secret bytes").unwrap();
    make(&served.file("a.h5"), |file| {
        file.new_dataset::<u8>().shape(&[4]).external("raw.bin", 0, 4).create("raw").map(drop)
    });
    let opened = session(&served, "a.h5");
    let fault = |route: &str, body: Vec<u8>, status: u16, kind: Option<&str>| {
        let answer = ask(&served, route, "a.h5", &body);
        assert_eq!(answer.status, status, "{route}: {}", answer.text());
        assert_eq!(answer.headers.get("h5live-fault").map(String::as_str), kind);
        let message = answer.json()["message"].as_str().unwrap().to_owned();
        assert!(!message.contains(&*served.folder.path().to_string_lossy()), "{message}");
    };
    for (route, body) in store_requests(&served, "a.h5").into_iter().skip(1) {
        if matches!(route, "chunks" | "index") {
            fault(route, body.clone(), 403, Some("raw-files"));
        }
        fault(route, body[..body.len() - 1].to_vec(), 422, None);
        fault(route, [&body[..], b"x"].concat(), 422, None);
        // Of another file.
        let mut other = body;
        other[5] ^= 1;
        fault(route, other, 410, Some("replaced"));
    }
    let of_none = ObjectId(u128::MAX);
    let mut request = IndexRequest { incarnation: opened.incarnation, dataset: of_none, skip: 0 };
    assert_ne!(ask(&served, "index", "a.h5", &encode_message(&mut request).unwrap()).status, 200);
    let mut request = ObjectsRequest { incarnation: opened.incarnation, ids: vec![of_none, opened.root], others: 0 };
    let answer = ask(&served, "objects", "a.h5", &encode_message(&mut request).unwrap());
    let found: ObjectsAnswer = decode_message(&answer.body).unwrap();
    assert!(found.objects[0].failure.is_some() && found.objects[1].failure.is_none());
    let mut request = IndexRequest { incarnation: opened.incarnation, dataset: opened.root, skip: 0 };
    fault("index", encode_message(&mut request).unwrap(), 422, Some("wrong-kind"));
    assert_eq!(ask(&served, "session", "none.h5", b"").headers["h5live-fault"], "no-file");
    assert_eq!(served.get(&store_target("session", "a.h5")).status, 405);
}
