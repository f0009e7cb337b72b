//! What names a shard of the links, or of the attributes, of an object.

/// What an object has many of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinksOrAttributes {
    /// Links of a group.
    Links,
    /// Attributes.
    Attributes,
}

/// A shard in one of its states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShardId {
    /// What is in it.
    pub class: LinksOrAttributes,
    /// Its number among the shards.
    pub number: usize,
    /// A random number for each state.
    pub version_id: u64,
}

impl LinksOrAttributes {
    /// Both of them.
    pub const BOTH: [LinksOrAttributes; 2] = [LinksOrAttributes::Links, LinksOrAttributes::Attributes];

    /// The member of a document, or of a shard, that has them.
    pub fn json_member(self) -> &'static str {
        match self {
            LinksOrAttributes::Links => "links",
            LinksOrAttributes::Attributes => "attributes",
        }
    }

    /// The member of `h5live` with the table of the shards.
    pub(super) fn table_member(self) -> &'static str {
        match self {
            LinksOrAttributes::Links => "link_shards",
            LinksOrAttributes::Attributes => "attribute_shards",
        }
    }

    /// The member of `h5live` with the next position in the order of creation.
    pub(super) fn counter(self) -> &'static str {
        match self {
            LinksOrAttributes::Links => "next_link",
            LinksOrAttributes::Attributes => "next_attribute",
        }
    }

    /// The name of the folder of the shards.
    pub(super) fn folder(self) -> &'static str {
        match self {
            LinksOrAttributes::Links => ".h5live.links",
            LinksOrAttributes::Attributes => ".h5live.attributes",
        }
    }
}

/// A generation as text.
pub fn generation_text(generation: u64) -> String {
    format!("{generation:016x}")
}

/// The generation that a text is.
pub fn parse_generation(text: &str) -> Option<u64> {
    let is_plain = text.len() == 16 && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    u64::from_str_radix(text, 16).ok().filter(|_| is_plain)
}
