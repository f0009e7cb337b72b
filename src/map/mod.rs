//! Maps: key-value pairs in a file, each key once.

mod builder;
mod codec;
mod follow;
mod item;
mod object;
mod pages;
#[cfg(test)]
mod tests;
mod typed;

pub use builder::MapBuilder;
pub(crate) use builder::check_supports_maps;
pub use follow::MapLengthFollower;
pub use item::EncodeAs;
pub use object::UntypedMap;
pub(crate) use object::no_maps;
pub use pages::UntypedMapPairs;
pub use typed::{Map, MapIter};
