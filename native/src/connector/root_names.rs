//! A quick look for a name in the root group, in the first bytes of a file.

use h5live_format::messages::{
    AttributeInfo, AttributeMessage, ContinuationMessage, LinkInfo, LinkMessage, MessageType, SymbolTableMessage,
};
use h5live_format::{
    Addr, ContinuationChunk, FirstHeaderChunk, LocalHeapPrefix, RawMessage, Superblock, Widths, decode_prefix,
    decode_with,
};
use h5live_model::Name;

/// Most chunks of a header that are looked at.
const MAX_HEADER_CHUNKS: usize = 8;

/// Whether the root group of a file has one of these links or attributes, as far as the first bytes of the file say it;
/// `None` if they do not.
pub fn peek_root_has_any(head: &[u8], links: &[Name], attributes: &[Name]) -> Option<bool> {
    let is_superblock = |at: &usize| head.get(*at..).is_some_and(|bytes| bytes.starts_with(&Superblock::SIGNATURE));
    let mut offsets = Superblock::possible_offsets(head.len() as u64).filter_map(|at| usize::try_from(at).ok());
    let image = FileHead::new(head.get(offsets.find(is_superblock)?..)?)?;
    let messages = image.messages(image.superblock.root.header())?;
    match (image.has_link(&messages, links), image.has_attribute(&messages, attributes)) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    }
}

/// The first bytes of a file, from its superblock on.
struct FileHead<'a> {
    bytes: &'a [u8],
    superblock: Superblock,
}

impl<'a> FileHead<'a> {
    /// `None` if structures of the file may not be where they belong.
    fn new(bytes: &'a [u8]) -> Option<Self> {
        let superblock = Superblock::decode(bytes).ok()?;
        let head = FileHead { bytes, superblock };
        let extension = head.superblock.extension_or_free_space;
        if head.superblock.version < 2 || !extension.is_defined() {
            return Some(head);
        }
        let messages = head.messages(extension)?;
        let has_image = messages.iter().any(|message| message.kind == MessageType::CACHE_IMAGE);
        (!has_image).then_some(head)
    }

    fn widths(&self) -> Widths {
        self.superblock.widths
    }

    fn bytes_from(&self, at: Addr) -> Option<&'a [u8]> {
        self.bytes.get(usize::try_from(at.get()?).ok()?..)
    }

    /// The messages of an object header; `None` if some of it is further behind, or damaged.
    fn messages(&self, header: Addr) -> Option<Vec<RawMessage>> {
        let (first, _) = decode_prefix::<FirstHeaderChunk>(self.bytes_from(header)?, self.widths()).ok()?;
        let FirstHeaderChunk { prefix, mut messages } = first;
        let (mut seen, mut chunks) = (0, 1);
        while let Some(message) = messages.get(seen) {
            seen += 1;
            if message.kind != MessageType::CONTINUATION {
                continue;
            }
            let next: ContinuationMessage = message.decode(self.widths()).ok()?;
            let bytes = self.bytes_from(next.addr)?.get(..usize::try_from(next.length).ok()?)?;
            let (version, attribute_order_tracked) = (prefix.version, prefix.attribute_order_tracked);
            let blank =
                ContinuationChunk { version, attribute_order_tracked, chunk_len: next.length, messages: Vec::new() };
            messages.extend(decode_with(blank, bytes, self.widths()).ok()?.messages);
            chunks += 1;
            if chunks > MAX_HEADER_CHUNKS {
                return None;
            }
        }
        Some(messages)
    }

    /// Whether a group with these messages has one of the links; `None` if they do not say it.
    fn has_link(&self, messages: &[RawMessage], names: &[Name]) -> Option<bool> {
        let find = |kind: MessageType| messages.iter().find(|message| message.kind == kind);
        if let Some(table) = find(MessageType::SYMBOL_TABLE) {
            let table: SymbolTableMessage = table.decode(self.widths()).ok()?;
            return self.heap_may_have(table.heap, names).filter(|may_have| !may_have);
        }
        if let Some(info) = find(MessageType::LINK_INFO)
            && info.decode::<LinkInfo>(self.widths()).ok()?.is_dense()
        {
            return None;
        }
        has_name(messages, MessageType::LINK, names, |message| {
            Some(message.decode::<LinkMessage>(self.widths()).ok()?.name)
        })
    }

    /// Whether an object with these messages has one of the attributes; `None` if they do not say it.
    fn has_attribute(&self, messages: &[RawMessage], names: &[Name]) -> Option<bool> {
        let info = messages.iter().find(|message| message.kind == MessageType::ATTRIBUTE_INFO);
        if let Some(info) = info
            && info.decode::<AttributeInfo>(self.widths()).ok()?.is_dense()
        {
            return None;
        }
        has_name(messages, MessageType::ATTRIBUTE, names, |message| {
            Some(message.decode::<AttributeMessage>(self.widths()).ok()?.name)
        })
    }

    /// Whether the heap of a symbol table has the bytes of one of the names. They stay there when the link was deleted.
    fn heap_may_have(&self, heap: Addr, names: &[Name]) -> Option<bool> {
        let (heap, _) = decode_prefix::<LocalHeapPrefix>(self.bytes_from(heap)?, self.widths()).ok()?;
        let stored = self.bytes_from(heap.data)?.get(..usize::try_from(heap.data_size).ok()?)?;
        let has = |name: &Name| stored.windows(name.as_bytes().len().max(1)).any(|bytes| bytes == name.as_bytes());
        Some(names.iter().any(has))
    }
}

/// Whether one of the messages of a kind has one of the names; `None` if one cannot be decoded by itself.
fn has_name(
    messages: &[RawMessage],
    kind: MessageType,
    names: &[Name],
    name_of: impl Fn(&RawMessage) -> Option<Name>,
) -> Option<bool> {
    let mut of_kind = messages.iter().filter(|message| message.kind == kind);
    of_kind.try_fold(false, |has, message| Some(has || names.contains(&name_of(message)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_nothing_of_what_is_no_hdf5_file() {
        let names = [Name::from("_LOG")];
        let damaged = [&Superblock::SIGNATURE[..], &[7; 100]].concat();
        for head in [&[][..], b"text", &[0; 4096], &damaged] {
            assert_eq!(peek_root_has_any(head, &names, &[]), None);
        }
    }
}
