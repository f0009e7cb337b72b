//! Maps: key-value pairs in a file, each key once.

mod builder;
mod codec;
mod follow;
mod object;
mod pages;
#[cfg(test)]
mod tests;
mod typed;

pub use builder::MapBuilder;
pub(crate) use builder::check_maps;
pub use follow::MapFollower;
pub use object::MapObject;
pub(crate) use object::no_maps;
pub use pages::{MapIter, MapPairs};
pub use typed::{Map, MapItem};
