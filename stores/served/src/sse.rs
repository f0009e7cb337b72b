//! Server-sent events, from the bytes of a stream.

/// Most bytes of an event.
const MAX_EVENT_BYTES: usize = 8 << 20;

/// An event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Event {
    pub id: Option<String>,
    pub data: Vec<u8>,
}

/// Cuts a stream into events.
#[derive(Debug, Default)]
pub(crate) struct EventReader {
    line: Vec<u8>,
    event: Event,
}

/// An event is longer than one may be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl EventReader {
    /// The events that end in these bytes, which follow those that came before.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>, TooLong> {
        let mut events = Vec::new();
        let mut lines = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = lines.next() {
            if self.line.len() + self.event.data.len() + part.len() > MAX_EVENT_BYTES {
                return Err(TooLong);
            }
            self.line.extend_from_slice(part);
            if lines.peek().is_some() {
                let line = std::mem::take(&mut self.line);
                events.extend(self.take_line(line.strip_suffix(b"\r").unwrap_or(&line)));
            }
        }
        Ok(events)
    }

    fn take_line(&mut self, line: &[u8]) -> Option<Event> {
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return (!event.data.is_empty()).then_some(event);
        }
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            Some(at) => (&line[..at], line[at + 1..].strip_prefix(b" ").unwrap_or(&line[at + 1..])),
            None => (line, &[][..]),
        };
        match name {
            b"id" => self.event.id = String::from_utf8(value.to_vec()).ok(),
            b"data" => self.event.data.extend_from_slice(value),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_the_same_however_the_stream_is_cut() {
        let stream = b"retry: 1000\n\n:\n\nid: a-1\ndata: {\"x\"\ndata: :1}\n\nid: a-2\r\ndata:2\r\n\r\ndata: 3";
        let whole = EventReader::default().push(stream).unwrap();
        let event = |id: &str, data: &[u8]| Event { id: Some(id.to_owned()), data: data.to_vec() };
        assert_eq!(whole, [event("a-1", b"{\"x\":1}"), event("a-2", b"2")]);
        for at in 0..stream.len() {
            let mut reader = EventReader::default();
            let mut events = reader.push(&stream[..at]).unwrap();
            events.extend(reader.push(&stream[at..]).unwrap());
            assert_eq!(events, whole);
        }
        let mut reader = EventReader::default();
        let mut endless = (0..).map(|_| reader.push(&[b'x'; 1 << 20]));
        assert!(endless.any(|pushed| pushed == Err(TooLong)));
    }
}
