use super::*;
use crate::messages::MessageType;
use crate::{DecodeError, Fault, Width, Widths, decode, decode_with, encode};

fn sample(version: u8, tracked: bool) -> FirstHeaderChunk {
    let body = |n: u8, len: usize| MessageBody::from(vec![n; len]);
    let mut header = FirstHeaderChunk {
        prefix: ObjectHeaderPrefix {
            version,
            attribute_order_tracked: tracked,
            first_chunk_size_width: if version == 1 { Width::FOUR } else { Width::TWO },
            ..Default::default()
        },
        messages: vec![
            RawMessage { kind: MessageType::DATASPACE, flags: MessageFlags(1), creation_index: 0, body: body(7, 16) },
            RawMessage { kind: MessageType::new(0x77), flags: MessageFlags(0), creation_index: 0, body: body(9, 8) },
            RawMessage::unused(24),
        ],
    };
    let each = header.prefix.message_header_len();
    header.prefix.first_chunk_messages_size = header.messages.iter().map(|m| (m.body.len() + each) as u64).sum();
    if version == 1 {
        header.prefix.first_chunk_size_width = ObjectHeaderPrefix::default().first_chunk_size_width;
    }
    header
}

#[test]
fn headers_survive_the_way_through_their_bytes() {
    for (version, tracked) in [(1, false), (2, false), (2, true)] {
        let header = sample(version, tracked);
        let bytes = encode(&header, Widths::default()).unwrap();
        assert_eq!(decode::<FirstHeaderChunk>(&bytes, Widths::default()).unwrap(), header);
        assert_eq!(header.prefix.first_chunk_len(), bytes.len() as u64);
    }
}

#[test]
fn a_gap_smaller_than_a_message_header_is_kept() {
    let mut header = sample(2, false);
    header.prefix.first_chunk_messages_size += 3;
    let bytes = encode(&header, Widths::default()).unwrap();
    assert_eq!(decode::<FirstHeaderChunk>(&bytes, Widths::default()).unwrap(), header);
}

#[test]
fn refuses_every_flipped_bit_and_every_truncation_of_version_2() {
    let bytes = encode(&sample(2, true), Widths::default()).unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(decode::<FirstHeaderChunk>(&flipped, Widths::default()).is_err(), "bit {bit}");
    }
    for len in 0..bytes.len() {
        assert!(decode::<FirstHeaderChunk>(&bytes[..len], Widths::default()).is_err(), "{len} bytes");
    }
}

#[test]
fn refuses_messages_that_run_over_the_chunk() {
    let mut header = sample(1, false);
    header.prefix.first_chunk_messages_size -= 8;
    assert!(encode(&header, Widths::default()).is_err());
    let mut bytes = encode(&sample(1, false), Widths::default()).unwrap();
    bytes[18] = 0xf8;
    assert!(matches!(
        decode::<FirstHeaderChunk>(&bytes, Widths::default()),
        Err(DecodeError { fault: Fault::Truncated { .. }, .. })
    ));
}

#[test]
fn unknown_messages_are_carried_unless_they_must_be_known() {
    let message = |flags| RawMessage { kind: MessageType::new(0x99), flags: MessageFlags(flags), ..Default::default() };
    assert!(message(0x00).refuse_unknown_required(true).is_ok());
    assert!(message(0x08).refuse_unknown_required(false).is_ok());
    assert!(message(0x08).refuse_unknown_required(true).is_err());
    assert!(message(0x80).refuse_unknown_required(false).is_err());
}

#[test]
fn continuations_survive_the_way_through_their_bytes() {
    for version in [1, 2] {
        let chunk = ContinuationChunk {
            version,
            attribute_order_tracked: false,
            chunk_len: ContinuationChunk::overhead(version) + 40 + if version == 1 { 8 } else { 4 },
            messages: vec![RawMessage::unused(40)],
        };
        let bytes = encode(&chunk, Widths::default()).unwrap();
        assert_eq!(bytes.len() as u64, chunk.chunk_len);
        let shape = ContinuationChunk { messages: Vec::new(), ..chunk.clone() };
        assert_eq!(decode_with(shape, &bytes, Widths::default()).unwrap(), chunk);
    }
}
